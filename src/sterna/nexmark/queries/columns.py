"""What queries do to columns: keep some, name the window that a row is in."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from sterna.durations import seconds
from sterna.folds import ints, times

Rows = Callable[[pa.Table], pa.Table]


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


def distinct(rows: pa.Table, name: str) -> pa.Table:
    """A column with every value once."""
    return pa.table({name: rows.column(name).unique()})
