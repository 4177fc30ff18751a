"""Rows that come as bytes: record batches in a column, or whole parquet files.

In: a batch of the columns that hold them, and the schema that was asked for. Out: record batches of that
schema. Bytes that can't be that raise ``InvalidInput``, which names the column or the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from sterna.errors import InvalidInput


class Packed(Protocol):
    """How bytes become rows."""

    def opened(self, batch: pa.RecordBatch, schema: pa.Schema) -> list[pa.RecordBatch]:
        """The rows."""

    def count(self, batch: pa.RecordBatch, schema: pa.Schema) -> int:
        """How many there are."""


@dataclass(frozen=True)
class Batches:
    """A column of record batches, serialised without their schema.

    They don't tell their own types: numbers of another type are read as they are.
    """

    column: str

    def opened(self, batch: pa.RecordBatch, schema: pa.Schema) -> list[pa.RecordBatch]:
        """See ``Packed``; in place."""
        try:
            parts = [
                pa.ipc.read_record_batch(value.as_buffer(), schema)
                for value in batch.column(self.column)
                if value.is_valid
            ]
            for part in parts:
                part.validate(full=True)
        except (pa.ArrowException, OSError) as error:
            raise InvalidInput(
                f"column {self.column!r} does not hold record batches of the schema that it was unpacked "
                f"with: {error}"
            ) from error
        return parts

    def count(self, batch: pa.RecordBatch, schema: pa.Schema) -> int:
        """See ``Packed``."""
        return sum(part.num_rows for part in self.opened(batch, schema))


@dataclass(frozen=True)
class ParquetFiles:
    """Columns ``path`` and ``content``, as Spark's format ``binaryFile`` has them."""

    def opened(self, batch: pa.RecordBatch, schema: pa.Schema) -> list[pa.RecordBatch]:
        """See ``Packed``: the columns of the schema, cast to its types."""
        return [part for path, file in _files(batch) for part in _read(path, file, schema).to_batches()]

    def count(self, batch: pa.RecordBatch, schema: pa.Schema) -> int:  # noqa: ARG002 - the footer tells
        """See ``Packed``."""
        return sum(file.metadata.num_rows for _, file in _files(batch))


def _files(batch: pa.RecordBatch) -> Iterator[tuple[str, pq.ParquetFile]]:
    for path, content in zip(batch.column("path"), batch.column("content"), strict=True):
        try:
            yield path.as_py(), pq.ParquetFile(pa.BufferReader(content.as_buffer()))
        except (pa.ArrowException, OSError) as error:
            raise InvalidInput(f"{path.as_py()} is no parquet file: {error}") from error


def _read(path: str, file: pq.ParquetFile, schema: pa.Schema) -> pa.Table:
    held = file.schema_arrow.names
    missing = [name for name in schema.names if name not in held]
    if missing:
        raise InvalidInput(f"{path} has no column {missing[0]!r}; there are {held}")
    try:
        # One thread: Spark runs as many tasks as there are cores already.
        rows = file.read(columns=schema.names, use_threads=False)
        return rows.select(schema.names).cast(schema)
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"{path} does not hold what was asked for: {error}") from error
