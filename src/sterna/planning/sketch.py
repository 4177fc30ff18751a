"""The heaviest keys of a stream, in little memory: a sketch of the hashes that were seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sterna.errors import InvalidInput, check_whole
from sterna.hashing import Hashes, one_array, stable_order, validity, values_of
from sterna.planning.checks import numbers
from sterna.planning.plan import Numbers

Floats = npt.NDArray[np.float64]

HASH = "_hash"
"""The column of a table that holds its hashes."""


@dataclass(frozen=True, eq=False)
class Sketch:
    """The heaviest of many keys, with no more memory than this (Misra and Gries).

    Sketches of parts of a stream can be merged in any order.

    A key's weight is at least its count here, and at most that plus the error. The error is never more than
    the total divided by the capacity + 1, so every key with a larger part of the total is here.

    Attributes:
        capacity: how many keys are remembered.
        hashes: those keys, in order.
        counts: what they weigh at least.
        error: how much more they may weigh, and what a key that is not here weighs at most.
        total: what all keys weigh.
    """

    capacity: int
    hashes: Hashes
    counts: Floats
    error: float
    total: float

    @classmethod
    def empty(cls, capacity: int = 256) -> Sketch:
        """One that has seen nothing.

        Example:
            >>> sketch = Sketch.empty(2).seen(np.array([7, 7, 7, 1, 2], np.uint64))
            >>> sketch.hashes.tolist(), sketch.counts.tolist(), sketch.error
            ([7], [2.0], 1.0)
        """
        check_whole("the capacity of a sketch", capacity, 1)
        return cls(capacity, np.empty(0, np.uint64), np.empty(0), 0.0, 0.0)

    def seen(self, hashes: Any, weights: Numbers | None = None) -> Sketch:
        """With some more rows.

        Args:
            hashes: the hash of each row's key, an array of NumPy or Arrow; of a table, its column ``_hash``.
                Signed ones, as Spark gives them, are read as unsigned.
            weights: how much work each row is; 1 for each if left out.

        Raises:
            InvalidInput: these are no hashes, or a weight is negative, missing or no number.
        """
        array = _hashes(hashes)
        heavy = np.ones(len(array)) if weights is None else numbers("weight", weights, len(array), of="row")
        return self._with(array, heavy, 0.0, float(heavy.sum()), self.capacity)

    def merged(self, other: Sketch) -> Sketch:
        """Of what both have seen; as large as the smaller one."""
        capacity = min(self.capacity, other.capacity)
        return self._with(other.hashes, other.counts, other.error, other.total, capacity)

    def _with(self, hashes: Hashes, counts: Floats, error: float, total: float, capacity: int) -> Sketch:
        hashes, counts = np.concatenate([self.hashes, hashes]), np.concatenate([self.counts, counts])
        order = stable_order(hashes)
        hashes, counts = hashes[order], counts[order]
        first = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]])[: len(hashes)])
        hashes, counts = hashes[first], np.add.reduceat(counts, first) if len(first) else counts
        less = 0.0
        if len(counts) > capacity:
            # The heaviest that finds no place is taken off everybody: as many weigh at least that, and one
            # more.
            less = float(np.partition(counts, len(counts) - capacity - 1)[len(counts) - capacity - 1])
        stays = counts > less
        return Sketch(
            capacity, hashes[stays], counts[stays] - less, self.error + error + less, self.total + total
        )

    def loads(self, total: float) -> Floats:
        """What the keys weigh at least, if all keys together weigh this."""
        return self.counts * (total / self.total) if self.total > 0 else self.counts


def _hashes(hashes: Any) -> Hashes:
    if isinstance(hashes, pa.Table | pa.RecordBatch):
        if HASH not in hashes.schema.names:
            raise InvalidInput(f"the table has no column {HASH}: {', '.join(hashes.schema.names)}")
        hashes = hashes.column(HASH)
    if isinstance(hashes, pa.Array | pa.ChunkedArray):
        array = one_array(hashes)
        if array.type not in (pa.int64(), pa.uint64()) or validity(array) is not None:
            raise InvalidInput(f"hashes are 64-bit whole numbers, none of them missing; this is {array.type}")
        return values_of(array, np.uint64)
    if not isinstance(hashes, np.ndarray) or hashes.ndim != 1 or hashes.dtype not in (np.int64, np.uint64):
        raise InvalidInput("hashes are an array of 64-bit whole numbers")
    return hashes.view(np.uint64)
