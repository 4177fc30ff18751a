"""What others do, to compare with.

All take what ``ssm`` takes, in the same order, so that one loop can try them all; each looks at what it looks
at, and no more. They give a plan whose tau is the balance that came out, which may be worse than what was
asked for; ``"least"`` asks for the least tau of intervals, as in ``ssm``. Where there will be fewer workers,
those with the highest numbers leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import numpy.typing as npt

from sterna.errors import check_whole
from sterna.planning.checks import check_tau
from sterna.planning.plan import Numbers, Plan, Problem, Workers

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Baseline = Callable[[Workers, Numbers, Numbers, int, float | str], Plan]

VIRTUAL = 64
"""Points of a worker on the ring of consistent hashing."""


def storm(assignment: Workers, sizes: Numbers, loads: Numbers, workers: int, tau: float | str = 0.0) -> Plan:
    """Storm's default: as many bins for each worker, one after the other, wherever they are now.

    Example:
        >>> storm([0] * 8, [1] * 8, [1] * 8, 3).assignment.tolist()
        [0, 0, 0, 1, 1, 1, 2, 2]
    """
    problem = Problem.of(assignment, sizes, loads, workers)
    _limit(problem, tau)
    return _plan(problem, np.arange(len(problem.owners)) * workers // len(problem.owners))


def consistent(
    assignment: Workers,
    sizes: Numbers,
    loads: Numbers,
    workers: int,
    tau: float | str = 0.0,
    *,
    bounded: bool = False,
    virtual: int = VIRTUAL,
    seed: int = 0,
) -> Plan:
    """Consistent hashing: a bin belongs to the worker with the next point on a ring.

    Every worker has some points on it. Where bins are now makes no difference to where they go, so what moves
    is little only if the assignment before was made in the same way, with the same seed.

    Args:
        assignment: the worker of each bin now.
        sizes: how much state each bin has.
        loads: how much work each bin is; looked at only if ``bounded``.
        workers: how many workers there will be.
        tau: how much more than the mean a worker may get, if ``bounded``.
        bounded: whether a worker that has no room for a bin within this balance is passed over (Mirrokni,
            Thorup and Zadimoghaddam, 2018); a bin for which nobody has room goes to the worker with least.
        virtual: how many points a worker has.
        seed: which ring.
    """
    check_whole("virtual", virtual, 1)
    check_whole("seed", seed, 0)
    problem = Problem.of(assignment, sizes, loads, workers)
    limit = _limit(problem, tau)
    points = _mixed(np.arange(workers * virtual) + (1 << 31), seed)
    order = np.argsort(points, kind="stable")
    ring = np.repeat(np.arange(workers), virtual)[order]
    places = _mixed(np.arange(len(problem.owners)), seed)
    at = np.searchsorted(points[order], places) % len(points)
    if not bounded:
        return _plan(problem, ring[at])
    held, new = np.zeros(workers), np.empty(len(at), np.int64)
    for bin_ in np.argsort(places, kind="stable").tolist():
        after = np.roll(ring, -int(at[bin_]))
        room = held[after] + problem.loads[bin_] <= limit
        new[bin_] = after[np.argmax(room)] if room.any() else np.argmin(held)
        held[new[bin_]] += problem.loads[bin_]
    return _plan(problem, new)


def redist(assignment: Workers, sizes: Numbers, loads: Numbers, workers: int, tau: float | str) -> Plan:
    """In the manner of Gedik's Redist: everything is placed anew, the heaviest bin first.

    A bin is placed at home if that is within the balance asked, else where least is. All states count as
    equally large.
    """
    problem = Problem.of(assignment, sizes, loads, workers)
    limit, held = _limit(problem, tau), np.zeros(workers)
    new = np.empty(len(problem.owners), np.int64)
    for bin_ in np.argsort(-problem.loads, kind="stable").tolist():
        home, load = problem.owners[bin_], problem.loads[bin_]
        stays = home < workers and held[home] + load <= limit
        new[bin_] = home if stays else np.argmin(held)
        held[new[bin_]] += load
    return _plan(problem, new)


def flux(assignment: Workers, sizes: Numbers, loads: Numbers, workers: int, tau: float | str) -> Plan:
    """Flux's pairwise moves: the heaviest worker gives to the lightest, and so on.

    The heaviest gives the lightest the bin that makes both most alike, the second heaviest the second
    lightest, and so on. That is done again and again until all are within the balance asked or it helps
    nobody.
    """
    problem = Problem.of(assignment, sizes, loads, workers)
    limit = _limit(problem, tau)
    new = np.where(problem.owners < workers, problem.owners, -1)
    held = np.bincount(new[new >= 0], problem.loads[new >= 0], workers).astype(np.float64)
    for bin_ in np.flatnonzero(new < 0).tolist():  # whose worker leaves
        new[bin_] = np.argmin(held)
        held[new[bin_]] += problem.loads[bin_]
    for _ in range(len(new)):
        if not _paired(new, held, problem.loads, limit):
            break
    return _plan(problem, new)


def _paired(new: Ints, held: Floats, loads: Floats, limit: float) -> bool:
    """One move for each pair of a heavy and a light worker; whether there was one."""
    order = np.argsort(-held, kind="stable").tolist()
    moved = False
    for heavy, light in zip(order[: len(order) // 2], order[::-1], strict=False):
        gap = held[heavy] - held[light]
        mine = np.flatnonzero((new == heavy) & (loads > 0) & (loads < gap))
        if held[heavy] <= limit or not len(mine):
            continue
        best = mine[np.argmin(np.abs(gap - 2 * loads[mine]))]
        new[best] = light
        held[heavy] -= loads[best]
        held[light] += loads[best]
        moved = True
    return moved


BASELINES: Mapping[str, Baseline] = {
    "consistent hashing": consistent,
    "consistent hashing, bounded": partial(consistent, bounded=True),
    "redist": redist,
    "storm": storm,
    "flux": flux,
}
"""All of them, by name."""


def _limit(problem: Problem, tau: float | str) -> float:
    """The most load that a worker may have; the balance may not be possible."""
    least = isinstance(tau, str) and tau == "least"
    return problem.limit(problem.least_tau() if least else check_tau(tau))


def _plan(problem: Problem, new: Ints) -> Plan:
    """The plan, with the balance that came out."""
    heaviest = float(np.bincount(new, problem.loads).max())
    tau = problem.tau_of(heaviest)
    return Plan.of(problem.owners, new.astype(np.int64), problem.sizes, tau, problem.workers)


def _mixed(numbers: Ints, seed: int) -> npt.NDArray[np.uint64]:
    """Numbers spread over all 64 bits: the finish of splitmix64."""
    values = numbers.astype(np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15) % (1 << 64))
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
