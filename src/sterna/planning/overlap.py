"""How much state stays when one partitioning into intervals follows another.

That is the best matching of old intervals to new ones. The cuts of both, in order, part the bins into at most
n + n' - 1 segments, each in one old and one new interval: a staircase of pairs that overlap. To match a pair
is to choose its segment, and no two segments may be chosen that share an interval. Those that do follow each
other, so of the past it matters only whether the old interval that the walk is in has been matched, and
whether the new one has: one walk along the segments, for many pairs of partitionings at once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BLOCK = 1 << 14
"""So many pairs are looked at together: what is known about them stays in the processor's cache."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def kept(old: Ints, new: Ints, before: Floats) -> Floats:
    """The most state that can stay, for each pair of an old and a new partitioning.

    Args:
        old: a row for each old partitioning: its cuts, from 0 to the number of bins.
        new: a row for each new one.
        before: the state in the bins before each bin, and at the end that of all.

    Example:
        >>> kept(np.array([[0, 13, 20]]), np.array([[0, 9, 11, 20], [0, 8, 13, 20]]), np.arange(21.0))
        array([[16., 15.]])
    """
    out = np.empty((len(old), len(new)))
    olds, news = before[old].T.copy(), before[new].T.copy()
    wide = min(len(new), BLOCK)
    high = max(1, BLOCK // max(wide, 1))
    for top in range(0, len(old), high):
        for left in range(0, len(new), wide):
            block = out[top : top + high, left : left + wide]
            block[:] = _walked(olds[:, top : top + high], news[:, left : left + wide])
    return out


def _walked(old: Floats, new: Floats) -> Floats:
    """The same for one block: a row for each cut, the state before it in each partitioning.

    Where an old and a new cut are at the same place, the old one comes first: what lies between them is
    nothing. Choices are made bit by bit, because a processor that guesses which way each pair goes guesses
    wrong.
    """
    shape, steps = (old.shape[1], new.shape[1]), len(old) + len(new) - 3
    old_ends, new_ends = _ends(old, steps), _ends(new, steps)
    old_at, new_at = (np.broadcast_to(one, shape).copy() for one in np.ogrid[: shape[0], : shape[1]])
    old_end, new_end = old_ends.take(old_at), new_ends.take(new_at)
    # The most that stays up to here: if both intervals here are free, if only the old one may be matched,
    # only the new one, both.
    free, old_may, new_may, both_may = (np.zeros(shape) for _ in range(4))
    begin, end, matched = np.zeros(shape), np.empty(shape), np.empty(shape)
    old_first, work = np.empty(shape, np.int64), np.empty(shape, np.int64)
    for _ in range(steps):
        np.minimum(old_end, new_end, out=end)
        np.subtract(end, begin, out=matched)
        matched += free
        np.maximum(both_may, matched, out=both_may)
        np.less_equal(old_end, new_end, out=old_first, casting="unsafe")
        np.negative(old_first, out=old_first)
        _choose(old_first, old_may, new_may, free, work)
        _choose(old_first, both_may, new_may, new_may, work)
        _choose(old_first, old_may, both_may, old_may, work)
        old_at += np.bitwise_and(old_first, shape[0], out=work)
        new_at += np.bitwise_and(np.invert(old_first, out=old_first), shape[1], out=work)
        old_ends.take(old_at, out=old_end, mode="clip")
        new_ends.take(new_at, out=new_end, mode="clip")
        begin, end = end, begin
    return both_may


def _choose(mask: Ints, yes: Floats, no: Floats, out: Floats, work: Ints) -> None:
    """What is chosen where the mask's bits are all set, and where none is."""
    np.bitwise_xor(yes.view(np.int64), no.view(np.int64), out=work)
    work &= mask
    np.bitwise_xor(work, no.view(np.int64), out=out.view(np.int64))


def _ends(cuts: Floats, steps: int) -> Floats:
    """Where intervals end, one row after the other, the last again and again."""
    return np.concatenate([cuts[1:], np.repeat(cuts[-1:], steps, axis=0)]).ravel()
