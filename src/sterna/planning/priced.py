"""The best next partitionings for many old ones at once, where intervals have prices besides what moves.

The same dynamic programme as the single-step plan's: bins are cut from left to right, and of the past it
matters only how many pieces there are and whether the old interval that the last cut lies in has got one. A
price that belongs to one interval is one more term of a piece. So a guess of what a partitioning will cost
later, if it is a sum over its intervals, is minimised together with what moves now, over all partitionings
that there are. Without prices this is the single-step plan.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sterna.planning.plan import before, limit_of, reach

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
TOGETHER = 64
"""So many old partitionings are looked at at once: what is known of them stays in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """The intervals that are light enough: for each end those that begin at most ``width`` bins before it.

    Attributes:
        begins: for each end, the begins that are looked at, the nearest last; may be negative.
        light: which of these intervals there are, and none of them too heavy.
        held: the state before each bin.
        workers: how many intervals there may be.
    """

    begins: Ints
    light: npt.NDArray[np.bool_]
    held: Floats
    workers: int

    @classmethod
    def of(cls, sizes: Floats, loads: Floats, workers: int, tau: float) -> Pieces:
        """Of bins for so many workers, none of whom gets more than (1 + tau) times the mean load."""
        first = reach(before(loads), limit_of(float(loads.sum()), workers, tau))
        ends = np.arange(len(first))
        width = max(1, int((ends - first).max()))
        begins = ends[:, None] - width + np.arange(width)
        return cls(begins, begins >= first[:, None], before(sizes), workers)

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return len(self.held) - 1

    def laid_out(self, prices: Floats) -> Floats:
        """Prices of intervals that were longer or shorter at most, as those of these.

        What is longer than any that had a price has that of the longest with the same end.
        """
        more = self.begins.shape[1] - prices.shape[1]
        return np.pad(prices, ((0, 0), (more, 0)), "edge") if more > 0 else prices[:, -more:]


def following(old: Ints, pieces: Pieces, prices: Floats | None = None) -> Ints:
    """For each old partitioning the next one that is best: least state moved plus prices of its intervals.

    Args:
        old: a row of cuts for each old partitioning.
        pieces: the intervals that there may be.
        prices: what each of them costs, laid out as ``pieces.begins``, for all old partitionings alike or for
            each of them; nothing unless given.

    Returns:
        A row of cuts for each; intervals that are empty come at the end.

    Example:
        >>> pieces = Pieces.of(np.ones(6), np.ones(6), workers=3, tau=0)
        >>> following(np.array([[0, 4, 6]]), pieces).tolist()
        [[0, 2, 4, 6]]
    """
    if prices is None:
        prices = np.zeros(pieces.begins.shape)
    each = np.broadcast_to(prices, (len(old), *pieces.begins.shape))
    parts = [
        _following(old[at : at + TOGETHER], pieces, each[at : at + TOGETHER])
        for at in range(0, len(old), TOGETHER)
    ]
    return np.concatenate(parts) if parts else np.empty((0, pieces.workers + 1), np.int64)


def _following(old: Ints, pieces: Pieces, prices: Floats) -> Ints:
    gains = _gains(old, pieces)
    gains -= prices[:, None, None]
    count, width = pieces.begins.shape
    # best[k, :, b, width + x]: the most that the first x bins in k pieces are worth; b: the old interval that
    # x lies in has got one.
    best = np.full((pieces.workers + 1, len(old), 2, width + count), -np.inf)
    best[0, :, 0, width] = 0.0
    for many in range(1, pieces.workers + 1):
        back = np.lib.stride_tricks.sliding_window_view(best[many - 1], width, axis=2)[:, :, :count]
        best[many, :, :, width:] = (back[:, :, None] + gains).max(axis=4).max(axis=1)
    return _traced(best, gains, pieces)


def _traced(best: Floats, gains: Floats, pieces: Pieces) -> Ints:
    """The cuts of the best, from the right."""
    width, bins = gains.shape[-1], pieces.bins
    every = np.arange(best.shape[1])
    many = best[:, :, 0, width + bins].argmax(axis=0)
    end, taken = np.full(len(every), bins), np.zeros(len(every), np.int64)
    rows = np.full((len(every), pieces.workers + 1), bins)
    for _ in range(pieces.workers):
        window = end[:, None] + np.arange(width)
        back = best[np.maximum(many - 1, 0)[:, None], every[:, None], :, window].transpose(0, 2, 1)
        row = (back + gains[every, :, taken, end]).reshape(len(every), -1)
        place = row.argmax(axis=1)
        more = many > 0
        end = np.where(more, end - width + place % width, end)
        taken = np.where(more, place // width, taken)
        many = np.maximum(many - 1, 0)
        rows[every[more], many[more]] = end[more]
    return rows


def _gains(old: Ints, pieces: Pieces) -> Floats:
    """What a piece keeps.

    There is a number for each old partitioning, whether the interval that it begins in and that which it ends
    in is taken, each end and each begin; -inf where that can't be.
    """
    held, bins = pieces.held, pieces.bins
    begin = np.maximum(pieces.begins, 0)
    end = np.arange(bins + 1)[:, None]
    run = (old[:, 1:, None] <= np.arange(bins)).sum(axis=1)
    starts, ends = np.take_along_axis(old[:, :-1], run, 1), np.take_along_axis(old[:, 1:], run, 1)
    at, before_end = np.minimum(begin, bins - 1), np.maximum(end - 1, 0)
    same = starts[:, at] == starts[:, before_end]
    inside = np.broadcast_to(end < ends[:, before_end], same.shape)
    left = held[np.minimum(ends[:, at], end)] - held[begin]
    right = held[end] - held[np.maximum(begin, starts[:, before_end])]
    every = np.arange(len(old))[:, None, None]
    middle = _largest_between(old, held)[every, run[:, at], run[:, before_end]]
    other = np.maximum(middle, np.where(inside, 0.0, right))
    never = -np.inf
    gains = np.empty((len(old), 2, 2, *pieces.begins.shape))
    gains[:, 0, 0] = np.where(same, np.where(inside, 0.0, left), np.maximum(left, other))
    gains[:, 1, 0] = np.where(same, np.where(inside, never, 0.0), other)
    gains[:, 0, 1] = np.where(inside, right, never)
    gains[:, 1, 1] = np.where(inside, np.where(same, 0.0, right), never)
    gains[..., ~pieces.light] = never
    return gains


def _largest_between(old: Ints, held: Floats) -> Floats:
    """For each pair of old intervals the state of the largest that lies between them; 0 if none does."""
    whole = np.diff(held[old], axis=1)
    count = whole.shape[1]
    out = np.zeros((len(old), count, count))
    for first in range(count - 2):
        out[:, first, first + 2 :] = np.maximum.accumulate(whole[:, first + 1 : -1], axis=1)
    return out
