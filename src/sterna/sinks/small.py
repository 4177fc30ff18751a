"""Sinks whose output is small enough to travel in the manifest, or is not kept at all.

``Memory`` and ``Console`` carry their rows in the parts themselves, so a crash between prepare and publish
loses nothing.
"""

from __future__ import annotations

import base64
import sys
from typing import Any

import pyarrow as pa

from sterna.sinks.base import Part, Sink, TaskSink
from sterna.state.store import Store


class _Carry(TaskSink):
    def __init__(self, limit: int | None) -> None:
        self._limit = limit

    def write(self, batch: pa.RecordBatch, epoch: int, worker: int, attempt: str) -> Part:  # noqa: ARG002
        kept = batch if self._limit is None else batch.slice(0, self._limit)
        return {"rows": batch.num_rows, "data": base64.b64encode(kept.serialize()).decode()}


def _batch(part: Part, schema: pa.Schema) -> pa.RecordBatch:
    return pa.ipc.read_record_batch(pa.py_buffer(base64.b64decode(part["data"])), schema)


class Memory(Sink):
    """All output, by epoch, in the driver's memory. A new start keeps what the sink object already holds."""

    def __init__(self) -> None:
        self.epochs: dict[int, pa.Table] = {}
        self.published = 0
        self._schema = pa.schema([])

    def open(self, checkpoint: Store, schema: pa.Schema, spark: Any, incarnation: int) -> None:  # noqa: ARG002, D102
        self._schema = schema

    def task(self) -> TaskSink:  # noqa: D102
        return _Carry(None)

    def takes(self, part: Part) -> bool:  # noqa: D102
        return "data" in part

    def publish(self, epoch: int, parts: list[Part]) -> None:  # noqa: D102
        self.published += 1
        self.epochs[epoch] = pa.Table.from_batches(
            [_batch(part, self._schema) for part in parts], self._schema
        )

    def table(self) -> pa.Table:
        """All output so far, in the order of epochs."""
        tables = [self.epochs[epoch] for epoch in sorted(self.epochs)]
        return pa.concat_tables(tables) if tables else self._schema.empty_table()

    def rows(self) -> list[dict[str, Any]]:
        """All output so far as dicts."""
        return list(self.table().to_pylist())


class Console(Sink):
    """Prints the first rows of each epoch to standard output."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._schema = pa.schema([])

    def open(self, checkpoint: Store, schema: pa.Schema, spark: Any, incarnation: int) -> None:  # noqa: ARG002, D102
        self._schema = schema

    def task(self) -> TaskSink:  # noqa: D102
        return _Carry(self._rows)

    def takes(self, part: Part) -> bool:  # noqa: D102
        return "data" in part

    def publish(self, epoch: int, parts: list[Part]) -> None:  # noqa: D102
        total = sum(part["rows"] for part in parts)
        shown = pa.Table.from_batches([_batch(part, self._schema) for part in parts], self._schema).slice(
            0, self._rows
        )
        lines = [f"epoch {epoch}: {total} rows", "  " + " | ".join(self._schema.names)]
        lines += ["  " + " | ".join(str(value) for value in row.values()) for row in shown.to_pylist()]
        if total > shown.num_rows:
            lines.append(f"  … {total - shown.num_rows} more")
        sys.stdout.write("\n".join([*lines, ""]))
        sys.stdout.flush()


class _Nothing(TaskSink):
    def write(self, batch: pa.RecordBatch, epoch: int, worker: int, attempt: str) -> Part:  # noqa: ARG002
        return {"rows": batch.num_rows}


class Noop(Sink):
    """Counts rows and throws them away."""

    def open(self, checkpoint: Store, schema: pa.Schema, spark: Any, incarnation: int) -> None:
        """Nothing to do."""

    def task(self) -> TaskSink:  # noqa: D102
        return _Nothing()

    def takes(self, part: Part) -> bool:  # noqa: D102
        return not {"data", "file"} & set(part)

    def publish(self, epoch: int, parts: list[Part]) -> None:
        """Nothing to do."""
