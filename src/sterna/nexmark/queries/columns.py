"""What queries do to columns: keep some, name the window that a row is in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sterna.durations import seconds

Ints = npt.NDArray[np.int64]
Rows = Callable[[pa.Table], pa.Table]
TIME = pa.timestamp("us", tz="UTC")


def only(*names: str) -> Rows:
    """Keeps these columns."""
    return lambda rows: rows.select(names)


def tumbling(length: str) -> Rows:
    """Adds ``window``, the beginning of the tumbling window that ``dateTime`` lies in."""
    width = microseconds(length)
    return lambda rows: rows.append_column("window", times(ints(rows, "dateTime") // width * width))


def microseconds(length: str) -> int:
    """A duration such as ``12 hours``."""
    return int(seconds(length) * 1e6)


def ints(rows: pa.Table, name: str) -> Ints:
    """A column of integers or times without nulls."""
    return np.asarray(rows.column(name).cast(pa.int64()).to_numpy(), np.int64)


def times(values: Ints) -> pa.Array:
    """Microseconds as event times."""
    return pa.array(values).cast(TIME)


def distinct(rows: pa.Table, name: str) -> pa.Table:
    """A column with every value once."""
    return pa.table({name: rows.column(name).unique()})


def first_of_each(*sorted_columns: Ints) -> npt.NDArray[np.bool_]:
    """Where a group begins in columns that are sorted together."""
    change = np.zeros(len(sorted_columns[0]), np.bool_)
    change[:1] = True
    for column in sorted_columns:
        change[1:] |= column[1:] != column[:-1]
    return change
