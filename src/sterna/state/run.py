"""An opened run: a record batch sorted by hash, in memory or memory-mapped, and what is known of its rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sterna.state.columns import Hashes, Ints, Words, plain
from sterna.state.refs import END
from sterna.state.seek import Index, search

COUNTS = 64
"""How many counts a run remembers."""


class Run:
    """An opened run: a record batch sorted by hash."""

    __slots__ = ("_columns", "_counts", "_gone", "_index", "_stones", "_words", "batch", "hashes", "rows")

    def __init__(self, batch: pa.RecordBatch, stored: memoryview | None = None) -> None:
        self.batch = batch
        self.rows: int = batch.num_rows
        self.hashes: Hashes = plain(batch.column("_hash"))
        self._columns: dict[str, pa.Array] = {}
        self._words: dict[str, Words] = {}
        self._gone: Ints | None = None
        self._stones: Run | None = None
        self._counts: dict[tuple[int, int], int] = {}
        self._index = None if stored is None else Index(self.hashes, stored)

    def column(self, name: str) -> pa.Array:
        """One column, by its name in the file."""
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = self.batch.column(name)
        return column

    def words(self, name: str) -> Words:
        """One column, with its values as words."""
        words = self._words.get(name)
        if words is None:
            words = self._words[name] = Words(self.column(name))
        return words

    def span(self, lo: int, hi: int) -> tuple[int, int]:
        """The positions [start, stop) of the rows whose hash is in ``[lo, hi)``."""
        start = 0 if lo <= 0 else int(self.hashes.searchsorted(np.uint64(lo))) if lo < END else self.rows
        stop = self.rows if hi >= END else int(self.hashes.searchsorted(np.uint64(hi)))
        return start, max(start, stop)

    def count(self, lo: int, hi: int) -> int:
        """How many rows have a hash in ``[lo, hi)``; what was asked before is remembered.

        Compaction asks of every reference, again and again, and to look costs the pages that are touched.
        """
        known = self._counts.get((lo, hi))
        if known is None:
            start, stop = self.span(lo, hi)
            if len(self._counts) >= COUNTS:
                self._counts.clear()
            known = self._counts[lo, hi] = stop - start
        return known

    def find(self, needles: Hashes) -> tuple[Ints, Ints]:
        """Which of some sorted needles are hashes of this run, and the first row of each.

        The needles must lie between its first and its last hash.
        """
        return search(self.hashes, needles) if self._index is None else self._index.find(needles)

    def repeats(self, rows: Ints) -> Ints:
        """How many rows, from each of these first ones on, share its hash."""
        out = np.ones(len(rows), np.int64)
        going = np.arange(len(rows))
        for step in range(1, 9):
            ahead = rows[going] + step
            same = self.hashes.take(ahead, mode="clip") == self.hashes[rows[going]]
            going = going[same & (ahead < self.rows)]
            if not len(going):
                return out
            out[going] += 1
        out[going] = self.hashes.searchsorted(self.hashes[rows[going]], "right") - rows[going]
        return out

    @property
    def gone(self) -> Ints:
        """The positions of the tombstones."""
        if self._gone is None:
            found = pc.indices_nonzero(self.column("_gone"))
            self._gone = found.to_numpy(zero_copy_only=False).astype(np.int64)
        return self._gone

    def stones(self, keys: Sequence[str]) -> Run:
        """The tombstones alone, as a run of hashes and keys."""
        if self._stones is None:
            self._stones = Run(self.batch.select(["_hash", *keys]).take(pa.array(self.gone)))
        return self._stones
