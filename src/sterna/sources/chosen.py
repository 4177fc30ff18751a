"""Rows whose columns have given values.

Spark chooses them where rows are Spark's, the router where they are made there. In: for each column a value
or a list of values. They take the column's type when they are given; what can't, and columns whose values are
not plainly equal or different (floating-point numbers, times, nested ones), raises ``InvalidInput``. A null
is never chosen, as in SQL.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F

from sterna.errors import InvalidInput, short
from sterna.schemas import key_type_ok


@dataclass(frozen=True)
class Chosen:
    """The values of each column."""

    values: Mapping[str, pa.Array]

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Those of the rows that have them."""
        for name, values in self.values.items():
            rows = rows.filter(pc.is_in(rows.column(name), values))
        return rows

    def column(self) -> Column:
        """The same as a condition of Spark's."""
        conditions = (
            F.col(f"`{name.replace('`', '``')}`").isin(values.to_pylist())
            for name, values in self.values.items()
        )
        return functools.reduce(operator.and_, conditions)


def chosen(schema: pa.Schema, given: Mapping[str, Any]) -> Chosen:
    """Checks what is given against the columns that there are."""
    if not given:
        raise InvalidInput("where needs at least one column: where(state=['OR', 'ID'], category=10)")
    return Chosen({name: _values(schema, name, value) for name, value in given.items()})


def _values(schema: pa.Schema, name: str, value: Any) -> pa.Array:
    if name not in schema.names:
        raise InvalidInput(f"there is no column {name!r}; there are {schema.names}")
    kind = schema.field(name).type
    if not key_type_ok(kind) or pa.types.is_floating(kind) or pa.types.is_timestamp(kind):
        raise InvalidInput(
            f"where can't choose by column {name!r} of type {kind}: filter with transform or map"
        )
    values = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
    if any(one is None for one in values):
        raise InvalidInput(
            f"where({name}=None): a null equals nothing, as in SQL; filter with transform or map"
        )
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(
            f"where({name}={short(value)}): column {name!r} is of type {kind}: {error}"
        ) from error
