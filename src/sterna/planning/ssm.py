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
goes to: the one that it begins in, one that it covers, or the one that it ends in. Each of these is a number
of the begin plus a number of the end, so the best begin is where the former is largest in a window, and
maxima of windows are looked up in a table of maxima over powers of two. That takes O(m n' (log m + c)) time
and O(m (n' + log m + c)) space, where c is how many old intervals fit whole into one new one; the paper takes
O(m² n') and O(m n'). Pieces that keep nothing go to whoever is left.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sterna.errors import InvalidInput
from sterna.planning.assigning import unused
from sterna.planning.plan import Numbers, Plan, Problem, Workers, before

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Piece = tuple[int, int, int]
NEVER = -np.inf


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
    pieces = _traced(_best(runs, first, workers), runs, first)
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


def _best(runs: _Runs, first: Ints, workers: int) -> Floats:
    """For each number of pieces and each place of the last cut, the most that is kept to the left of it.

    It is told apart whether the run that the cut lies in has got a piece already. A cut between two runs lies
    in neither, so it counts as not.
    """
    workers = min(workers, runs.count)
    best = np.full((workers + 1, 2, runs.count + 1), NEVER)
    best[0, 0, 0] = 0.0
    steps = _Steps(runs, first)
    for pieces in range(1, workers + 1):
        steps.forward(best[pieces - 1], best[pieces])
    return best


class _Steps:
    """Adds one more piece, whatever its end.

    It takes maxima over windows of begins, of what a begin has, plus what an end adds.
    """

    FREE, TAKEN, FREE_LESS_HELD, EITHER, FREE_AND_REST = range(5)
    """What is looked up of a begin.

    That is the best with its run free, with its run taken, the former less what is held before, the better of
    the first two, and the first with what the run still has.
    """

    def __init__(self, runs: _Runs, first: Ints) -> None:
        self._runs = runs
        self._rest = runs.overlap(np.arange(runs.count), runs.count, runs.of)
        rows = self._rows(first[1:])
        low, high, self._added = (np.stack(part) for part in zip(*(row[1:] for row in rows), strict=True))
        empty = low > high
        self._added[empty] = NEVER
        low[empty] = high[empty] = 0
        levels = np.frexp(high - low + 1)[1] - 1
        what = np.array([row[0] for row in rows])[:, None]
        self._table = np.empty((int(levels.max()) + 1, 5, runs.count))
        offset = (levels * 5 + what) * runs.count
        self._left, self._right = offset + low, offset + high + 1 - (1 << levels)

    def _rows(self, first: Ints) -> list[tuple[int, Ints, Ints, Floats]]:
        """Which begins each end looks at, and for what.

        Each is (what, lowest begin, highest begin, what the end adds). The first three lead to a run that is
        taken.
        """
        runs, end = self._runs, np.arange(1, self._runs.count + 1)
        last = runs.of
        start, nothing = runs.starts[last], np.zeros(runs.count)
        inner, held = np.maximum(first, start), runs.held[end]
        goes_on = np.where(runs.stays[last], 0.0, NEVER)
        rows = [
            (self.TAKEN, inner, end - 1, nothing),
            (self.FREE_LESS_HELD, inner, end - 1, held + goes_on),
            (self.EITHER, first, start - 1, held - runs.held[start] + goes_on),
            (self.FREE, inner, end - 1, nothing),
            (self.FREE_AND_REST, first, start - 1, nothing),
            (self.EITHER, first, start - 1, nothing),
        ]
        covered = last - runs.of[first]
        for further in range(1, int(covered.max())):
            run = np.minimum(runs.of[first] + further, len(runs.starts) - 1)
            rows.append(
                (
                    self.EITHER,
                    first,
                    runs.starts[run] - 1,
                    np.where(further < covered, runs.whole[run], NEVER),
                )
            )
        return rows

    def forward(self, old: Floats, new: Floats) -> None:
        """From the best with some pieces to the best with one more."""
        runs, table = self._runs, self._table
        table[0, : self.FREE_LESS_HELD] = old[:, :-1]
        np.subtract(old[0, :-1], runs.held[:-1], out=table[0, self.FREE_LESS_HELD])
        np.maximum(old[0, :-1], old[1, :-1], out=table[0, self.EITHER])
        np.add(old[0, :-1], self._rest, out=table[0, self.FREE_AND_REST])
        for level in range(1, len(table)):
            half, wide = 1 << (level - 1), runs.count - (1 << level) + 1
            np.maximum(
                table[level - 1, :, :wide],
                table[level - 1, :, half : half + wide],
                out=table[level, :, :wide],
            )
        flat = table.reshape(-1)
        found = np.maximum(flat.take(self._left), flat.take(self._right))
        found += self._added
        np.max(found[3:], axis=0, out=new[0, 1:])
        np.max(found[:3], axis=0, out=new[1, 1:])
        new[0, runs.ends] = np.maximum(new[0, runs.ends], new[1, runs.ends])
        new[1, runs.ends] = NEVER


def _traced(best: Floats, runs: _Runs, first: Ints) -> list[Piece]:
    """The pieces of the best partitioning, from the left.

    Each is (first bin, end, the old run whose worker gets it, or -1).
    """
    end, taken = runs.count, 0
    out: list[Piece] = []
    for pieces in range(int(np.argmax(best[:, 0, end])), 0, -1):
        low = int(first[end])
        row = best[pieces - 1, :, low:end] + _gains(runs, low, end, taken)
        before_taken, place = np.unravel_index(int(np.argmax(row)), row.shape)
        begin = low + int(place)
        out.append((begin, end, _heir(runs, begin, end, int(before_taken), taken)))
        end, taken = begin, int(before_taken)
    return out[::-1]


def _gains(runs: _Runs, low: int, end: int, taken: int) -> Floats:
    """What a piece keeps that ends here, from each begin on, whose run is free (first row) or taken.

    ``taken`` says whether the run that it ends in is so afterwards.
    """
    begin = np.arange(low, end)
    run, last = runs.of[low:end], int(runs.of[end - 1])
    inside, same = end < runs.ends[last], run == last
    left, right = runs.overlap(begin, end, run), runs.overlap(begin, end, last)
    if taken:
        return np.stack([right, np.where(same, 0.0, right)])
    # The largest run between the one that the piece begins in and the one that it ends in.
    between = np.zeros(last + 1)
    between[: max(0, last - 1)] = np.maximum.accumulate(runs.whole[1:last][::-1])[::-1]
    middle = between[run] if inside else np.where(same, 0.0, np.maximum(between[run], right))
    free = np.where(same, 0.0 if inside else left, np.maximum(left, middle))
    return np.stack([free, np.where(same, NEVER if inside else 0.0, middle)])


def _heir(runs: _Runs, begin: int, end: int, before_taken: int, taken: int) -> int:
    """The old run whose worker gets a piece, by the same rules as the gains; -1 for anybody."""
    run, last = int(runs.of[begin]), int(runs.of[end - 1])
    inside = end < runs.ends[last]
    if taken:
        return -1 if run == last and before_taken else last
    if run == last:
        options = [] if inside or before_taken else [run]
    else:
        options = list(range(run + before_taken, last + (not inside)))
    kept = [(float(runs.overlap(begin, end, one)), -one) for one in options]
    most = max(kept, default=(0.0, 1))
    return -most[1] if most[0] > 0 else -1
