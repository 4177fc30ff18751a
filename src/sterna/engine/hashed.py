"""The digest of rows, without a copy of them.

In: a digest and a record batch. The digest goes on over the batch as Arrow would write it, so equal rows have
equal digests wherever they are computed, and whether or not they are a part of a larger batch.
"""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa


class _Sink(io.RawIOBase):
    """A file that hands on all that is written to it."""

    def __init__(self, digest: Any) -> None:
        self._digest = digest

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._digest.update(data)
        return len(data)


def add(digest: Any, rows: pa.RecordBatch) -> None:
    """Goes on with a digest over some rows.

    Example:
        >>> import xxhash
        >>> def of(rows):
        ...     add(digest := xxhash.xxh3_64(), rows)
        ...     return digest.hexdigest()
        >>> whole = pa.RecordBatch.from_pydict({"n": [1, 2, 3], "s": ["a", None, "c"]})
        >>> part = pa.RecordBatch.from_pydict({"n": [2, 3], "s": [None, "c"]})
        >>> of(whole.slice(1)) == of(part), of(whole) == of(part)
        (True, False)
    """
    with pa.PythonFile(_Sink(digest), "w") as file, pa.ipc.new_stream(file, rows.schema) as writer:
        writer.write_batch(rows)
