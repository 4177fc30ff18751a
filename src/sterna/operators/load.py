"""Loads initial state.

Rows are put into an operator's first table as they are, through the same exchange as any epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from sterna.errors import InvalidInput
from sterna.operators.base import Edge, Epoch, Operator
from sterna.operators.groups import group_sorted
from sterna.state.tables import TableSpec


@dataclass
class Load(Operator):
    """Stands in for ``operator`` while its initial state is loaded."""

    operator: Operator
    name: str = field(init=False)
    edges: tuple[Edge, ...] = field(init=False)
    tables: tuple[TableSpec, ...] = field(init=False)
    output: pa.Schema = field(init=False)
    ordered: bool = False

    def __post_init__(self) -> None:
        spec = self.operator.tables[0]
        if spec.kind != "value":
            raise InvalidInput(
                f"initial state is for operators whose first table has one row a key; {spec.name!r} has many"
            )
        self.name = self.operator.name
        self.tables = self.operator.tables
        self.output = pa.schema([])
        schema = pa.schema([*spec.keys, *spec.values])
        self.edges = (Edge(0, 0, None, tuple(spec.keys.names), None, schema),)

    def apply(self, epoch: Epoch) -> None:
        """Puts the rows into the state; a key that comes twice is an error."""
        rows = epoch.inputs[0]
        if not rows.count:
            return
        spec = self.tables[0]
        keys = rows.keys(spec.keys.names)
        order, groups = group_sorted(rows.hashes, keys)
        if len(groups) < rows.count:
            twice = order[groups.starts[np.flatnonzero(groups.counts > 1)[0]]]
            key = tuple(column[int(twice)].as_py() for column in keys)
            raise InvalidInput(f"the initial state of operator {self.name!r} has the key {key} twice")
        values = [rows.batch.column(name) for name in spec.values.names]
        index = pa.array(order)
        epoch.tables[spec.name].put_sorted(
            rows.hashes[order], [k.take(index) for k in keys], [v.take(index) for v in values]
        )
