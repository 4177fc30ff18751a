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

from sterna.operators.accumulators import Aggregate as Function
from sterna.operators.accumulators import Groups, group_sorted
from sterna.operators.base import Edge, Epoch, Operator, Rows
from sterna.operators.named import Columns, Named
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
        self._all = Named(self.named, edge.schema, edge.keys, f"aggregate {self.name!r}")
        self.output = pa.schema([*keys, *self._all.results])
        self.tables = (TableSpec(STATE, "value", pa.schema(keys), pa.schema(self._all.accumulators)),)
        self.ordered = self._all.ordered

    def options(self) -> dict[str, Any]:
        """Which functions."""
        return self._all.options()

    def combined_schema(self) -> pa.Schema | None:
        """Keys and accumulators; ``None`` where combining first could change the result."""
        return self._combined if self._all.exact else None

    @property
    def _combined(self) -> pa.Schema:
        return pa.schema([*self.tables[0].keys, *self.tables[0].values])

    def native(self) -> list[tuple[str, str, str]] | None:
        """(accumulator, Spark function, column) for Spark's own ``groupBy``, or ``None`` if it can't."""
        return self._all.native() if self._all.exact else None

    def combine(self, rows: Rows) -> Rows:
        """One row of accumulators for each key."""
        hashes, keys, accumulators = self._partial(rows)
        return Rows(hashes, pa.RecordBatch.from_arrays([*keys, *accumulators], schema=self._combined))

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
        old = [located.take(item.name) for item in self._all.accumulators]
        stored = self._all.combine(old, fresh, located.found)
        table.put_sorted(hashes, keys, stored)
        epoch.counters["keys"] = len(hashes)
        epoch.origins = lambda: hashes
        return pa.RecordBatch.from_arrays([*keys, *self._all.finish(stored)], schema=self.output)

    def _partial(self, rows: Rows) -> tuple[np.ndarray, list[pa.Array], Columns]:
        order, groups, hashes, keys = self._grouped(rows)
        return hashes, keys, self._all.partial(groups, rows.batch, order)

    def _merged(self, rows: Rows) -> tuple[np.ndarray, list[pa.Array], Columns]:
        order, groups, hashes, keys = self._grouped(rows)
        index = pa.array(order)
        columns = [rows.batch.column(item.name).take(index) for item in self._all.accumulators]
        return hashes, keys, self._all.merge(groups, columns)

    def _grouped(self, rows: Rows) -> tuple[np.ndarray, Groups, np.ndarray, list[pa.Array]]:
        columns = rows.keys(self.keys)
        order, groups = group_sorted(rows.hashes, columns)
        first = order[groups.starts]
        index = pa.array(first)
        return order, groups, rows.hashes[first], [column.take(index) for column in columns]
