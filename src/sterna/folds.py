"""What functions for ``unary`` and ``binary`` are written with.

That is the types of what they are handed (``Tables``, a ``Handle`` for each table, ``Later``), and Arrow's
columns as NumPy's arrays, and back.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sterna.operators.base import contiguous, microseconds
from sterna.operators.handles import Handle, Later, Tables

__all__ = [
    "Handle",
    "Ints",
    "Later",
    "Tables",
    "contiguous",
    "first_of_each",
    "ints",
    "microseconds",
    "times",
]

Ints = npt.NDArray[np.int64]
TIME = pa.timestamp("us", tz="UTC")


def ints(rows: pa.Table, name: str) -> Ints:
    """A column of integers or times without nulls."""
    return np.asarray(rows.column(name).cast(pa.int64()).to_numpy(), np.int64)


def times(values: Ints) -> pa.Array:
    """Microseconds as event times."""
    return pa.array(values).cast(TIME)


def first_of_each(*sorted_columns: Ints) -> npt.NDArray[np.bool_]:
    """Where a group begins in columns that are sorted together.

    Example:
        >>> first_of_each(np.array([1, 1, 2]), np.array([5, 6, 6])).tolist()
        [True, True, True]
        >>> first_of_each(np.array([1, 1, 2])).tolist()
        [True, False, True]
    """
    change = np.zeros(len(sorted_columns[0]), np.bool_)
    change[:1] = True
    for column in sorted_columns:
        change[1:] |= column[1:] != column[:-1]
    return change
