"""What a fold sees of its state: tables addressed by key columns, and the notificator.

A handle takes and returns ``pa.Table`` objects with the key columns under their own names; hashing is done
here, so folds never see a hash. Event times are in the type of the stream's time column. A missing column
raises ``FoldError`` naming it; so does a key that belongs to another worker, where its state would be lost: a
fold may touch the keys of the rows that it was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sterna.errors import FoldError
from sterna.hashing import Hashes, hash_keys, normalise
from sterna.operators.base import AT, NEVER, Edge, Epoch, contiguous, microseconds
from sterna.state.tables import Table

if TYPE_CHECKING:
    from sterna.operators.fold import Fold

Columns: TypeAlias = "pa.Table | pa.RecordBatch"


class Tables:
    """The state tables of an operator, by name: ``tables["bids"]`` or ``tables.bids``."""

    def __init__(self, operator: Fold, tables: dict[str, Table], edge: Edge, epoch: Epoch) -> None:
        self._handles = {
            name: Handle(
                operator,
                name,
                tables[name],
                edge,
                wish.time or edge.time if wish.kind == "rows" else None,
                epoch,
            )
            for name, wish in operator.wishes.items()
        }
        self._operator = operator.name
        self.epoch = epoch.number
        self.worker = epoch.worker

    def __getitem__(self, name: str) -> Handle:
        try:
            return self._handles[name]
        except KeyError:
            raise FoldError(
                f"the fold of operator {self._operator!r} asks for a state table {name!r}; there are "
                f"{sorted(self._handles)}"
            ) from None

    def __getattr__(self, name: str) -> Handle:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]


class Handle:
    """One state table of a worker."""

    def __init__(
        self, operator: Fold, name: str, table: Table, edge: Edge, time: str | None, epoch: Epoch
    ) -> None:
        self._operator, self._name, self._table, self._edge = operator, name, table, edge
        self._time, self._epoch = time, epoch

    def get(self, keys: Columns) -> pa.Table:
        """The state of these keys.

        For a value table: one row for each row of ``keys``, nulls where the key has no state, and ``_found``.
        For a rows table: the live rows of these keys with key columns, time and ``_position``, the row of
        ``keys`` they match.
        """
        hashes, columns = self._keys(keys)
        spec = self._table.spec
        if spec.kind == "value":
            found, values = self._table.get(hashes, columns)
            return pa.table([*values, pa.array(found)], names=[*spec.values.names, "_found"])
        position, times, values = self._table.rows(hashes, columns)
        index = pa.array(position)
        out = {name: column.take(index) for name, column in zip(self._edge.keys, columns, strict=True)}
        if self._time is not None:
            out[self._time] = _as_time(pa.array(times), self._time_type())
        out.update(zip(spec.values.names, values, strict=True))
        out["_position"] = index
        return pa.table(out)

    def put(self, rows: Columns) -> None:
        """Sets the state of these keys: key columns and value columns; the last row of a key wins."""
        self._expect("value", "put")
        hashes, columns = self._keys(rows)
        self._table.put(hashes, columns, self._values(rows))

    def append(self, rows: Columns) -> None:
        """Adds rows: key columns, value columns and the time column."""
        self._expect("rows", "append")
        hashes, columns = self._keys(rows)
        times = (
            np.zeros(len(hashes), np.int64)
            if self._time is None
            else microseconds(self._column(rows, self._time))
        )
        self._table.append(hashes, columns, times, self._values(rows))

    def delete(self, keys: Columns) -> None:
        """Forgets everything about these keys."""
        hashes, columns = self._keys(keys)
        self._table.delete(hashes, columns)

    def _time_type(self) -> pa.DataType:
        schema = self._edge.schema
        return schema.field(self._time).type if self._time in schema.names else pa.timestamp("us", "UTC")

    def _keys(self, rows: Columns) -> tuple[Any, list[pa.Array]]:
        columns = [
            normalise(self._column(rows, name).cast(self._edge.schema.field(name).type))
            for name in self._edge.keys
        ]
        return _owned(self._operator, self._epoch, columns), columns

    def _values(self, rows: Columns) -> list[pa.Array]:
        return [self._column(rows, item.name).cast(item.type) for item in self._table.spec.values]

    def _column(self, rows: Columns, name: str) -> pa.Array:
        if name not in rows.schema.names:
            raise FoldError(
                f"operator {self._operator.name!r}, table {self._name!r}: the rows have no column {name!r}, "
                f"only {rows.schema.names}"
            )
        return contiguous(rows.column(name))

    def _expect(self, kind: str, verb: str) -> None:
        if self._table.spec.kind != kind:
            raise FoldError(
                f"operator {self._operator.name!r}: {verb}() is for tables of kind {kind!r}, and "
                f"{self._name!r} is of kind {self._table.spec.kind!r}"
            )


class Later:
    """The notificator: hands rows back when the event-time frontier passes a time.

    Attributes:
        due: the rows whose time has come, in time order: key columns, the declared columns, and ``at``, the
            time that was asked for (``_at`` where a column of the stream is called ``at``).
        frontier: the event-time frontier in microseconds, or ``None`` before any time is known.
    """

    def __init__(
        self, operator: Fold, table: Table, edge: Edge, epoch: Epoch, due: pa.RecordBatch | None
    ) -> None:
        self._operator, self._table, self._edge, self._epoch = operator, table, edge, epoch
        self._timed = any(one.time is not None for one in operator.edges)
        self.frontier = epoch.frontier
        self.due = self._due(due)

    def notify_at(self, time: Any, rows: Columns) -> None:
        """Hands ``rows`` back (key columns and the declared columns) once the frontier has passed ``time``.

        Args:
            time: a column name of ``rows``, an array with a time for each row, or one time for all of them.
            rows: what to hand back. A time that has passed already is due as soon as the frontier moves
                again.
        """
        if not self._timed:
            raise FoldError(
                f"operator {self._operator.name!r} has no event time, so notify_at would never fire: give "
                "key_by(..., time=...)"
            )
        if isinstance(time, str):
            times = microseconds(contiguous(rows.column(time)))
        elif isinstance(time, pa.Array | pa.ChunkedArray):
            times = microseconds(contiguous(time))
        elif isinstance(time, np.ndarray):
            times = microseconds(pa.array(time))
        else:
            times = np.repeat(microseconds(pa.array([time])), rows.num_rows)
        columns = [
            normalise(contiguous(rows.column(name)).cast(self._edge.schema.field(name).type))
            for name in self._edge.keys
        ]
        values = [contiguous(rows.column(item.name)).cast(item.type) for item in self._operator.later]
        # A time at or before the frontier would never be seen again.
        fire = times if self.frontier is None else np.maximum(times, self.frontier + 1)
        hashes = _owned(self._operator, self._epoch, columns)
        self._table.append(hashes, columns, fire, [pa.array(times), *values])

    def _due(self, due: pa.RecordBatch | None) -> pa.Table:
        spec = self._table.spec
        time = next((edge for edge in self._operator.edges if edge.time), None)
        kind = time.schema.field(time.time).type if time and time.time else pa.timestamp("us", "UTC")
        columns: dict[str, pa.Array] = {}
        for item in spec.keys:
            columns[item.name] = due.column(f"k.{item.name}") if due is not None else pa.array([], item.type)
        for item in spec.values:
            column = due.column(f"v.{item.name}") if due is not None else pa.array([], item.type)
            if item.name != AT:
                columns[item.name] = column
                continue
            taken = {*spec.keys.names, *spec.values.names}
            name = next(name for name in ("at", "_at", "__at", AT) if name not in taken or name == AT)
            columns[name] = _as_time(column, kind)
        return pa.table(columns)


def _owned(operator: Fold, epoch: Epoch, columns: list[pa.Array]) -> Hashes:
    """The hashes of keys, all of which must belong to this worker."""
    hashes = hash_keys(columns)
    if epoch.owns is not None and not (mine := epoch.owns(hashes)).all():
        stranger = int(np.flatnonzero(~mine)[0])
        key = [column[stranger].as_py() for column in columns]
        raise FoldError(
            f"the fold of operator {operator.name!r} touches the key "
            f"{key[0] if len(key) == 1 else tuple(key)!r} in epoch {epoch.number}, which does not belong to "
            f"worker {epoch.worker}: a fold may touch only the keys of the rows that it is given"
        )
    return hashes


def _as_time(column: pa.Array, kind: pa.DataType) -> pa.Array:
    column = pc.if_else(pc.equal(column, NEVER), None, column)  # it was null when it came
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz)).cast(kind)
    if pa.types.is_date(kind):
        return column.cast(pa.timestamp("us")).cast(kind)
    return column.cast(kind)
