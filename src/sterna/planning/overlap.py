"""How much state stays when one partitioning into intervals follows another: the best matching of old intervals to new ones.

What matches keeps its order: of two old intervals that each overlap the new one they become, the left one becomes the left one. So the best matching is
that of two sequences, found one old and one new interval after the other, and for many pairs of partitionings at once.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

BLOCK = 1 << 15
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
            block[:] = _kept(olds[:, top : top + high], news[:, left : left + wide])
    return out


def _kept(old: Floats, new: Floats) -> Floats:
    """The same for one block: a row for each cut, the state before it in each partitioning."""
    shape = (old.shape[1], new.shape[1])
    # above[j]: the most that stays of the old intervals so far, if the first j new ones are theirs.
    above = [np.zeros(shape)] * len(new)
    begin, common = np.empty(shape), np.empty(shape)
    for start, end in itertools.pairwise(old):
        lowest, highest = start.min(), end.max()
        row = above[:1]
        for j in range(1, len(new)):
            here = np.maximum(above[j], row[-1])
            if new[j - 1].min() < highest and new[j].max() > lowest:
                np.maximum(start[:, None], new[j - 1], out=begin)
                np.minimum(end[:, None], new[j], out=common)
                common -= begin
                common += above[j - 1]
                np.maximum(here, common, out=here)
            row.append(here)
        above = row
    return above[-1]
