"""The per-record operator: plain Python, one call of the fold for each record.

``fold(key, record, state)`` gets the key (a scalar, or a tuple for several key columns), the record as a
dict, and the key's state (``None`` if there is none; a scalar for a state of one column, otherwise a dict).
It returns ``(state, outputs)``: a state of ``None`` drops the key; outputs is a list of dicts, tuples, or
scalars where the output has one column. If the fold raises, the epoch fails with ``FoldError`` naming the bin
and the key, and carrying the user's traceback.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from sterna.errors import FoldError
from sterna.operators.base import Edge, Epoch, Operator, Rows
from sterna.state.tables import TableSpec

STATE = "state"
_NAN = float("nan")
Fold = Callable[[Any, dict[str, Any], Any], Any]


@dataclass(frozen=True)
class Pickled:
    """State kept as pickled Python objects: whoever can write the checkpoint can run code in the workers."""


def pickled() -> Pickled:
    """Asks for pickled Python objects as state.

    They are asked for by name, because unpickling runs code that the checkpoint holds.
    """
    return Pickled()


@dataclass
class StateMachine(Operator):
    """See the module's docstring."""

    name: str
    edges: tuple[Edge, ...]
    fold: Fold
    state: pa.Schema | Pickled
    output: pa.Schema
    tables: tuple[TableSpec, ...] = field(init=False)

    def __post_init__(self) -> None:
        edge = self.edges[0]
        key_schema = pa.schema([edge.schema.field(key) for key in edge.keys])
        self.tables = (TableSpec(STATE, "value", key_schema, self._stored()),)

    def _stored(self) -> pa.Schema:
        if isinstance(self.state, Pickled):
            return pa.schema([pa.field("pickle", pa.binary())])
        return self.state

    def apply(self, epoch: Epoch) -> pa.Table | None:
        """Folds every record into the state of its key, in order."""
        rows = epoch.inputs[0]
        if not rows.count:
            return None
        table = epoch.tables[STATE]
        keys = _key_list(rows, self.keys)
        position: dict[Any, int] = {}
        index = np.fromiter((position.setdefault(key, len(position)) for key in keys), np.int64, rows.count)
        first = np.unique(index, return_index=True)[1]
        distinct = rows.take(first)
        found, columns = table.get(distinct.hashes, distinct.keys(self.keys))
        states = self._load(found, columns)
        outputs: list[Any] = []
        ends = np.empty(rows.count, np.int64)
        names = rows.batch.schema.names
        records = zip(*(column.to_pylist() for column in rows.batch.columns), strict=True)
        for number, values in enumerate(records):
            slot = index[number]
            record = dict(zip(names, values, strict=True))
            try:
                states[slot], produced = self.fold(keys[number], record, states[slot])
                outputs.extend(produced)
                ends[number] = len(outputs)
            except (Exception, SystemExit) as error:
                raise FoldError(self._blame(epoch, keys[number], rows.hashes[number], error)) from error
        self._store(table, distinct, found, states)
        epoch.origins = lambda: np.repeat(rows.hashes, np.diff(ends, prepend=0))
        return rows_to_table(outputs, self.output, self.name)

    def _blame(self, epoch: Epoch, key: Any, hash_: Any, error: BaseException) -> str:
        return (
            f"the fold of operator {self.name!r} raised {type(error).__name__} in epoch {epoch.number} at "
            f"worker {epoch.worker}, bin {epoch.bin(hash_)}, key {key!r}, hash "
            f"{int(hash_):#018x}:\n{traceback.format_exc()}"
        )

    def _load(self, found: Any, columns: list[pa.Array]) -> list[Any]:
        if isinstance(self.state, Pickled):
            blobs = columns[0].to_pylist()
            return [pickle.loads(blob) if here else None for here, blob in zip(found, blobs, strict=True)]  # noqa: S301 - asked for by name
        if len(columns) == 1:
            return [
                value if here else None for here, value in zip(found, columns[0].to_pylist(), strict=True)
            ]
        names = self.state.names
        values = zip(*(column.to_pylist() for column in columns), strict=True)
        return [
            dict(zip(names, row, strict=True)) if here else None
            for here, row in zip(found, values, strict=True)
        ]

    def _store(self, table: Any, distinct: Rows, found: Any, states: list[Any]) -> None:
        alive = np.fromiter((state is not None for state in states), np.bool_, len(states))
        gone = ~alive & found
        if gone.any():
            dropped = distinct.take(gone)
            table.delete(dropped.hashes, dropped.keys(self.keys))
        if not alive.any():
            return
        kept = distinct.take(alive)
        values = [state for state in states if state is not None]
        table.put(kept.hashes, kept.keys(self.keys), self._columns(values))

    def _columns(self, values: list[Any]) -> list[pa.Array]:
        if isinstance(self.state, Pickled):
            return [pa.array([pickle.dumps(value) for value in values], pa.binary())]
        try:
            if len(self.state) == 1:
                return [_array(values, self.state.field(0).type)]
            return [_array([value[item.name] for value in values], item.type) for item in self.state]
        except (pa.ArrowException, KeyError, TypeError, ValueError, OverflowError) as error:
            raise FoldError(
                f"the fold of operator {self.name!r} returned a state that does not fit its schema "
                f"{schema_text(self.state)}: {error}"
            ) from error


def rows_to_table(rows: list[Any], schema: pa.Schema, operator: str) -> pa.Table | None:
    """Outputs of a per-record fold as a table; ``FoldError`` if they do not fit the declared schema."""
    if not rows:
        return None
    names = schema.names
    try:
        columns = _output_columns(rows, names)
        arrays = [_array(column, item.type) for column, item in zip(columns, schema, strict=True)]
    except (pa.ArrowException, KeyError, TypeError, ValueError, OverflowError) as error:
        raise FoldError(
            f"the fold of operator {operator!r} returned outputs that do not fit its output schema "
            f"{schema_text(schema)}: {error}"
        ) from error
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_integer(kind) and any(
        issubclass(one, float | np.floating) for one in set(map(type, values))
    ):
        # Arrow would cut off what is behind the point and say nothing.
        return pa.array(values, pa.float64()).cast(kind)
    if pa.types.is_nested(kind):
        for value in values:
            _check_whole(value, kind)
    return pa.array(values, kind)


def _check_whole(value: Any, kind: pa.DataType) -> None:
    """Raises ``ValueError`` where a number that is not whole stands for an integer, at any depth."""
    if value is None:
        return
    if pa.types.is_integer(kind):
        if isinstance(value, float | np.floating) and value != int(value):
            raise ValueError(f"{value!r} is not a whole number")
    elif pa.types.is_struct(kind):
        parts = value.items() if isinstance(value, Mapping) else enumerate(value)
        for name, part in parts:
            if isinstance(name, int) or kind.get_field_index(name) >= 0:
                _check_whole(part, kind.field(name).type)
    elif pa.types.is_map(kind):
        for key, item in value.items() if isinstance(value, Mapping) else value:
            _check_whole(key, kind.key_type)
            _check_whole(item, kind.item_type)
    elif pa.types.is_nested(kind) and (
        pa.types.is_integer(kind.value_type) or pa.types.is_nested(kind.value_type)
    ):
        for item in value:
            _check_whole(item, kind.value_type)


def _output_columns(rows: list[Any], names: list[str]) -> list[list[Any]]:
    kind = type(rows[0])
    if not issubclass(kind, dict | tuple | list):
        if len(names) > 1:
            raise TypeError(f"an output is {rows[0]!r}, neither a dict nor a tuple")
        return [rows]
    if any(type(row) is not kind for row in rows):
        raise TypeError(f"some outputs are of type {kind.__name__} and others are not")
    if any(len(row) != len(names) for row in rows):
        raise ValueError(f"an output row does not have the {len(names)} columns {names}")
    if issubclass(kind, dict):
        return [[row[name] for row in rows] for name in names]
    return [list(column) for column in zip(*rows, strict=True)]


def schema_text(schema: pa.Schema) -> str:
    """A schema in one line."""
    return "(" + ", ".join(f"{item.name} {item.type}" for item in schema) + ")"


def _key_list(rows: Rows, names: tuple[str, ...]) -> list[Any]:
    columns = [column.to_pylist() for column in rows.keys(names)]
    # NaN is not equal to itself; as one shared object it is one dict key all the same.
    columns = [[_NAN if value != value else value for value in column] for column in columns]  # noqa: PLR0124
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
