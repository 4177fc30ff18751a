"""The best sequence of migrations for a list of worker counts that is known ahead.

OMS, §5.1 of the paper on optimal operator-state migration. In: as for ``ssm``, and the worker counts to come.
Out: a plan for each. Only the partitioning matters to what comes later, not who has which interval, so the
best way through all feasible partitionings, one for each step, is a shortest path. Those that cost more than
one optimal step after the other does in all are left out; the others are all looked at: exact, and for few
bins. ``InvalidInput`` says so where there are too many.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sterna.configuration import check_workers
from sterna.errors import InvalidInput
from sterna.planning.assigning import assigned
from sterna.planning.checks import listed
from sterna.planning.overlap import kept
from sterna.planning.plan import Numbers, Plan, Problem, Workers, before, check_feasible, limit_of, reach
from sterna.planning.ssm import ssm

MOST = 200_000
"""Partitionings of one step."""
MOST_PAIRS = 200_000_000
"""Pairs of partitionings of two steps, one after the other: ten seconds or so."""
BLOCK = 1 << 20

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def partitionings(loads: Floats, workers: int, tau: float, most: int = MOST) -> Ints:
    """All ways to cut bins into at most so many intervals, none heavier than (1 + tau) times the mean.

    Returns:
        A row of cuts for each, in order; empty intervals are at the end. No row if there is no way.

    Raises:
        InvalidInput: there are more than ``most``.

    Example:
        >>> partitionings(np.ones(4), 2, 0.5).tolist()
        [[0, 1, 4], [0, 2, 4], [0, 3, 4]]
    """
    count, load_before = len(loads), before(np.asarray(loads, np.float64))
    first = reach(load_before, limit_of(float(load_before[-1]), workers, tau))
    # The first begin from which so many intervals are enough, and the last end that one interval reaches from
    # a begin.
    enough = np.array(
        list(itertools.accumulate(range(workers), lambda end, _: int(first[end]), initial=count))
    )
    furthest = np.searchsorted(first, np.arange(count + 1), "right") - 1
    if enough[workers] > 0:
        return np.empty((0, workers + 1), np.int64)
    found = _how_many(furthest, workers)
    if found > most:
        raise InvalidInput(
            f"there are {found:.3g} partitionings of {count} bins into {workers} intervals, more than "
            f"{most:,}: too many to look at all of them; join bins, or ask for a smaller tau"
        )
    rows = np.zeros((1, 1), np.int64)
    for left in range(workers - 1, -1, -1):
        last = rows[:, -1]
        low = np.maximum(np.minimum(last + 1, count), enough[left])
        many = furthest[last] - low + 1
        row = np.repeat(np.arange(len(rows)), many)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
        rows = np.column_stack([rows[row], low[row] + nth])
    return rows


def _how_many(furthest: Ints, workers: int) -> float:
    """How many partitionings there are, if an interval can reach so far from each begin."""
    count = len(furthest) - 1
    ways = np.zeros(count + 1)
    ways[count] = 1.0
    begins = np.arange(count)
    for _ in range(workers):
        beyond = before(ways)
        ways[:count] = beyond[furthest[:count] + 1] - beyond[begins + 1]
    return float(ways[0])


def sequence(
    assignment: Workers,
    sizes: Numbers,
    loads: Numbers,
    counts: Sequence[int],
    tau: float | str,
) -> list[Plan]:
    """A plan for each of the worker counts to come, in order: the least state moved in all of them together.

    Args:
        assignment: the worker of each bin now.
        sizes: how much state each bin has.
        loads: how much work each bin is.
        counts: how many workers there will be after the first migration, the second, and so on.
        tau: how much more than the mean a worker may get, at every step; ``"least"`` for the least that is
            possible at each.

    Raises:
        InvalidInput: an entry is wrong, or there are too many partitionings.
        Unbalanceable: at one of the counts no partitioning is that even; the least tau for all is named.

    Example:
        >>> bins = {"assignment": [0, 1, 1, 1, 1, 1], "sizes": [1] * 6, "loads": [1] * 6, "tau": 0.5}
        >>> [plan.moved for plan in sequence(**bins, counts=[3, 4])]
        [2.0, 1.0]
        >>> ssm(**bins, workers=3).moved  # as much now, and 2 more later
        2.0
    """
    steps = listed("counts", counts)
    if not steps:
        raise InvalidInput("a sequence needs at least one worker count")
    problems = [Problem.of(assignment, sizes, loads, _count(at, count)) for at, count in enumerate(steps)]
    if not isinstance(tau, str):
        check_feasible(problems, tau)
    taus = [one.resolved(tau) for one in problems]
    problem, weight_before = problems[0], before(problems[0].weights)
    ceiling = _one_by_one(problem, steps, taus)
    stages = [partitionings(problem.loads, *step) for step in zip(steps, taus, strict=True)]
    cost = weight_before[-1] - kept(problem.cuts[None], stages[0], weight_before)[0]
    origins: list[Ints] = []
    for step in range(1, len(stages)):
        cheap = cost <= ceiling
        stages[step - 1], cost = stages[step - 1][cheap], cost[cheap]
        if origins:
            origins[-1] = origins[-1][cheap]
        cost, origin = _onward(cost, stages[step - 1], stages[step], weight_before)
        origins.append(origin)
    rows = _traced(int(np.argmin(cost)), origins)
    plans, owners = [], problem.owners
    for stage, row, allowed in zip(stages, rows, taus, strict=True):
        plans.append(assigned(owners, problem.sizes, stage[row], allowed))
        owners = plans[-1].assignment
    return plans


def _count(at: int, count: int) -> int:
    """A worker count; an error names its place."""
    try:
        return check_workers(count)
    except InvalidInput as error:
        raise InvalidInput(f"counts[{at}]: {error}") from error


def _one_by_one(problem: Problem, counts: Sequence[int], taus: Sequence[float]) -> float:
    """What one optimal step after the other costs, and a little more for rounding.

    No best sequence costs more.
    """
    owners, cost = problem.owners, 0.0
    for count, tau in zip(counts, taus, strict=True):
        after = ssm(owners, problem.weights, problem.loads, count, tau).assignment
        cost += float(problem.weights[owners != after].sum())
        owners = after
    return cost + 1e-9 * float(problem.weights.sum())


def _onward(cost: Floats, earlier: Ints, later: Ints, weight_before: Floats) -> tuple[Floats, Ints]:
    """The least cost of reaching each later partitioning, and from which earlier one.

    It is done in blocks, because there may be many pairs.
    """
    if len(earlier) * len(later) > MOST_PAIRS:
        raise InvalidInput(
            f"there are {len(earlier):,} ways for one step and {len(later):,} for the next: too many to look "
            "at all pairs; join bins, or ask for a smaller tau"
        )
    best, origin = np.full(len(later), np.inf), np.zeros(len(later), np.int64)
    rows = max(1, BLOCK // len(later))
    for start in range(0, len(earlier), rows):
        some = earlier[start : start + rows]
        total = cost[start : start + rows, None] + weight_before[-1] - kept(some, later, weight_before)
        first = total.argmin(axis=0)
        least = total[first, np.arange(len(later))]
        better = least < best
        best[better], origin[better] = least[better], first[better] + start
    return best, origin


def _traced(place: int, origins: Sequence[Ints]) -> list[int]:
    """The row of each step on the way to a row of the last one."""
    rows = [place]
    for origin in reversed(origins):
        rows.append(int(origin[rows[-1]]))
    return rows[::-1]
