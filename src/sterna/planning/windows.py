"""Maxima over windows that move to the right, of all windows at once and in linear time.

Places are cut into blocks such that each window lies in two neighbouring blocks and touches the cut between
them. So its maximum is the larger one of two running maxima, each within a block: from the right as far as
the window's begin, and from the left as far as its end. Windows stay as they are while values change, so the
blocks are found once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
NEVER = -np.inf


@dataclass(frozen=True, eq=False)
class Blocks:
    """Places cut into blocks.

    Attributes:
        of: the block of each place, ascending.
        first: the first place of that block.
    """

    of: Ints
    first: Ints

    @classmethod
    def cut(cls, cuts: Sequence[int], places: int) -> Blocks:
        """Blocks that end, and begin, at these places."""
        inner = np.array(cuts, np.int64)
        lengths = np.diff(inner, prepend=0, append=places)
        return cls(np.repeat(np.arange(len(lengths)), lengths), np.repeat(np.append(0, inner), lengths))


class Windows:
    """Windows of places, each from a begin to before an end; empty where the one is not below the other.

    Neither begins nor ends may go back from one window to the next.

    Attributes:
        blocks: the blocks that suit them.
        left: the place as far as which each window needs the running maximum from the right, or -1 for none.
        right: likewise from the left.
    """

    def __init__(self, begins: Ints, ends: Ints, places: int) -> None:
        there = begins < ends
        lows, highs = begins[there].tolist(), ends[there].tolist()
        cuts: list[int] = []
        begun = [0]
        while (at := begun[-1]) < len(lows):
            following = bisect_left(lows, highs[at])
            # Windows that begin together, where all before have ended, need nothing left of the cut.
            together = lows[following - 1] == lows[at] and (at == 0 or highs[at - 1] <= lows[at])
            cuts.append(lows[at] if together else highs[at])
            begun.append(following)
        self.blocks = Blocks.cut(cuts, places)
        cut = np.zeros(len(begins), np.int64)
        cut[there] = np.repeat(np.array(cuts, np.int64), np.diff(begun))
        self.left = np.where(there & (begins < cut), begins, -1)
        self.right = np.where(there & (cut < ends), ends - 1, -1)


class Running:
    """Running maxima within blocks, in several rows of places: so many for each kind of blocks.

    Complex numbers are compared by their real parts first: those are the blocks, and the values are the
    imaginary parts. So one pass of NumPy's does all blocks, however many there are.
    """

    def __init__(self, kinds: Sequence[tuple[Blocks, int]], *, from_right: bool) -> None:
        blocks = np.repeat([kind.of for kind, _ in kinds], [rows for _, rows in kinds], axis=0)
        # The last place is a block of its own, for those that look up nothing.
        self._array = np.full((len(blocks), blocks.shape[1] + 1), complex(0, NEVER))
        self._array.real[:, :-1], self._array.real[:, -1] = blocks, blocks.shape[1]
        if from_right:
            self._array.real *= -1
        self._values, self._flat = self._array.imag, self._array.reshape(-1).view(np.float64)
        ends = np.cumsum([rows for _, rows in kinds]).tolist()
        parts = [
            (kind.first, self._values[end - rows : end])
            for (kind, rows), end in zip(kinds, ends, strict=True)
        ]
        self._from_right, self._parts, self._low = from_right, parts, 0

    def at(self, row: int, places: Ints) -> Ints:
        """Where what is at these places of a row is found among the maxima; -1 is where nothing is."""
        wide = int(self._array.shape[1])
        return 2 * (row * wide + places % wide) + 1

    def maxima(self, values: Floats, low: int, high: int) -> Floats:
        """All of them before a highest place, for values from a lowest one on; before it there are none.

        Neither place may go back from one call to the next. The array is the same each time.
        """
        part = self._array[:, low:high]
        self._values[:, low:high] = values
        if not self._from_right:
            self._values[:, self._low : low] = NEVER
            np.maximum.accumulate(part, axis=1, out=part)
        else:
            np.maximum.accumulate(part[:, ::-1], axis=1, out=part[:, ::-1])
            for first, rows in self._parts if low else ():
                rows[:, first[self._low] : first[low]] = NEVER
                rows[:, first[low] : low] = rows[:, low : low + 1]
        self._low = low
        return self._flat
