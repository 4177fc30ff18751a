"""Finding hashes in a large sorted array with two memory accesses instead of a binary search.

The range of the hashes is cut into about ten buckets a row, and one bit says whether a bucket has a row. A
needle whose bit is not set is absent: that settles most misses. For the others, the number of rows before the
bit's word and the number of bits before it in the word give a position that is right or a few rows too low.
One and a half bytes a row; built when a run is written, and stored and memory-mapped with it, so that it
takes no memory of the process's own and costs nothing to open.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sterna.state.columns import Hashes, Ints

_CHUNK = 1 << 18  # rows at a time, so that building stays in the processor's cache
_SIX = np.uint64(6)
_LOW = np.uint64(63)
_ONE = np.uint64(1)


def _popcount(words: Hashes) -> Ints:
    """The number of bits set in each word; NumPy has its own since 2.0."""
    if hasattr(np, "bitwise_count"):
        return np.asarray(np.bitwise_count(words), np.int64)
    words = words - ((words >> _ONE) & np.uint64(0x5555555555555555))
    pairs = np.uint64(0x3333333333333333)
    words = (words & pairs) + ((words >> np.uint64(2)) & pairs)
    words = (words + (words >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return ((words * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.int64)


class Index:
    """An index over sorted hashes; there must be at least one."""

    __slots__ = ("_base", "_before", "_hashes", "_shift", "_words")

    def __init__(self, hashes: Hashes, stored: memoryview | None = None) -> None:
        self._hashes = hashes
        self._base = hashes[0]
        span = int(hashes[-1]) - int(hashes[0]) + 1
        self._shift = np.uint64(max(0, (span // (len(hashes) * 8)).bit_length() - 1))
        size = ((span - 1) >> int(self._shift) >> 6) + 1
        if stored is not None:
            self._words: Hashes = np.frombuffer(stored, np.uint64, size)
            self._before: npt.NDArray[np.uint32] = np.frombuffer(stored, np.uint32, size, size * 8)
            return
        self._words = np.zeros(size, np.uint64)
        before: npt.NDArray[np.uint32] = np.zeros(size, np.uint32)
        for start in range(0, len(hashes), _CHUNK):
            bucket = (hashes[start : start + _CHUNK] - self._base) >> self._shift
            bits = _ONE << (bucket & _LOW)
            word = (bucket >> _SIX).view(np.int64)
            edges = np.concatenate([[0], np.flatnonzero(word[1:] != word[:-1]) + 1])
            at = word[edges]
            self._words[at] |= np.bitwise_or.reduceat(bits, edges)
            before[at] += np.diff(edges, append=len(word)).astype(np.uint32)
        # What was counted per word becomes what lies before it.
        total = np.cumsum(before, dtype=np.uint32)
        np.subtract(total, before, out=before)
        self._before = before

    def parts(self) -> list[npt.NDArray[Any]]:
        """What is to be stored, one array behind the other."""
        return [self._words, self._before]

    def find(self, needles: Hashes) -> tuple[Ints, Ints]:
        """Which needles, all between the first and the last hash, are there, and the first row of each."""
        bucket = (needles - self._base) >> self._shift
        word = (bucket >> _SIX).view(np.int64)
        words = self._words[word]
        bit = bucket & _LOW
        who = ((words >> bit) & _ONE).astype(np.bool_).nonzero()[0]
        if len(who) < len(needles):
            needles, word, words, bit = needles[who], word[who], words[who], bit[who]
        rows = self._before[word] + _popcount(words & ((_ONE << bit) - _ONE))
        values = self._hashes[rows]
        late = (values < needles).nonzero()[0]
        while len(late):
            # Two rows in one bucket make the position too low by one. The end is never passed: a needle's
            # bucket has a row, and all needles are at most the last hash.
            rows[late] += 1
            values[late] = self._hashes[rows[late]]
            late = late[values[late] < needles[late]]
        there = (values == needles).nonzero()[0]
        if len(there) == len(who):
            return who, rows
        return who[there], rows[there]


def search(hashes: Hashes, needles: Hashes) -> tuple[Ints, Ints]:
    """What ``Index.find`` does, without an index, by binary search."""
    rows = hashes.searchsorted(needles)
    who = np.flatnonzero(hashes.take(rows, mode="clip") == needles)
    return who, rows[who]
