"""Built-in aggregates over a keyed stream: vectorised from the rows to the state and back.

State: one row a key, with the accumulators of all aggregates. Output of an epoch: one row for each key that
had rows in it, with the key and the results so far. Rows may be combined to accumulators before the exchange,
by the router or by Spark's own ``groupBy``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from sterna.errors import InvalidInput
from sterna.operators.accumulators import Aggregate as Function
from sterna.operators.accumulators import First, Groups, Last, group_sorted
from sterna.operators.base import Edge, Epoch, Operator, Rows
from sterna.state.tables import TableSpec

STATE = "state"


@dataclass
class Aggregate(Operator):
    """See the module's docstring."""

    name: str
    edges: tuple[Edge, ...]
    named: dict[str, Function]
    output: pa.Schema = field(init=False)
    tables: tuple[TableSpec, ...] = field(init=False)

    def __post_init__(self) -> None:
        edge = self.edges[0]
        keys = [edge.schema.field(key) for key in edge.keys]
        if not self.named:
            raise InvalidInput(
                f"aggregate {self.name!r} names no aggregate, as in aggregate(n=sterna.count())"
            )
        self._fields = {name: function.state(self._type(function)) for name, function in self.named.items()}
        accumulators = [
            pa.field(self._column(name, item), item.type)
            for name, items in self._fields.items()
            for item in items
        ]
        results = [
            pa.field(name, function.result(self._type(function))) for name, function in self.named.items()
        ]
        taken = set(edge.keys) & set(self.named)
        columns = [*edge.keys, *(item.name for item in accumulators)]
        taken |= {column for column in columns if columns.count(column) > 1}
        if taken:
            raise InvalidInput(f"aggregate {self.name!r}: {sorted(taken)} name two columns")
        self.output = pa.schema([*keys, *results])
        self.tables = (TableSpec(STATE, "value", pa.schema(keys), pa.schema(accumulators)),)
        self.ordered = any(isinstance(function, First | Last) for function in self.named.values())

    def _type(self, function: Function) -> pa.DataType | None:
        if function.column is None:
            return None
        schema = self.edges[0].schema
        if function.column not in schema.names:
            raise InvalidInput(
                f"aggregate {self.name!r}: there is no column {function.column!r}, only {schema.names}"
            )
        return schema.field(function.column).type

    def _column(self, name: str, item: pa.Field) -> str:
        """The state column of an accumulator: the aggregate's own name where it has just one."""
        return name if len(self._fields[name]) == 1 else f"{name}_{item.name}"

    def options(self) -> dict[str, Any]:
        """Which functions: the accumulators of several look alike."""
        return {name: repr(function) for name, function in self.named.items()}

    def combined_schema(self) -> pa.Schema | None:
        """Keys and accumulators; ``None`` where combining first could change the result."""
        if self.ordered or not all(function.exact(self._type(function)) for function in self.named.values()):
            return None
        return pa.schema([*self.tables[0].keys, *self.tables[0].values])

    def native(self) -> list[tuple[str, str, str]] | None:
        """(accumulator, Spark function, column) for Spark's own ``groupBy``, or ``None`` if it can't."""
        if self.combined_schema() is None:
            return None
        out = []
        for name, function in self.named.items():
            parts = function.native(self._type(function))
            if parts is None:
                return None
            for item, (spark, column) in zip(self._fields[name], parts, strict=True):
                out.append((self._column(name, item), spark, column))
        return out

    def combine(self, rows: Rows) -> Rows:
        """One row of accumulators for each key."""
        hashes, keys, accumulators = self._partial(rows)
        schema = pa.schema([*self.tables[0].keys, *self.tables[0].values])
        flat = [column for columns in accumulators for column in columns]
        return Rows(hashes, pa.RecordBatch.from_arrays([*keys, *flat], schema=schema))

    def apply(self, epoch: Epoch) -> pa.RecordBatch | None:
        """Adds one epoch's rows to the state."""
        rows, combined = epoch.inputs[0], epoch.combined
        if combined is not None and rows.count:
            combined = Rows.concat([combined, self.combine(rows)], combined.batch.schema)
        if combined is not None:
            hashes, keys, fresh = self._merged(combined)
        elif rows.count:
            hashes, keys, fresh = self._partial(rows)
        else:
            return None
        table = epoch.tables[STATE]
        located = table.locate(hashes, keys)
        results, stored = [], []
        for (name, function), new in zip(self.named.items(), fresh, strict=True):
            old = [located.take(self._column(name, item)) for item in self._fields[name]]
            accumulators = function.combine(old, new, located.found)
            stored += accumulators
            results.append(function.finish(accumulators))
        table.put_sorted(hashes, keys, stored)
        epoch.counters["keys"] = len(hashes)
        epoch.origins = lambda: hashes
        return pa.RecordBatch.from_arrays([*keys, *results], schema=self.output)

    def _partial(self, rows: Rows) -> tuple[np.ndarray, list[pa.Array], list[list[pa.Array]]]:
        order, groups, hashes, keys = self._grouped(rows)
        accumulators = []
        for function in self.named.values():
            values = None
            if function.column is not None:
                values = rows.batch.column(function.column).take(pa.array(order))
            accumulators.append(function.partial(groups, values))
        return hashes, keys, accumulators

    def _merged(self, rows: Rows) -> tuple[np.ndarray, list[pa.Array], list[list[pa.Array]]]:
        order, groups, hashes, keys = self._grouped(rows)
        index = pa.array(order)
        accumulators = []
        for name, function in self.named.items():
            columns = [rows.batch.column(self._column(name, item)).take(index) for item in self._fields[name]]
            accumulators.append(function.merge(groups, columns))
        return hashes, keys, accumulators

    def _grouped(self, rows: Rows) -> tuple[np.ndarray, Groups, np.ndarray, list[pa.Array]]:
        columns = rows.keys(self.keys)
        order, groups = group_sorted(rows.hashes, columns)
        first = order[groups.starts]
        index = pa.array(first)
        return order, groups, rows.hashes[first], [column.take(index) for column in columns]
