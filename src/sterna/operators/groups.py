"""Rows of equal keys, brought together.

Goes in: the hashes and the key columns of unsorted rows. Comes out: an order of the rows, by hash, in which
equal keys are neighbours and rows of one key keep their own order, and where each key begins. Two keys that
share a hash stay two groups. Keys are compared as Spark's ``groupBy`` does: null equals null, NaN equals
NaN, and -0.0 equals 0.0. Nothing here fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sterna.hashing import Hashes, normalise, stable_order

Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Groups:
    """Where each group of adjacent rows begins; a group has at least one row.

    Attributes:
        starts: The first row of each group, ascending from 0.
        rows: How many rows there are in all.

    Example:
        >>> groups = Groups(np.array([0, 2, 3]), 6)
        >>> groups.counts.tolist(), groups.ids.tolist()
        ([2, 1, 3], [0, 0, 1, 2, 2, 2])
    """

    starts: Index
    rows: int

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def counts(self) -> Index:
        """How many rows each group has."""
        return np.diff(self.starts, append=self.rows)

    @cached_property
    def ends(self) -> Index:
        """The last row of each group."""
        return self.starts + self.counts - 1

    @cached_property
    def ids(self) -> Index:
        """The group of each row."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.counts)


def group_sorted(hashes: Hashes, keys: list[pa.Array], order: Index | None = None) -> tuple[Index, Groups]:
    """Bring equal keys together.

    Args:
        hashes: The hash of each row's key.
        keys: The key columns, as long as ``hashes``.
        order: The order in which the rows come, if not as they lie; rows of one key keep it.

    Returns:
        The order of the rows, by hash, that makes equal keys adjacent, and the groups of rows so ordered.
    """
    sorted_ = stable_order(hashes if order is None else hashes[order])
    order = sorted_ if order is None else order[sorted_]
    ordered = hashes[order]
    new = np.empty(len(order), dtype=np.bool_)
    new[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    same = np.flatnonzero(~new)
    if len(same):
        differ = _differ(keys, order[same - 1], order[same])
        if differ.any():
            order = _split_collisions(ordered, keys, order, ordered[same[differ]])
            new[same] = _differ(keys, order[same - 1], order[same])
    return order, Groups(np.flatnonzero(new), len(order))


def _differ(keys: list[pa.Array], left: Index, right: Index) -> npt.NDArray[np.bool_]:
    """Whether the keys at some rows are others than those at some other rows."""
    differ = np.zeros(len(left), dtype=np.bool_)
    for key in keys:
        a, b = normalise(key.take(pa.array(left))), normalise(key.take(pa.array(right)))
        if pa.types.is_floating(key.type):  # NaN is a key like any other: compare the bits
            bits = pa.int32() if pa.types.is_float32(key.type) else pa.int64()
            a, b = a.view(bits), b.view(bits)
        unequal = pc.not_equal(a, b)
        if unequal.null_count:
            unequal = pc.if_else(unequal.is_null(), pc.xor(a.is_null(), b.is_null()), unequal)
        differ |= unequal.to_numpy(zero_copy_only=False)
    return differ


def _split_collisions(ordered: Hashes, keys: list[pa.Array], order: Index, shared: Hashes) -> Index:
    """Sort the rows of hashes that several keys share so that equal keys are adjacent."""
    places = np.flatnonzero(np.isin(ordered, shared))
    rows = order[places]
    codes: Any = reduce(_pair, (_codes(key.take(pa.array(rows))) for key in keys))
    order = order.copy()
    order[places] = rows[np.lexsort((codes, ordered[places]))]
    return order


def _codes(column: pa.Array) -> Index:
    """A number for each value: equal for equal values, null included."""
    encoded = normalise(column).dictionary_encode(null_encoding="encode")
    codes: Index = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _pair(left: Index, right: Index) -> Index:
    """A number for each pair of numbers, small enough to be paired again."""
    codes: Index = np.unique(left * (right.max() + 1) + right, return_inverse=True)[1].astype(np.int64)
    return codes
