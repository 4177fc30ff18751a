"""What a table is: its name, its kind, its key and value columns, and the schema of its run files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import pyarrow as pa


@dataclass(frozen=True)
class TableSpec:
    """A table of an operator.

    A ``value`` table holds one row a key, the newest. A ``rows`` table holds many rows a key, each with a
    time. The names in ``keys`` and ``values`` are the user's, without the prefixes of the run files.
    """

    name: str
    kind: Literal["value", "rows"]
    keys: pa.Schema
    values: pa.Schema

    @property
    def timed(self) -> bool:
        """Whether rows carry a time."""
        return self.kind == "rows"

    @cached_property
    def key_columns(self) -> list[str]:
        """The names of the key columns in a run file."""
        return [f"k.{name}" for name in self.keys.names]

    @cached_property
    def value_columns(self) -> list[str]:
        """The names of the value columns in a run file."""
        return [f"v.{name}" for name in self.values.names]

    @cached_property
    def _schema(self) -> pa.Schema:
        fields = [pa.field("_hash", pa.uint64(), nullable=False)]
        fields += [pa.field(f"k.{field.name}", field.type) for field in self.keys]
        if self.timed:
            fields.append(pa.field("_time", pa.int64(), nullable=False))
        fields += [pa.field(f"v.{field.name}", field.type) for field in self.values]
        fields.append(pa.field("_gone", pa.bool_(), nullable=False))
        return pa.schema(fields)

    def schema(self) -> pa.Schema:
        """The schema of the run files."""
        return self._schema
