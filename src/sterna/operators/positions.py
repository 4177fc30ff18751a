"""Aggregates that pick a row: ``First`` and ``Last``. See ``accumulators`` for what the methods promise."""

# ruff: noqa: ARG002  -- every method is given the type, whether it needs it or not

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sterna.operators.counting import Found, needed
from sterna.operators.groups import Groups
from sterna.operators.ordering import known_type


@dataclass(frozen=True)
class _Position:
    """What ``First`` and ``Last`` share."""

    column: str

    @property
    def _name(self) -> str:
        return type(self).__name__.lower()

    def state(self, input_type: pa.DataType | None) -> list[pa.Field]:
        """One accumulator: the value."""
        return [pa.field(self._name, self.result(input_type))]

    def result(self, input_type: pa.DataType | None) -> pa.DataType:
        """The type of the values, which may be any."""
        return known_type(input_type, self._name, self.column)

    def partial(self, groups: Groups, values: pa.Array | None) -> list[pa.Array]:
        """The value of each group's first or last row."""
        return self.merge(groups, [needed(values, self.column)])

    def merge(self, groups: Groups, accumulators: list[pa.Array]) -> list[pa.Array]:
        """The first or last of each group's values."""
        rows = groups.starts if isinstance(self, First) else groups.ends
        return [accumulators[0].take(pa.array(rows))]

    def combine(self, old: list[pa.Array], new: list[pa.Array], found: Found) -> list[pa.Array]:
        """``First`` keeps the old value, even a null, where there is one; ``Last`` takes the new."""
        return [pc.if_else(pa.array(found), old[0], new[0])] if isinstance(self, First) else new

    def finish(self, accumulators: list[pa.Array]) -> pa.Array:
        """The value."""
        return accumulators[0]

    def exact(self, input_type: pa.DataType | None) -> bool:
        """It is the order of the rows that matters."""
        return False

    def native(self, input_type: pa.DataType | None) -> list[tuple[str, str]] | None:
        """Spark would pick a row in an order that nobody knows."""
        return None


@dataclass(frozen=True)
class First(_Position):
    """The value of the first row, null included, as Spark's ``first`` does unless told otherwise."""


@dataclass(frozen=True)
class Last(_Position):
    """The value of the last row, null included, as Spark's ``last`` does unless told otherwise."""
