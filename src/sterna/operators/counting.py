"""Aggregates that add: ``Count``, ``Sum`` and ``Mean``. See ``accumulators`` for what the methods promise."""

# ruff: noqa: ARG002  -- every method is given the type, whether it needs it or not

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sterna.errors import InvalidInput
from sterna.hashing import from_values, validity
from sterna.operators.groups import Groups
from sterna.operators.sums import add, non_null, sum_type, sums

Found = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Count:
    """How many rows, or how many values of a column that are not null."""

    column: str | None = None

    def state(self, input_type: pa.DataType | None) -> list[pa.Field]:
        """One accumulator: the count."""
        return [pa.field("n", pa.int64())]

    def result(self, input_type: pa.DataType | None) -> pa.DataType:
        """A long."""
        return pa.int64()

    def partial(self, groups: Groups, values: pa.Array | None) -> list[pa.Array]:
        """Count each group."""
        return [_counts(groups, values)]

    def merge(self, groups: Groups, accumulators: list[pa.Array]) -> list[pa.Array]:
        """Add the counts."""
        return [sums(groups, accumulators[0], pa.int64(), self.column)]

    def combine(self, old: list[pa.Array], new: list[pa.Array], found: Found) -> list[pa.Array]:
        """Add the counts."""
        return [_combine_sums(old[0], new[0], found, self.column)]

    def finish(self, accumulators: list[pa.Array]) -> pa.Array:
        """The count."""
        return accumulators[0]

    def exact(self, input_type: pa.DataType | None) -> bool:
        """Counts add up in any order."""
        return True

    def native(self, input_type: pa.DataType | None) -> list[tuple[str, str]] | None:
        """Spark counts as well."""
        return [("count", "*" if self.column is None else self.column)]


@dataclass(frozen=True)
class Sum:
    """The sum of the values that are not null; null if there is none."""

    column: str

    def state(self, input_type: pa.DataType | None) -> list[pa.Field]:
        """One accumulator: the sum."""
        return [pa.field("sum", self.result(input_type))]

    def result(self, input_type: pa.DataType | None) -> pa.DataType:
        """A long, a double, or a decimal of ten more digits."""
        return sum_type(input_type, "sum", self.column)

    def partial(self, groups: Groups, values: pa.Array | None) -> list[pa.Array]:
        """Add the values of each group."""
        values = needed(values, self.column)
        return [sums(groups, values, self.result(values.type), self.column)]

    def merge(self, groups: Groups, accumulators: list[pa.Array]) -> list[pa.Array]:
        """Add the sums of each group."""
        return [sums(groups, accumulators[0], accumulators[0].type, self.column)]

    def combine(self, old: list[pa.Array], new: list[pa.Array], found: Found) -> list[pa.Array]:
        """Add the new sums to the old."""
        return [_combine_sums(old[0], new[0], found, self.column)]

    def finish(self, accumulators: list[pa.Array]) -> pa.Array:
        """The sum."""
        return accumulators[0]

    def exact(self, input_type: pa.DataType | None) -> bool:
        """All but floats add up in any order."""
        return not pa.types.is_floating(self.result(input_type))

    def native(self, input_type: pa.DataType | None) -> list[tuple[str, str]] | None:
        """Spark sums as well, and refuses an overflow unless ``spark.sql.ansi.enabled`` is off.

        Floats it would sum in an order that nobody knows.
        """
        return [("sum", self.column)] if self.exact(input_type) else None


@dataclass(frozen=True)
class Mean:
    """The mean of the values that are not null; null if there is none.

    It is a double, of decimals too, for which Spark gives a decimal. Unlike in Spark, integers are summed
    exactly, as longs, so it doesn't depend on the order of the rows; a sum that no long holds is refused.
    """

    column: str

    def state(self, input_type: pa.DataType | None) -> list[pa.Field]:
        """Two accumulators: the sum and the count."""
        return [pa.field("sum", sum_type(input_type, "mean", self.column)), pa.field("n", pa.int64())]

    def result(self, input_type: pa.DataType | None) -> pa.DataType:
        """A double."""
        sum_type(input_type, "mean", self.column)
        return pa.float64()

    def partial(self, groups: Groups, values: pa.Array | None) -> list[pa.Array]:
        """Add and count the values of each group."""
        values = needed(values, self.column)
        added = sum_type(values.type, "mean", self.column)
        return [sums(groups, values, added, self.column), _counts(groups, values)]

    def merge(self, groups: Groups, accumulators: list[pa.Array]) -> list[pa.Array]:
        """Add the sums and the counts of each group."""
        return [sums(groups, column, column.type, self.column) for column in accumulators]

    def combine(self, old: list[pa.Array], new: list[pa.Array], found: Found) -> list[pa.Array]:
        """Add the new sums and counts to the old."""
        return [_combine_sums(o, n, found, self.column) for o, n in zip(old, new, strict=True)]

    def finish(self, accumulators: list[pa.Array]) -> pa.Array:
        """Divide."""
        added, count = accumulators
        # A group without a value has no sum either, and the quotient of a null is null.
        return pc.divide(added.cast(pa.float64(), safe=False), count.cast(pa.float64(), safe=False))

    def exact(self, input_type: pa.DataType | None) -> bool:
        """As exact as the sum."""
        return not pa.types.is_floating(sum_type(input_type, "mean", self.column))

    def native(self, input_type: pa.DataType | None) -> list[tuple[str, str]] | None:
        """The sum and the count by Spark, where the sum is exact."""
        return [("sum", self.column), ("count", self.column)] if self.exact(input_type) else None


def needed(values: pa.Array | None, column: str) -> pa.Array:
    """The values, which an aggregate of a column can't do without."""
    if values is None:
        raise InvalidInput(f"no values given for column {column!r}")
    return values


def _counts(groups: Groups, values: pa.Array | None) -> pa.Array:
    valid = None if values is None else validity(values)
    return from_values(groups.counts if valid is None else non_null(groups, valid), pa.int64())


def _combine_sums(old: pa.Array, new: pa.Array, found: Found, column: str | None) -> pa.Array:
    if not found.all():
        old = pc.if_else(pa.array(found), old, pa.scalar(None, old.type))
    return add(old, new, column)
