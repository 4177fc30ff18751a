"""The optimal single-step migration: as little state as possible moves.

It tells which contiguous intervals of bins the workers should have next.

After §4 of the paper on optimal operator-state migration (Ding et al.). In: the worker of each bin now,
intervals all of them; for each bin its state's size and its load; how many workers there will be; how uneven
the load may be. Out: a plan. No worker's load exceeds (1 + tau) times the mean; among all such plans it keeps
most state where it is; among those it moves fewest bins, as far as rounding lets one see that, and among
those it is the first in a fixed order: the same input gives the same plan. Workers that stay keep their
numbers. Where there will be fewer of them, the plan chooses who leaves, as in the paper, or, with
``leaving="last"``, those with the highest numbers do, as in a query's ``rescale``.

How. Bins are cut from left to right. Where a cut falls inside the interval of an old worker, it matters
whether that worker has got the piece to the left of it; nothing else of the past does. So the best way to cut
the first x bins into k pieces is known for every x, k and this one bit: O(m n') numbers. Each follows from
those at the begins within reach of one piece. What a piece keeps is its overlap with the one old worker it
goes to: the one that it begins in, the largest one that it covers, or the one that it ends in. Each of these
is a number of the begin plus a number of the end, so the best begin is where the former is largest in a
window; windows only move to the right, so the maxima of all of them take linear time (``windows``). That is
O(m n') time and space; the paper takes O(m² n') and O(m n'). Pieces that keep nothing go to whoever is left.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sterna.errors import InvalidInput
from sterna.planning.assigning import unused
from sterna.planning.plan import Numbers, Plan, Problem, Workers, before
from sterna.planning.windows import NEVER, Blocks, Running, Windows

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Piece = tuple[int, int, int]


def ssm(
    assignment: Workers,
    sizes: Numbers,
    loads: Numbers,
    workers: int,
    tau: float | str,
    leaving: str = "any",
) -> Plan:
    """The best next partitioning; see the module's docstring.

    Args:
        assignment: the worker of each bin now.
        sizes: how much state each bin has.
        loads: how much work each bin is.
        workers: how many workers there will be; more than bins leaves some without any.
        tau: how much more than the mean a worker may get; ``"least"`` for the least that is possible.
        leaving: who may leave where there will be fewer workers: ``"any"``, or the ``"last"``, numbers
            ``workers`` and above.

    Raises:
        InvalidInput: an entry is wrong; it is named.
        Unbalanceable: no partitioning is that even; the least tau that is possible is named.

    Example:
        >>> plan = ssm([0, 0, 0, 0, 1, 1], [1] * 6, [1] * 6, workers=3, tau=0)
        >>> plan.assignment.tolist(), plan.moved
        ([2, 2, 0, 0, 1, 1], 2.0)
    """
    if leaving not in ("any", "last"):
        raise InvalidInput(f"leaving is {leaving!r}: it must be 'any' or 'last'")
    problem = Problem.of(assignment, sizes, loads, workers)
    runs = _Runs(problem, last_leave=leaving == "last")
    tau = problem.resolved(tau)
    first = problem.reach(problem.limit(tau))
    ranges = _Ranges(runs, first, workers)
    pieces = _traced(_best(runs, first, ranges), runs, first, ranges)
    free = unused(problem.owners, [runs.worker(run) for *_, run in pieces if run >= 0], runs.below)
    new = np.empty(len(problem.owners), np.int64)
    for begin, end, run in pieces:
        new[begin:end] = runs.worker(run) if run >= 0 else next(free)
    return Plan.of(problem.owners, new, problem.sizes, tau, problem.workers)


class _Runs:
    """The intervals of the old workers, from left to right, and what they hold."""

    def __init__(self, problem: Problem, *, last_leave: bool) -> None:
        self.count = len(problem.owners)
        self.starts, self.ends = problem.cuts[:-1], problem.cuts[1:]
        self.of = np.repeat(np.arange(len(self.starts)), self.ends - self.starts)
        self.held = before(problem.weights)
        self.below = problem.workers if last_leave else None
        self._workers = problem.owners[self.starts]
        self.stays = self._workers < problem.workers if last_leave else np.ones(len(self.starts), np.bool_)
        self.whole = np.where(self.stays, self.held[self.ends] - self.held[self.starts], 0.0)

    def worker(self, run: int) -> int:
        """The number of the worker that a run belongs to."""
        return int(self._workers[run])

    def overlap(self, begin: Ints | int, end: Ints | int, run: Ints | int) -> Floats:
        """What the worker of a run would keep of a piece."""
        right, left = np.minimum(end, self.ends[run]), np.maximum(begin, self.starts[run])
        return np.where(self.stays[run], self.held[right] - self.held[left], 0.0)


class _Ranges:
    """Where the cut after so many pieces can be: at least so far, and at most.

    A cut is no further than the pieces reach, and not so near that those which are left don't reach the end.
    More pieces than as few as all bins fit into and two for each run are of no use: those that keep something
    are one for each run at most, and what they leave over can be cut like those few, and where they begin.
    """

    def __init__(self, runs: _Runs, first: Ints, workers: int) -> None:
        last = np.searchsorted(first, np.arange(runs.count + 1), "right") - 1
        far = [0]
        while far[-1] < runs.count:
            far.append(int(last[far[-1]]))
        self.pieces = min(workers, runs.count, len(far) - 1 + 2 * len(runs.starts))
        near = [runs.count]
        while near[-1] > 0:
            near.append(int(first[near[-1]]))
        left = [*([0] * (self.pieces + 1 - len(near))), *near[::-1]]
        self.low = [max(pieces, at) for pieces, at in enumerate(left[-self.pieces - 1 :])]
        self.high = [*far, *([runs.count] * (self.pieces + 1 - len(far)))]


def _best(runs: _Runs, first: Ints, ranges: _Ranges) -> Floats:
    """For each number of pieces and each place of the last cut, the most that is kept to the left of it.

    It is told apart whether the run that the cut lies in has got a piece already. A cut between two runs lies
    in neither, so it counts as not.
    """
    best = np.full((ranges.pieces + 1, 2, runs.count + 1), NEVER)
    best[0, 0, 0] = 0.0
    steps = _Steps(runs, first)
    for pieces in range(1, ranges.pieces + 1):
        steps.forward(best[pieces - 1], best[pieces], ranges.low[pieces - 1], ranges.high[pieces])
    return best


class _Steps:
    """Adds one more piece, whatever its end.

    It takes maxima over windows of begins, of what a begin has, plus what an end adds.
    """

    FREE, TAKEN, FREE_LESS_HELD, EITHER, FREE_AND_REST = range(5)
    """What is looked up of a begin.

    That is the best with its run free; with its run taken; with its run free, less what is held before; the
    better of free and taken; with its run free, and what that still has. The first three are looked up in the
    run that the piece ends in, the others before it.
    """

    def __init__(self, runs: _Runs, first: Ints) -> None:
        self._runs, first, end = runs, first[1:], np.arange(1, runs.count + 1)
        start = runs.starts[runs.of]
        same = Windows(np.maximum(first, start), end, runs.count)
        earlier = Windows(first, start, runs.count)
        rows = [same] * 3 + [earlier] * 2
        kinds = [(same.blocks, 3), (earlier.blocks, 2)]
        self._left, self._right = Running(kinds, from_right=True), Running(kinds, from_right=False)
        self._left_at = np.stack([self._left.at(what, row.left) for what, row in enumerate(rows)])
        self._right_at = np.stack([self._right.at(what, row.right) for what, row in enumerate(rows)])
        self._any_left = bool((same.left >= 0).any() or (earlier.left >= 0).any())
        self._rest = runs.overlap(end - 1, runs.count, runs.of)
        goes_on = np.where(runs.stays[runs.of], 0.0, NEVER)
        self._added = np.stack([runs.held[end], runs.held[end] - runs.held[start]]) + goes_on
        at_cut = end == runs.ends[runs.of]
        self._at_cut, self._elsewhere = np.where(at_cut, 0.0, NEVER), np.where(at_cut, NEVER, 0.0)
        self._values = np.empty((5, runs.count))
        self._between(earlier)

    def _between(self, earlier: Windows) -> None:
        """For the runs that lie whole in a piece; a run counts to the block that it begins in."""
        runs, many, of = self._runs, len(self._runs.starts), earlier.blocks.of
        blocks = Blocks.cut((np.flatnonzero(np.diff(of[runs.starts])) + 1).tolist(), many)
        right, left = Running([(blocks, 1)], from_right=False), Running([(blocks, 1)], from_right=True)
        # The last run before the one that the piece ends in, if it is in the same block as its end.
        place, last = earlier.right, runs.of - 1
        there = (place >= 0) & (of[runs.starts[last]] == of[place])
        self._covered, self._covered_at = right, right.at(0, np.where(there, last, -1))
        self._whole_right = right.maxima(runs.whole, 0, many)[self._covered_at]
        following = np.minimum(runs.of + 1, many - 1)
        there = (runs.of + 1 < many) & (of[runs.starts[following]] == of)
        self._whole_left = left.maxima(runs.whole, 0, many)[left.at(0, np.where(there, following, -1))]
        ahead = np.where(earlier.blocks.first[runs.starts] < runs.starts, runs.starts - 1, -1)
        self._ahead = self._right.at(self.EITHER, ahead)

    def forward(self, old: Floats, new: Floats, low: int, high: int) -> None:
        """From the best with some pieces to the best with one more: begins and ends from low to high."""
        runs, here = self._runs, slice(low, high)
        values, before_it, after_it = self._values[:, here], old[:, here], new[:, low + 1 : high + 1]
        values[: self.FREE_LESS_HELD] = before_it
        free, taken = before_it[0], before_it[1]
        np.subtract(free, runs.held[here], out=values[self.FREE_LESS_HELD])
        either = np.maximum(free, taken, out=values[self.EITHER])
        rest = np.add(free, self._rest[here], out=values[self.FREE_AND_REST])
        right = self._right.maxima(values, low, high)
        found = right.take(self._right_at[:, here])
        free, taken = after_it[0], after_it[1]
        # A run that lies whole in the piece may be right of a window's cut, with the begin right of the cut
        # or left of it, or both may be left of it.
        free[:] = self._over_runs(right, low, high)
        if self._any_left:
            np.maximum(rest, either + self._whole_left[here], out=rest)
            left = self._left.maxima(values, low, high).take(self._left_at[:, here])
            np.maximum(free, left[self.EITHER] + self._whole_right[here], out=free)
            np.maximum(found, left, out=found)
        np.maximum(free, found[self.FREE], out=free)
        np.maximum(free, found[self.EITHER], out=free)
        np.maximum(free, found[self.FREE_AND_REST], out=free)
        found[self.FREE_LESS_HELD : self.FREE_AND_REST] += self._added[:, here]
        np.maximum.reduce(found[self.TAKEN : self.FREE_AND_REST], axis=0, out=taken)
        # A cut between two runs lies in neither.
        np.maximum(free, taken + self._at_cut[here], out=free)
        taken += self._elsewhere[here]

    def _over_runs(self, right: Floats, low: int, high: int) -> Floats:
        """The best with a run that lies whole in the piece, if it and the begin are right of the cut."""
        runs = self._runs
        one, other = int(runs.of[low]), int(runs.of[high - 1]) + 1
        values = runs.whole[one:other] + right.take(self._ahead[one:other])
        return self._covered.maxima(values, one, other).take(self._covered_at[low:high])


def _traced(best: Floats, runs: _Runs, first: Ints, ranges: _Ranges) -> list[Piece]:
    """The pieces of the best partitioning, from the left.

    Each is (first bin, end, the old run whose worker gets it, or -1).
    """
    end, taken = runs.count, 0
    out: list[Piece] = []
    for pieces in range(int(np.argmax(best[:, 0, end])), 0, -1):
        low, high = max(int(first[end]), ranges.low[pieces - 1]), min(end, ranges.high[pieces - 1] + 1)
        row = best[pieces - 1, :, low:high] + _gains(runs, low, high, end, taken)
        before_taken, place = divmod(int(row.argmax()), high - low)
        begin = low + place
        out.append((begin, end, _heir(runs, begin, end, before_taken, taken)))
        end, taken = begin, before_taken
    return out[::-1]


def _gains(runs: _Runs, low: int, high: int, end: int, taken: int) -> Floats:
    """What a piece keeps that ends here, from each begin on, whose run is free (first row) or taken.

    ``taken`` says whether the run that it ends in is so afterwards.
    """
    run, last = runs.of[low:high], int(runs.of[end - 1])
    first, start = int(run[0]), int(runs.starts[last])
    inside, same = end < runs.ends[last], run == last
    right = runs.held[end] - np.maximum(runs.held[low:high], runs.held[start])
    if not runs.stays[last]:
        right[:] = 0.0
    if taken:
        return np.array([right, np.where(same, 0.0, right)])
    left = runs.overlap(np.arange(low, high), end, run)
    # The largest run between the one that the piece begins in and the one that it ends in.
    between = np.zeros(last + 1 - first)
    between[: max(0, last - first - 1)] = np.maximum.accumulate(runs.whole[first + 1 : last][::-1])[::-1]
    middle = between[run - first]
    if not inside:
        middle = np.where(same, 0.0, np.maximum(middle, right))
    free = np.where(same, 0.0 if inside else left, np.maximum(left, middle))
    return np.array([free, np.where(same, NEVER if inside else 0.0, middle)])


def _heir(runs: _Runs, begin: int, end: int, before_taken: int, taken: int) -> int:
    """The old run whose worker gets a piece, by the same rules as the gains; -1 for anybody."""
    run, last = int(runs.of[begin]), int(runs.of[end - 1])
    inside = end < runs.ends[last]
    if taken:
        return -1 if run == last and before_taken else last
    if run == last:
        return run if not inside and not before_taken and runs.overlap(begin, end, run) > 0 else -1
    options = np.arange(run + before_taken, last + (not inside))
    kept = runs.overlap(begin, end, options)
    return int(options[np.argmax(kept)]) if kept.max(initial=0.0) > 0 else -1
