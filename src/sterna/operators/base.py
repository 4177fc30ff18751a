"""What an operator is to the engine.

An ``Operator`` is a picklable description: its input edges, its state tables, its output schema, and
``apply``, a pure function from (state at t-1, rows of t) to outputs. The engine calls ``apply`` once for each
worker and epoch with an ``Epoch``: rows in the deterministic order (time, source partition, sequence), the
tables of that worker, the notifications that are due. What ``apply`` writes goes into the tables' buffers;
the engine makes a run of it. If ``apply`` raises, the epoch fails and nothing is kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sterna.hashing import hash_keys, normalise
from sterna.sources.recipe import Recipe
from sterna.state.tables import Table, TableSpec

LATER = "later"
AT = "__sterna_at__"
"""The name of the table in which pending notifications wait."""

NEVER = int(np.iinfo(np.int64).min)
"""What a null event time counts as: the beginning of time."""

ORIGIN = "__sterna_origin__"
"""The column with the hash of the key, at the operator before, that a row comes from."""

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Edge:
    """One input of an operator.

    Attributes:
        number: identifies the edge in the dataflow.
        source: index of the source it reads, or ``None``.
        operator: index of the operator it reads, or ``None``.
        keys: names of the key columns.
        time: name of the event-time column, or ``None``.
        schema: the columns that travel, keys included.
        recipe: how the router makes the rows of what the source has; ``None`` if they are the source's own.
    """

    number: int
    source: int | None
    operator: int | None
    keys: tuple[str, ...]
    time: str | None
    schema: pa.Schema
    recipe: Recipe | None = None

    @property
    def columns(self) -> list[str]:
        """The columns of the source that the router needs."""
        return list(self.schema.names if self.recipe is None else self.recipe.columns)

    @property
    def wire(self) -> pa.Schema:
        """The schema of the chunks that travel along this edge.

        Those of an operator say which of its keys they come from.
        """
        origin = [] if self.operator is None else [pa.field(ORIGIN, pa.uint64())]
        return pa.schema([pa.field("_hash", pa.uint64()), *origin, *self.schema])

    def rows(self, table: pa.Table | pa.RecordBatch) -> Rows:
        """Rows of the origin as they travel: the needed columns, keys normalised, with their hashes."""
        columns = []
        for item in self.schema:
            column = contiguous(table.column(item.name))
            columns.append(normalise(column) if item.name in self.keys else column)
        by_name = dict(zip(self.schema.names, columns, strict=True))
        hashes = hash_keys([by_name[key] for key in self.keys])
        return Rows(hashes, pa.RecordBatch.from_arrays(columns, schema=self.schema))

    def hashes(self, table: pa.Table | pa.RecordBatch) -> Hashes:
        """The hashes of the keys of rows that have the key columns, with their types."""
        return hash_keys([normalise(contiguous(table.column(key))) for key in self.keys])


def hash_name(edge: Edge) -> str:
    """What the column with an edge's hashes is called between a source and the router."""
    return f"_hash{edge.number}"


@dataclass(frozen=True)
class Rows:
    """Rows with the hashes of their keys."""

    hashes: Hashes
    batch: pa.RecordBatch

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.hashes)

    def keys(self, names: Sequence[str]) -> list[pa.Array]:
        """The key columns."""
        return [self.batch.column(name) for name in names]

    def take(self, index: npt.NDArray[Any]) -> Rows:
        """Some rows, in the order of ``index`` (positions or a mask)."""
        if index.dtype == np.bool_:
            index = np.flatnonzero(index)
        return Rows(self.hashes[index], self.batch.take(pa.array(index)))

    def slice(self, start: int, stop: int) -> Rows:
        """Rows ``start`` to ``stop``, without copying."""
        return Rows(self.hashes[start:stop], self.batch.slice(start, stop - start))

    def wire(self) -> pa.RecordBatch:
        """As they travel: the hashes in a column of their own, before the others."""
        columns = [pa.array(self.hashes, pa.uint64()), *self.batch.columns]
        return pa.RecordBatch.from_arrays(columns, names=["_hash", *self.batch.schema.names])

    @classmethod
    def empty(cls, schema: pa.Schema) -> Rows:
        """No rows of this schema."""
        return cls(np.empty(0, np.uint64), empty_batch(schema))

    @classmethod
    def concat(cls, parts: Sequence[Rows], schema: pa.Schema) -> Rows:
        """All rows of all parts, in order."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.empty(schema)
        hashes = np.concatenate([part.hashes for part in parts])
        return cls(hashes, pa.concat_batches([part.batch for part in parts]))


@dataclass
class Epoch:
    """What ``Operator.apply`` gets.

    Attributes:
        number: the epoch.
        worker: the worker that applies.
        inputs: for each edge its rows, in order.
        combined: for an aggregate, rows of accumulators that routers made.
        tables: the worker's state.
        frontier: no row with an event time before this (microseconds) will come any more; ``None`` before any
            is known.
        due: rows handed back by the notificator, in time order.
        bits: k, for 2^k bins.
        owns: which of some hashes belong to this worker.
        counters: what the operator wants to report, by name.
        origins: set by the operator: for each row of its output the hash of the key it comes from. Outputs of
            different workers are put in the order of these, which is the same wherever the keys are.
    """

    number: int
    worker: int
    inputs: list[Rows]
    combined: Rows | None
    tables: dict[str, Table]
    frontier: int | None
    due: pa.RecordBatch | None = None
    bits: int = 0
    owns: Callable[[Hashes], npt.NDArray[np.bool_]] | None = None
    counters: dict[str, int] = field(default_factory=dict)
    origins: Callable[[], Hashes] | None = None

    def bin(self, hash_: int) -> int:
        """The bin of a hash, for messages."""
        return int(hash_) >> (64 - self.bits)


class Operator(ABC):
    """A stateful operator: see the module's docstring."""

    name: str
    edges: tuple[Edge, ...]
    tables: tuple[TableSpec, ...]
    output: pa.Schema
    ordered: bool = True
    """Whether the order of rows inside an epoch matters to the result."""

    def options(self) -> dict[str, Any]:
        """What else about it a checkpoint depends on, beyond its tables and inputs."""
        return {}

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the key columns in the state tables: those of the first input."""
        return self.edges[0].keys

    @property
    def notifies(self) -> bool:
        """Whether the operator has a table of pending notifications."""
        return any(spec.name == LATER for spec in self.tables)

    def keep(self, table: str) -> int | None:  # noqa: ARG002
        """How long rows of a table outlive their time, in microseconds; ``None`` for ever."""
        return None

    def combined_schema(self) -> pa.Schema | None:
        """The schema of combined rows, without hash.

        ``None`` if rows can't be combined before the exchange.
        """
        return None

    def combine(self, rows: Rows) -> Rows:
        """Rows of accumulators, one for each key among ``rows``."""
        raise NotImplementedError

    def native(self) -> list[tuple[str, str, str]] | None:
        """(accumulator, Spark function, column) for Spark's own ``groupBy``.

        ``None`` if it can't combine rows as the operator does.
        """
        return None

    @abstractmethod
    def apply(self, epoch: Epoch) -> pa.Table | pa.RecordBatch | None:
        """Applies one epoch's rows to the tables and returns the outputs."""


def contiguous(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array of a column that may come in chunks."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    joined = column.combine_chunks()
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """A record batch without rows."""
    return pa.RecordBatch.from_arrays([pa.array([], item.type) for item in schema], schema=schema)


def microseconds(column: pa.Array) -> npt.NDArray[np.int64]:
    """Event times as integers; a null time counts as the beginning of time."""
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("us", getattr(column.type, "tz", None))).cast(pa.int64())
    values = column.fill_null(NEVER) if column.null_count else column
    return np.asarray(values.to_numpy(zero_copy_only=False), np.int64)
