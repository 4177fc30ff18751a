"""The balance that is asked for with the least state moved, where a worker's bins need not be neighbours.

In: as for ``ssm``. Out: a plan, and a bound: no plan with this balance moves less.

How. What a worker gives up is a choice of its own: as little state as possible, with as much load as it has
too much. Where it goes matters only in so far as there must be room. So the least that each worker must give
up, added up, is a bound, and a plan in which nobody gives up more is the best. What was given up is packed,
the heaviest bin first, and lighter ones make way where they must. Where the plan is not proven to be the best
by then, and there are few enough bins, an integer programme decides about everything at once. It stops after
so many nodes, and not after so much time: the same input gives the same plan, on a slow machine too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sterna.errors import InvalidInput
from sterna.planning import packing, programme
from sterna.planning.assigning import unused
from sterna.planning.checks import check_number, check_tau
from sterna.planning.knapsack import most_kept
from sterna.planning.plan import (
    BoundedPlan,
    Numbers,
    Plan,
    Problem,
    Unbalanceable,
    Workers,
    rounded_up,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

WORK = 1 << 23
"""How many choices are looked at in all for what workers give up: a second or two, at worst."""


def general(
    assignment: Workers,
    sizes: Numbers,
    loads: Numbers,
    workers: int,
    tau: float | str,
    seconds: float | None = None,
    leaving: str = "any",
) -> BoundedPlan:
    """The plan that moves least of those with this balance, or one that is near to it.

    See the module's docstring.

    Args:
        assignment: the worker of each bin now.
        sizes: how much state each bin has.
        loads: how much work each bin is.
        workers: how many workers there will be.
        tau: how much more than the mean a worker may get; ``"least"`` for the least that is known to be
            possible, at which nobody has more than 4/3 of what the heaviest has in the most even assignment
            there is.
        seconds: with 0 there is no integer programme. A larger number stops it after so long, if it has not
            ended by then; what it found depends on the machine, and so does the plan. Without a number it
            goes as far as it goes anywhere.
        leaving: who may leave where there will be fewer workers: ``"any"``, or the ``"last"``, numbers
            ``workers`` and above.

    Raises:
        InvalidInput: an entry is wrong; it is named.
        Unbalanceable: no assignment is that even, or none was found; the least tau that is known to be
            possible is named.

    Example:
        >>> plan = general([0, 0, 0, 1], [5, 1, 1, 1], [1, 1, 1, 1], workers=2, tau=0)
        >>> plan.assignment.tolist(), plan.moved, plan.optimal
        ([0, 0, 1, 1], 1.0, True)
    """
    if leaving not in ("any", "last"):
        raise InvalidInput(f"leaving is {leaving!r}: it must be 'any' or 'last'")
    if seconds is not None:
        check_number("seconds", seconds, ", or None")
    problem = Problem.of(assignment, sizes, loads, workers)
    task = _Task.of(problem, last_leave=leaving == "last")
    tau = task.least_tau() if isinstance(tau, str) and tau == "least" else check_tau(tau)
    limit = problem.limit(tau)
    place, bound = _searched(task, limit, seconds)
    if place is None:
        least = task.least_tau()
        raise Unbalanceable(
            f"no assignment to {workers} workers was found that keeps every load within {1 + tau:g} times "
            f"the mean{problem.too_heavy(limit)}; the least tau known to be possible is {rounded_up(least)}",
            least,
        )
    plan = Plan.of(problem.owners, task.candidates[place], problem.sizes, tau, problem.workers)
    return BoundedPlan(plan.assignment, plan.moved, plan.kept, tau, problem.workers, min(bound, plan.moved))


@dataclass(frozen=True, eq=False)
class _Task:
    """A problem whose workers are numbered from 0, those who may leave included.

    Attributes:
        candidates: the workers that bins may be given to.
        home: where each bin is now, as a place in ``candidates``; -1 if its worker leaves for certain.
    """

    problem: Problem
    candidates: Ints
    home: Ints

    @classmethod
    def of(cls, problem: Problem, *, last_leave: bool) -> _Task:
        if last_leave:
            candidates = np.arange(problem.workers)
        else:
            present = np.unique(problem.owners)
            fresh = unused(problem.owners, present.tolist())
            more = [next(fresh) for _ in range(problem.workers - len(present))]
            candidates = np.concatenate([present, np.array(more, np.int64)])
        numbered = np.full(max(int(candidates.max()), int(problem.owners.max())) + 1, -1)
        numbered[candidates] = np.arange(len(candidates))
        return cls(problem, candidates, numbered[problem.owners])

    def moved(self, place: Ints) -> float:
        """How much state a plan moves."""
        return float(self.problem.sizes[place != self.home].sum())

    def least_tau(self) -> float:
        """The least tau that is known to be possible."""
        loads, workers = self.problem.loads, self.problem.workers
        heaviest = np.bincount(packing.even(loads, workers), loads).max()
        return self.problem.tau_of(float(heaviest))


def _searched(task: _Task, limit: float, seconds: float | None) -> tuple[Ints | None, float]:
    """The best plan that was found, if any, and the bound."""
    if task.problem.loads.max() > limit:
        return None, 0.0
    giving = _Giving(task, limit)
    best, bound = giving.plan(), giving.bound()
    if best is None:
        best = _from_scratch(task, limit)
    if seconds == 0 or (best is not None and task.moved(best) <= bound * (1 + 1e-6)):
        return best, bound
    unit = float(task.problem.sizes.sum()) if best is None else task.moved(best)
    answer = programme.assigned(task.problem, task.home, limit, len(task.candidates), unit, seconds)
    found = [one for one in (best, answer.place) if one is not None]
    return min(found, key=task.moved, default=None), max(bound, answer.bound)


def _from_scratch(task: _Task, limit: float) -> Ints | None:
    """A plan that is even first and then moves little, if it is even enough."""
    problem = task.problem
    groups = packing.even(problem.loads, problem.workers, enough=limit)
    if np.bincount(groups, problem.loads).max() > limit:
        return None
    return packing.named(groups, task.home, problem.weights, len(task.candidates))


class _Giving:
    """What each worker gives up so that it is within the limit, as little as it can, whoever takes it."""

    def __init__(self, task: _Task, limit: float) -> None:
        self._task, self._limit = task, limit
        problem, many = task.problem, len(task.candidates)
        at_home = task.home >= 0
        held = np.bincount(task.home[at_home], problem.loads[at_home], many)
        self._keepable = np.bincount(task.home[at_home], problem.sizes[at_home], many).astype(np.float64)
        self._place = task.home.copy()
        over = np.flatnonzero(held > limit).tolist()
        left = WORK
        for waiting, worker in zip(range(len(over), 0, -1), over, strict=True):
            mine = np.flatnonzero(task.home == worker)
            kept = most_kept(problem.weights[mine], problem.loads[mine], limit, left // waiting)
            left -= kept.work
            self._place[mine[~kept.bins]] = -1
            self._keepable[worker] = min(self._keepable[worker], kept.bound)

    def bound(self) -> float:
        """No plan moves less: the workers that could keep most stay, and each keeps as much as it can."""
        most = np.sort(self._keepable)[::-1][: self._task.problem.workers].sum()
        return max(0.0, float(self._task.problem.sizes.sum() - most))

    def plan(self) -> Ints | None:
        """The plan in which nobody gives up more than this, where that can be packed.

        ``None`` if nothing could.
        """
        problem, home, place = self._task.problem, self._task.home, self._place.copy()
        keeps = np.bincount(place[place >= 0], problem.weights[place >= 0], len(self._task.candidates))
        leaving = np.argsort(-keeps, kind="stable")[problem.workers :]
        place[np.isin(place, leaving)] = -1
        room = np.full(len(keeps), self._limit)
        room[leaving] = -np.inf
        plans = (
            packing.settled(place, home, problem.weights, problem.loads, room, tight=tight)
            for tight in (False, True)
        )
        return min((plan for plan in plans if plan is not None), key=self._task.moved, default=None)
