"""The fold of ``KeyedStream.join``: all pairs of rows with equal keys, and that of ``KeyedStream.union``.

Both sides are kept. Every pair comes out once: new rows of the left side meet the right side's earlier ones,
then new rows of the right meet all of the left. As in SQL, a key with a null in it matches nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from sterna.errors import InvalidInput
from sterna.operators.handles import Later, Tables

Columns: TypeAlias = Sequence[str] | Mapping[str, str]
"""Names of columns, or new names and what they were before."""


@dataclass(frozen=True)
class Side:
    """One side of a join.

    Attributes:
        keys: the names of its key columns, and their fields.
        time: its event-time column.
        renamed: the columns that are kept, by the names under which they come out.
        kept: their schema, under these names.
    """

    keys: tuple[pa.Field, ...]
    time: str | None
    renamed: dict[str, str]
    kept: pa.Schema

    @classmethod
    def of(cls, schema: pa.Schema, keys: Sequence[str], time: str | None, columns: Columns) -> Side:
        """The side of a stream; ``InvalidInput`` if it has no such columns."""
        renamed = dict(columns) if isinstance(columns, Mapping) else {name: name for name in columns}
        for name in renamed.values():
            if name not in schema.names:
                raise InvalidInput(f"join: there is no column {name!r}; there are {schema.names}")
        kept = pa.schema([pa.field(new, schema.field(old).type) for new, old in renamed.items()])
        return cls(tuple(schema.field(key) for key in keys), time, renamed, kept)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the stream that it needs."""
        time = [] if self.time is None else [self.time]
        return tuple(dict.fromkeys([*(key.name for key in self.keys), *time, *self.renamed.values()]))

    def table(self, rows: pa.Table, keys: Sequence[pa.Field], time: str | None) -> pa.Table:
        """Rows that may match, with the names that they have in the state."""
        for key in self.keys:
            if rows.column(key.name).null_count:
                rows = rows.filter(pc.is_valid(rows.column(key.name)))
        columns = {new.name: rows.column(old.name) for new, old in zip(keys, self.keys, strict=True)}
        columns |= {new: rows.column(old) for new, old in self.renamed.items()}
        if time is not None:
            columns[time] = rows.column(self.time)
        return pa.table(columns)


@dataclass(frozen=True)
class Join:
    """See the module's docstring."""

    left: Side
    right: Side

    def __post_init__(self) -> None:
        names = self.output.names
        for name in names:
            if names.count(name) > 1:
                raise InvalidInput(
                    f"join: two output columns would be called {name!r}; rename one, as in "
                    f"right={{'other_{name}': '{name}'}}"
                )
        if (self.left.time is None) != (self.right.time is None):
            raise InvalidInput("join: one stream has an event time and the other has none")

    @property
    def time(self) -> str | None:
        """What the time column is called in the state, where it is kept under a name of its own."""
        return None if self.left.time is None else "_event_time"

    @property
    def output(self) -> pa.Schema:
        """The keys, under the names of the left side, and the columns of both."""
        return pa.schema([*self.left.keys, *self.left.kept, *self.right.kept])

    def __call__(self, left: pa.Table, right: pa.Table, tables: Tables, later: Later) -> pa.Table:  # noqa: ARG002 - a fold gets it
        """The pairs that an epoch's rows complete."""
        mine = self.left.table(left, self.left.keys, self.time)
        theirs = self.right.table(right, self.left.keys, self.time)
        earlier = tables.right.get(mine)
        tables.left.append(mine)
        tables.right.append(theirs)
        all_mine = tables.left.get(theirs)
        found = [
            self._pairs(mine.take(earlier.column("_position")), earlier),
            self._pairs(all_mine, theirs.take(all_mine.column("_position"))),
        ]
        # Mostly one of the two is empty, and the other need not be copied to make them one.
        return pa.concat_tables([pairs for pairs in found if pairs.num_rows] or found[:1])

    def _pairs(self, left: pa.Table, right: pa.Table) -> pa.Table:
        columns = [
            left.column(name) for name in [*(key.name for key in self.left.keys), *self.left.kept.names]
        ]
        columns += [right.column(name) for name in self.right.kept.names]
        return pa.Table.from_arrays(columns, schema=self.output)


def union_of(*arguments: Any) -> pa.Table:
    """The rows of all inputs; the last two arguments of a fold are its tables and its notificator."""
    return pa.concat_tables(arguments[:-2])
