"""The integer programme of ``general``, for HiGHS through SciPy.

Bins that are alike (same worker, same size, same load) are one variable that says how many of them go where.
What HiGHS finds is checked against the limits, since it allows itself to miss them by a millionth; if it did,
it is asked once more for a little less.

HiGHS is stopped by nodes of its search, of which it looks at the fewer the larger the programme is; a
programme that is too large for a single one is not begun. So it does the same on every machine, and nobody
waits for long. It has no other way to be told how much it may do: what it does before the first branch is
bounded by the size alone.
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
LARGEST = 1 << 16
"""The largest programme: groups of alike bins × workers × workers.

It has a variable for each pair of the former, and takes longer the more workers are to be filled.
"""
EFFORT = 1 << 18
"""How many nodes there are, times the size of the programme."""
GAP = 1e-7
"""How far from the best a programme may end, as part of it."""
MARGIN = 4e-6
"""What is taken off a limit that was missed: more than HiGHS allows itself."""
PUNCTUAL = 0.9
"""HiGHS looks at the clock now and then: it is given this part of the time, if there is any."""
LIGHT = 1e-5
"""A load of no more than this part of the limit is lost among what HiGHS allows itself."""
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Answer:
    """What a programme came to.

    Attributes:
        place: the worker of each bin; None if nothing was found, because there is nothing or because the
            programme was stopped, or too large.
        bound: no assignment moves less.
    """

    place: Ints | None
    bound: float


def assigned(
    problem: Problem, home: Ints, limit: float, candidates: int, unit: float, seconds: float | None = None
) -> Answer:
    """A place for every bin, with as little state moved as possible.

    Args:
        problem: the bins, and how many workers may have some.
        home: where each bin is now, a number below ``candidates``, or -1.
        limit: the most load that a worker may have.
        candidates: how many workers bins may be given to.
        unit: about how much will move: what is proven is so to a millionth of it.
        seconds: how long it may take at most, if that matters more than that the answer is the same
            everywhere.
    """
    sizes, loads = problem.sizes / max(unit, TINY), problem.loads / max(limit, TINY)
    alike = _Alike(np.column_stack([home, sizes, loads]))
    homes, worth, heavy = alike.values.T
    size = len(heavy) * candidates**2
    if size > LARGEST:
        return Answer(None, 0.0)
    costs = (homes[:, None] != np.arange(candidates)) * worth[:, None]
    most = np.concatenate([np.repeat(alike.counts, candidates), np.ones(candidates)])
    options = _Options(max(1, EFFORT // size), seconds)
    bound = 0.0
    for margin in (0.0, MARGIN):
        found = milp(
            np.concatenate([costs.ravel(), np.zeros(candidates)]),
            integrality=np.ones(len(most)),
            bounds=Bounds(0, most),
            constraints=_rows(alike, heavy, candidates, problem.workers, 1 - margin),
            options=options.now(),
        )
        proven = found.mip_dual_bound
        if not margin and proven is not None and np.isfinite(proven):
            bound = max(0.0, float(proven) * unit)
        if found.x is None:
            return Answer(None, bound)
        counts = np.round(found.x[:-candidates]).astype(np.int64).reshape(-1, candidates)
        place = alike.spread(counts)
        within = (np.bincount(place, problem.loads, candidates) <= limit).all()
        if within and len(np.unique(place)) <= problem.workers:
            return Answer(place, bound)
    return Answer(None, bound)


class _Options:
    """What HiGHS is told: how near to the best is enough, and how much it may do."""

    def __init__(self, nodes: int, seconds: float | None) -> None:
        self._nodes = nodes
        self._until = None if seconds is None else time.monotonic() + seconds * PUNCTUAL

    def now(self) -> dict[str, float]:
        """As ``milp`` takes them, with the time that is left."""
        out: dict[str, float] = {"mip_rel_gap": GAP, "node_limit": self._nodes}
        if self._until is not None:
            out["time_limit"] = max(self._until - time.monotonic(), 0.01)
        return out


def _rows(
    alike: _Alike, heavy: Floats, candidates: int, workers: int, limit: float
) -> list[LinearConstraint]:
    """What must hold of how many bins of each group go to each candidate, and of which candidates are there.

    Every bin has one place; who is there has no more load than the limit, and who is not has nothing, not
    even bins too light to show in that; no more than so many are there; of those who have no bins now, and so
    are alike, the first have most.
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
