"""The most state that a worker can keep within a limit of load: a knapsack.

Bins are ordered by their state for their load. Those from the best on that fit whole are kept at first; then
the bins next to where they end are put in or taken out, one after the other, to both sides. Of all that can
come of this, only what no other choice beats in load and in state is remembered, and only while it may still
come to something better than the best so far (after Pisinger's MINKNAP). That decides thousands of bins in
milliseconds, mostly. Where there is too much to remember, some of it is forgotten; what it could still have
come to remains the bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
CLOSE = 1e-7
"""What would give up less by no more than this part is not looked for."""
NOTHING = 1e-18
"""A bin with no more than this part of the limit stays: it makes no difference."""
AT_ONCE = 1 << 15
"""So many choices are remembered."""


@dataclass(frozen=True, eq=False)
class Kept:
    """A choice of bins.

    Attributes:
        bins: for each bin whether it stays.
        bound: no choice keeps more than this.
        work: how many choices were looked at.
    """

    bins: npt.NDArray[np.bool_]
    bound: float
    work: int


def most_kept(sizes: Floats, loads: Floats, limit: float, work: int = 1 << 24) -> Kept:
    """Which bins stay so that their load is within the limit and their state the most.

    Args:
        sizes: how much state each bin has.
        loads: how much load.
        limit: the most load that may stay.
        work: how many choices may be looked at in all.

    Example:
        >>> most_kept(np.array([6.0, 5.0, 5.0]), np.array([6.0, 5.0, 5.0]), 10.0).bins.tolist()
        [False, True, True]
    """
    unit = float(sizes.max()) or 1.0
    stays = loads <= NOTHING * limit
    open_ = np.flatnonzero(~stays & (loads <= limit))
    worth, load = sizes[open_] / unit, loads[open_] / (limit or 1.0)
    order = np.argsort(-worth / load, kind="stable")
    search = _Search(worth[order], load[order])
    done = 0
    while search.goes_on() and done < work:
        done += search.step()
    bins = stays.copy()
    bins[open_[order]] = search.chosen()
    return Kept(bins, search.bound() * unit + float(sizes[stays].sum()), done)


class _Search:
    """What is known while bins, the best for their load first, are put in or taken out.

    Loads are parts of the limit.

    A choice is its load and its state; choices are in the order of their load, and of their state too, as
    what is heavier and has no more is forgotten.
    """

    def __init__(self, sizes: Floats, loads: Floats) -> None:
        self._sizes, self._loads = sizes, loads
        self._ratio = sizes / loads
        self._all = float(sizes.sum())
        fits = int(np.searchsorted(np.cumsum(loads), 1.0, "right"))
        self._first, self._next = fits, fits
        self._load = np.array([loads[:fits].sum()])
        self._state = np.array([sizes[:fits].sum()])
        self._steps: list[tuple[int, int, Ints]] = []
        self._fits, self._best, self._best_at = fits, float(self._state[0]), (0, 0)
        self._forgotten = -np.inf

    def goes_on(self) -> bool:
        """Whether another choice may be better."""
        return len(self._load) > 0 and (self._first > 0 or self._next < len(self._loads))

    def step(self) -> int:
        """One more bin, put in if it was out and taken out if it was in; how many choices that was."""
        put = self._next < len(self._loads) and (self._first == 0 or len(self._steps) % 2 == 0)
        if put:
            bin_, sign = self._next, 1.0
            self._next += 1
        else:
            bin_, sign = self._first - 1, -1.0
            self._first -= 1
        load = np.concatenate([self._load, self._load + sign * self._loads[bin_]])
        state = np.concatenate([self._state, self._state + sign * self._sizes[bin_]])
        order = np.argsort(load, kind="stable")
        best_before = np.maximum.accumulate(np.concatenate([[-np.inf], state[order]]))[:-1]
        order = order[state[order] > best_before]
        many, self._load, self._state = len(self._load), load[order], state[order]
        self._note_best(order)
        hopeful = self._hopeful()
        self._steps.append((bin_, many, order[hopeful]))
        self._load, self._state = self._load[hopeful], self._state[hopeful]
        return len(load)

    def _note_best(self, order: Ints) -> None:
        at = int(np.searchsorted(self._load, 1.0, "right")) - 1
        if at >= 0 and self._state[at] > self._best:
            self._best, self._best_at = float(self._state[at]), (len(self._steps) + 1, int(order[at]))

    def _hopeful(self) -> Ints:
        """Which choices may come to something better.

        If there are too many, the most promising and those that fill the limit best.
        """
        could_be = self._could_be()
        hopeful = np.flatnonzero(could_be > self._close())
        if len(hopeful) <= AT_ONCE:
            return hopeful
        half = AT_ONCE // 2
        promising = np.argpartition(-could_be[hopeful], half)[:half]
        filling = np.argpartition(np.abs(1.0 - self._load[hopeful]), half)[:half]
        some = np.unique(np.concatenate([promising, filling]))
        self._forgotten = max(self._forgotten, float(np.delete(could_be[hopeful], some).max()))
        return np.asarray(hopeful[some])

    def _close(self) -> float:
        return self._best + CLOSE * (self._all - self._best)

    def _could_be(self) -> Floats:
        """What each choice could still come to, if parts of bins could be put in or taken out."""
        more = self._ratio[self._next] if self._next < len(self._ratio) else 0.0
        less = self._ratio[self._first - 1] if self._first else np.inf
        room = 1.0 - self._load
        with np.errstate(invalid="ignore"):
            return np.asarray(self._state + np.where(room >= 0, room * more, room * less))

    def bound(self) -> float:
        """No choice has more state."""
        left = float(self._could_be().max()) if self.goes_on() else -np.inf
        return max(self._close(), self._forgotten, left)

    def chosen(self) -> npt.NDArray[np.bool_]:
        """The bins of the best choice."""
        bins = np.arange(len(self._loads)) < self._fits
        step, at = self._best_at
        for bin_, many, _ in reversed(self._steps[:step]):
            step -= 1
            if at >= many:
                bins[bin_] = not bins[bin_]
                at -= many
            at = int(self._steps[step - 1][2][at]) if step else 0
        return bins
