"""The aggregate functions that users name: count, sum, min, max, mean, first, last and largest.

Each is an ``Aggregate``: it turns rows into accumulators, a few Arrow columns with one row a key, which are
what the state holds. Goes in: values, sorted so that equal keys are adjacent. Comes out: accumulators, and
from these the result. The way of a value is

    partial (at a router, or over the rows themselves) -> merge (what several routers sent)
    -> combine (with the state of the epoch before) -> finish (the output).

Semantics are Spark's, except where a function says otherwise. A column of a type that a function can't
take, and a sum that leaves its type, raise ``InvalidInput``, which names the column.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sterna.errors import check_whole
from sterna.operators.counting import Count, Mean, Sum
from sterna.operators.extremes import Largest, Max, Min
from sterna.operators.groups import Groups, group_sorted
from sterna.operators.positions import First, Last

__all__ = [
    "Aggregate",
    "Count",
    "First",
    "Groups",
    "Largest",
    "Last",
    "Max",
    "Mean",
    "Min",
    "Sum",
    "count",
    "first",
    "group_sorted",
    "largest",
    "last",
    "max",
    "mean",
    "min",
    "sum",
]


class Aggregate(Protocol):
    """A function of many values of one key."""

    @property
    def column(self) -> str | None:
        """The input column, or None if the function counts rows."""

    def state(self, input_type: pa.DataType | None) -> list[pa.Field]:
        """The accumulators; the caller prefixes their names with the output's.

        Raises:
            InvalidInput: The function can't take values of that type.
        """

    def result(self, input_type: pa.DataType | None) -> pa.DataType:
        """The type of the result.

        Raises:
            InvalidInput: The function can't take values of that type.
        """

    def partial(self, groups: Groups, values: pa.Array | None) -> list[pa.Array]:
        """Accumulators, one row a group, from the values of the groups' rows in the order of the rows."""

    def merge(self, groups: Groups, accumulators: list[pa.Array]) -> list[pa.Array]:
        """Accumulators, one row a group, from several rows of accumulators a group."""

    def combine(
        self, old: list[pa.Array], new: list[pa.Array], found: npt.NDArray[np.bool_]
    ) -> list[pa.Array]:
        """Old accumulators with newer ones, row by row; the new alone where ``found`` is false.

        Where it is false, the old ones may be anything.
        """

    def finish(self, accumulators: list[pa.Array]) -> pa.Array:
        """The results, one a row of accumulators."""

    def exact(self, input_type: pa.DataType | None) -> bool:
        """Whether accumulators may be combined in any order with a bit-identical result."""

    def native(self, input_type: pa.DataType | None) -> list[tuple[str, str]] | None:
        """The accumulators as Spark's aggregate functions, each a name and a column; None if it has none."""


def count(column: str | None = None) -> Aggregate:
    """The number of rows, or of the values of a column that are not null; a long."""
    return Count(column)


def sum(column: str) -> Aggregate:
    """The sum of a column: a long of integers, a double of floats, a decimal of ten more digits of decimals.

    Nulls are skipped; the sum of nothing else is null. A sum of integers or decimals that leaves its type
    stops the query, as in Spark with ``spark.sql.ansi.enabled``; so does a part of it, that of one router.
    """
    return Sum(column)


def min(column: str) -> Aggregate:
    """The least value of a column, nulls skipped; NaN is greater than any number."""
    return Min(column)


def max(column: str) -> Aggregate:
    """The greatest value of a column, nulls skipped; NaN is greater than any number."""
    return Max(column)


def mean(column: str) -> Aggregate:
    """The mean of a column, nulls skipped; always a double."""
    return Mean(column)


def first(column: str) -> Aggregate:
    """The first value of a column, null or not."""
    return First(column)


def last(column: str) -> Aggregate:
    """The last value of a column, null or not."""
    return Last(column)


def largest(k: int, column: str) -> Aggregate:
    """A list of the ``k`` greatest values of a column, the greatest first, nulls skipped."""
    check_whole("the first argument of largest, as in largest(3, 'price'),", k, 1)
    return Largest(k, column)
