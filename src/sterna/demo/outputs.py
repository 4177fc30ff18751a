"""What the demo's query puts out, kept without the texts, and whether it is what the input implies.

An epoch puts out the count of each key that it had. So of a key's counts each is there once, all are greater
than what it had before, and the greatest is what it has in the end; a key that the input does not have puts
out nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.dataset as ds

from sterna.sinks.base import Part, TaskSink
from sterna.sinks.files import HIDDEN, Files, Parquet

Counts = npt.NDArray[np.int64]


class CountsOnly(Parquet):
    """Parquet files of ``key`` and ``n``."""

    def task(self) -> TaskSink:
        """See ``Sink``."""
        return _Files(self._store, HIDDEN)


class _Files(Files):
    def write(self, batch: pa.RecordBatch, epoch: int, worker: int, attempt: str) -> Part:
        return super().write(batch.select(["key", "n"]), epoch, worker, attempt)


def wrong_outputs(folder: str, before: Counts, after: Counts) -> int:
    """In how many keys the files of a folder differ from what they should have: see above."""
    return strays(ds.dataset(folder, format="parquet").to_batches(), before, after)


def strays(batches: Iterable[pa.RecordBatch], before: Counts, after: Counts) -> int:
    """In how many keys rows of (key, count) differ from what they should be.

    >>> rows = pa.record_batch({"key": [0, 0, 1, 1, 2], "n": [5, 6, 3, 3, 9]})
    >>> # All is well with the first; the second's count came twice, the last one is missing.
    >>> strays([rows], np.array([4, 2, 7, 1]), np.array([6, 3, 9, 2]))
    2
    """
    found = [np.stack([batch.column(i).to_numpy() for i in range(2)]) for batch in batches]
    keys, counts = np.concatenate([np.empty((2, 0), np.int64), *found], axis=1)
    known = (keys >= 0) & (keys < len(after))
    strange = int(np.count_nonzero(~known))
    keys, counts = keys[known], counts[known]
    order = np.lexsort((counts, keys))
    keys, counts = keys[order], counts[order]
    last = before.copy()
    np.maximum.at(last, keys, counts)
    wrong = last != after
    wrong[keys[counts <= before[keys]]] = True
    wrong[keys[1:][(keys[1:] == keys[:-1]) & (counts[1:] == counts[:-1])]] = True
    return strange + int(np.count_nonzero(wrong))
