"""The integer programme of ``general``, for HiGHS through SciPy.

Bins that are alike (same worker, same size, same load) are one variable that says how many of them go where. What HiGHS finds is checked against the limits, since it allows itself to
miss them by a millionth; if it did, it is asked once more for a little less.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from sterna.planning.plan import Problem

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
GAP = 1e-7
"""How far from the best a programme may end, as part of it."""
MARGIN = 4e-6
"""What is taken off a limit that was missed: more than HiGHS allows itself."""
PUNCTUAL = 0.9
"""HiGHS looks at the clock now and then: it is given this part of the time."""
LIGHT = 1e-5
"""A load of no more than this part of the limit is lost among what HiGHS allows itself."""
TINY = 1e-300
SOLVED, INFEASIBLE = 0, 2
"""What ``milp`` calls the ways to end that matter here."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What a programme came to.

    Attributes:
        place: the worker of each bin; None if nothing was found.
        bound: no assignment moves less.
        finished: whether the programme was solved, and not stopped by the time; with no place, there is none.
    """

    place: Ints | None
    bound: float
    finished: bool


def assigned(
    problem: Problem, home: Ints, limit: float, candidates: int, unit: float, seconds: float
) -> Answer:
    """A place for every bin, with as little state moved as possible.

    Args:
        problem: the bins, and how many workers may have some.
        home: where each bin is now, a number below ``candidates``, or -1.
        limit: the most load that a worker may have.
        candidates: how many workers bins may be given to.
        unit: about how much will move: what is proven is so to a millionth of it.
        seconds: how long it may take.
    """
    until = time.monotonic() + seconds * PUNCTUAL
    sizes, loads = problem.sizes / max(unit, TINY), problem.loads / max(limit, TINY)
    alike = _Alike(np.column_stack([home, sizes, loads]))
    homes, worth, heavy = alike.values.T
    costs = (homes[:, None] != np.arange(candidates)) * worth[:, None]
    most = np.concatenate([np.repeat(alike.counts, candidates), np.ones(candidates)])
    bound = 0.0
    for margin in (0.0, MARGIN):
        rows = _rows(alike, heavy, candidates, problem.workers, 1 - margin)
        found = milp(
            np.concatenate([costs.ravel(), np.zeros(candidates)]),
            integrality=np.ones(len(most)),
            bounds=Bounds(0, most),
            constraints=rows,
            options={"time_limit": max(until - time.monotonic(), 0.01), "mip_rel_gap": GAP},
        )
        proven = found.mip_dual_bound
        if not margin and proven is not None and np.isfinite(proven):
            bound = max(0.0, float(proven) * unit)
        if found.x is None:
            return Answer(None, bound, finished=found.status == INFEASIBLE)
        counts = np.round(found.x[:-candidates]).astype(np.int64).reshape(-1, candidates)
        place = alike.spread(counts)
        within = (np.bincount(place, problem.loads, candidates) <= limit).all()
        if within and len(np.unique(place)) <= problem.workers:
            return Answer(place, bound, finished=found.status == SOLVED)
    return Answer(None, bound, finished=False)


def _rows(
    alike: _Alike, heavy: Floats, candidates: int, workers: int, limit: float
) -> list[LinearConstraint]:
    """What must hold of how many bins of each group go to each candidate, and of which candidates are there.

    Every bin has one place; who is there has no more load than the limit, and who is not has nothing, not even bins too light to show in that; no more than so many are there; of those who have no
    bins now, and so are alike, the first have most.
    """
    groups, counts = len(heavy), alike.counts
    place = sparse.kron(sparse.eye(groups), np.ones((1, candidates)))
    load = sparse.kron(heavy[None, :], sparse.eye(candidates)).tocsr()
    light = sparse.kron(heavy[None, :] <= LIGHT, sparse.eye(candidates))
    new = np.setdiff1d(np.arange(candidates), alike.values[:, 0])
    falling = load[new[1:]] - load[new[:-1]]
    nobody, nothing = sparse.csr_matrix((groups, candidates)), sparse.csr_matrix((1, groups * candidates))
    rows = [
        ([place, nobody], counts, counts),
        ([load, -limit * sparse.eye(candidates)], -np.inf, 0.0),
        ([light, -int(counts.sum()) * sparse.eye(candidates)], -np.inf, 0.0),
        ([nothing, np.ones((1, candidates))], 0.0, workers),
    ]
    if len(new) > 1:
        rows.append(([falling, sparse.csr_matrix((len(new) - 1, candidates))], -np.inf, 0.0))
    return [LinearConstraint(sparse.hstack(parts, format="csr"), low, high) for parts, low, high in rows]


class _Alike:
    """Bins with the same values, in groups."""

    def __init__(self, values: Floats) -> None:
        self.values, self._group, self.counts = np.unique(
            values, axis=0, return_inverse=True, return_counts=True
        )
        self._group = self._group.ravel()

    def spread(self, counts: Ints) -> Ints:
        """The place of each bin, given how many of each group go to each place."""
        places = np.tile(np.arange(counts.shape[1]), len(counts))
        out = np.empty(len(self._group), np.int64)
        out[np.argsort(self._group, kind="stable")] = np.repeat(places, counts.ravel())
        return out
