"""Unary and binary folds: Arrow in, Arrow out, one call for each worker and epoch.

``fold(rows, tables, later)``, or ``fold(left, right, tables, later)`` for a binary one, gets this epoch's
rows as ``pa.Table`` in the deterministic order (time, source partition, sequence), the operator's state
tables by name, and a notificator. It returns a ``pa.Table`` of the declared output schema (columns in any
order), or ``None``. ``rows`` may be empty while notifications are due.

If the fold raises, the failing key is looked for by calling it again on parts of the input, and the epoch
fails with a ``FoldError`` that names operator, worker, bin and key and carries the user's traceback.

If another operator reads the outputs under another key, and the order of rows matters to it, let the outputs
have the key columns: only then can rows of different workers be put in an order that does not depend on where
their keys are.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from sterna.errors import FoldError
from sterna.operators.base import AT, LATER, Edge, Epoch, Operator, Rows, contiguous
from sterna.operators.handles import Later, Tables
from sterna.operators.state_machine import schema_text
from sterna.state.tables import Table, TableSpec

"""The column of the table of pending notifications that holds the time they were asked for."""


@dataclass(frozen=True)
class TableWish:
    """A state table as the user asks for it: ``sterna.value(...)`` or ``sterna.rows(...)``.

    Attributes:
        kind: ``value`` or ``rows``.
        schema: the value columns.
        time: for rows, the name of their time column; ``None`` means the keyed stream's.
        keep: for rows, how long after their time they are kept, in microseconds; ``None`` means for ever.
    """

    kind: str
    schema: Any
    time: str | None = None
    keep: int | None = None


@dataclass
class Fold(Operator):
    """A unary (one edge) or binary (two edges) fold; see the module's docstring."""

    name: str
    edges: tuple[Edge, ...]
    fold: Callable[..., Any]
    wishes: dict[str, TableWish]
    output: pa.Schema
    later: pa.Schema
    tables: tuple[TableSpec, ...] = field(init=False)

    def __post_init__(self) -> None:
        edge = self.edges[0]
        keys = pa.schema([edge.schema.field(key) for key in edge.keys])
        specs = [
            TableSpec(name, "rows" if wish.kind == "rows" else "value", keys, wish.schema)
            for name, wish in self.wishes.items()
        ]
        specs.append(TableSpec(LATER, "rows", keys, pa.schema([pa.field(AT, pa.int64()), *self.later])))
        self.tables = tuple(specs)

    def options(self) -> dict[str, Any]:
        """How long rows are kept, and by which time."""
        return {name: [wish.kind, wish.time, wish.keep] for name, wish in self.wishes.items()}

    def keep(self, table: str) -> int | None:
        """How long rows of a table outlive their time."""
        return self.wishes[table].keep if table in self.wishes else None

    def apply(self, epoch: Epoch) -> pa.Table | None:
        """Calls the fold once."""
        if not any(rows.count for rows in epoch.inputs) and (epoch.due is None or not epoch.due.num_rows):
            return None
        try:
            result = self.call(epoch, epoch.inputs, epoch.due, epoch.tables)
        except FoldError:
            raise
        except (Exception, SystemExit) as error:
            raise FoldError(self._blame(epoch, error)) from error
        output, edge = self._checked(result), self.edges[0]
        if output is not None and all(edge.schema.field(key) in list(output.schema) for key in edge.keys):
            epoch.origins = lambda: edge.hashes(output)
        return output

    def call(
        self, epoch: Epoch, inputs: list[Rows], due: pa.RecordBatch | None, tables: dict[str, Table]
    ) -> Any:
        """Calls the user's function with these inputs and tables."""
        edge = self.edges[0]
        handles = Tables(self, tables, edge, epoch)
        later = Later(self, tables[LATER], edge, epoch, due)
        arguments = [pa.Table.from_batches([rows.batch]) for rows in inputs]
        return self.fold(*arguments, handles, later)

    def _checked(self, result: Any) -> pa.Table | None:
        if result is None:
            return None
        if isinstance(result, pa.RecordBatch):
            result = pa.Table.from_batches([result])
        if not isinstance(result, pa.Table):
            raise FoldError(
                f"the fold of operator {self.name!r} returned {type(result).__name__}; it must return a "
                "pyarrow Table, RecordBatch or None"
            )
        missing = [name for name in self.output.names if name not in result.column_names]
        extra = [name for name in result.column_names if name not in self.output.names]
        if missing or extra:
            raise FoldError(
                f"the fold of operator {self.name!r} returned the wrong columns: missing {missing}, "
                f"unexpected {extra}; its output schema is {schema_text(self.output)}"
            )
        try:
            return result.select(self.output.names).cast(self.output)
        except (pa.ArrowException, ValueError) as error:
            raise FoldError(
                f"the fold of operator {self.name!r} returned types that do not fit its output schema "
                f"{schema_text(self.output)}: {error}"
            ) from error

    def _blame(self, epoch: Epoch, error: BaseException) -> str:
        text = traceback.format_exc()
        culprit = _bisect(self, epoch)
        where = (
            f"bin {epoch.bin(culprit[1])}, key {culprit[0]!r}, hash {culprit[1]:#018x}"
            if culprit
            else "no single key alone makes it raise"
        )
        return (
            f"the fold of operator {self.name!r} raised {type(error).__name__} in epoch {epoch.number} at "
            f"worker {epoch.worker}; {where}:\n{text}"
        )


def _bisect(operator: Fold, epoch: Epoch) -> tuple[Any, int] | None:
    """The key whose rows alone make the fold raise, found in about log2(keys) calls."""
    due_hashes = np.asarray(epoch.due.column("_hash")) if epoch.due is not None else np.empty(0, np.uint64)
    hashes = np.unique(np.concatenate([rows.hashes for rows in epoch.inputs] + [due_hashes]))

    def raises(chosen: Any) -> bool:
        inputs = [rows.take(np.isin(rows.hashes, chosen)) for rows in epoch.inputs]
        due = (
            epoch.due.take(pa.array(np.flatnonzero(np.isin(due_hashes, chosen))))
            if epoch.due is not None
            else None
        )
        tables = {name: table.fresh() for name, table in epoch.tables.items()}
        try:
            operator.call(epoch, inputs, due, tables)
        except (Exception, SystemExit):  # noqa: BLE001 - any failure of the user's code is what we look for
            return True
        return False

    while len(hashes) > 1:
        half = hashes[: len(hashes) // 2]
        other = hashes[len(hashes) // 2 :]
        if raises(half):
            hashes = half
        elif raises(other):
            hashes = other
        else:
            return None
    if not len(hashes) or not raises(hashes):
        return None
    found = [
        (rows.hashes, rows.keys(edge.keys)) for edge, rows in zip(operator.edges, epoch.inputs, strict=True)
    ]
    if epoch.due is not None:
        found.append((due_hashes, [epoch.due.column(f"k.{name}") for name in operator.keys]))
    for known, columns in found:
        match = np.flatnonzero(known == hashes[0])
        if len(match):
            values = [contiguous(column)[int(match[0])].as_py() for column in columns]
            return (values[0] if len(values) == 1 else tuple(values)), int(hashes[0])
    return None
