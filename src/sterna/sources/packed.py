"""Rows that come packed: record batches in a column, or the paths of parquet files.

In: a batch of the column that holds them, and the schema that was asked for. Out: record batches of that
schema. Bytes that can't be that, and files that can't be read, raise ``InvalidInput``, which names the column
or the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from sterna.errors import InvalidInput

_ARROW = {"s3a": "s3", "s3n": "s3", "abfss": "abfs"}
"""What Arrow calls a scheme of Hadoop's."""


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
    """A column of paths, as Spark's format ``binaryFile`` has it.

    Their bytes never get to Spark: whoever is given a path opens the file, and reads the columns that are
    asked for.
    """

    column: str

    def opened(self, batch: pa.RecordBatch, schema: pa.Schema) -> list[pa.RecordBatch]:
        """See ``Packed``: the columns of the schema, cast to its types."""
        return [part for path, file in self._files(batch) for part in _read(path, file, schema).to_batches()]

    def count(self, batch: pa.RecordBatch, schema: pa.Schema) -> int:  # noqa: ARG002 - the footer tells
        """See ``Packed``."""
        return sum(file.metadata.num_rows for _, file in self._files(batch))

    def _files(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pq.ParquetFile]]:
        for path in batch.column(self.column).to_pylist():
            try:
                filesystem, name = _where(path)
                with pq.ParquetFile(filesystem.open_input_file(name)) as file:
                    yield path, file
            except (pa.ArrowException, OSError) as error:
                raise InvalidInput(f"{path} can't be read as a parquet file: {error}") from error


def _where(path: str) -> tuple[pafs.FileSystem, str]:
    """The filesystem of a path as Spark writes it, without any escapes, and its name there.

    Example:
        >>> _where("file:/tmp/a b%20.parquet")[1]
        '/tmp/a b%20.parquet'
    """
    scheme, _, rest = path.partition(":")
    if scheme == "file":
        return pafs.LocalFileSystem(use_mmap=True), "/" + rest.lstrip("/")
    filesystem, name = pafs.FileSystem.from_uri(f"{_ARROW.get(scheme, scheme)}:{quote(rest)}")
    return filesystem, str(name)


def _read(path: str, file: pq.ParquetFile, schema: pa.Schema) -> pa.Table:
    held = file.schema_arrow.names
    missing = [name for name in schema.names if name not in held]
    if missing:
        raise InvalidInput(f"{path} has no column {missing[0]!r}; there are {held}")
    try:
        # One thread: Spark runs as many tasks as there are cores already.
        rows = file.read(columns=schema.names, use_threads=False)
        return rows.select(schema.names).cast(schema)
    except pa.ArrowException as error:
        raise InvalidInput(f"{path} does not hold what was asked for: {error}") from error
