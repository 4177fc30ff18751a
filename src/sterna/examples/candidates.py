"""Patterns: sets of items, written as the items in their order with spaces between them.

``Candidates`` makes all patterns of transactions, in the router. ``parts_of`` makes the patterns that lack
one item of a pattern.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sterna.examples.items import SPACE, expanded, items_of
from sterna.folds import Ints, contiguous, microseconds, times


@dataclass(frozen=True)
class Candidates:
    """How many transactions contain each pattern, in each pane of event time: a function for ``Stream.map``.

    A transaction of m items contains as many patterns as there are ways to choose one to ``longest`` of m.
    Rows without items, or without a time, contain none.

    Attributes:
        items: the column with a transaction's items; see ``items.items_of``.
        time: the column with its event time.
        slide: the length of a pane, in microseconds.
        longest: how many items a pattern has at most.

    Example:
        >>> rows = pa.table({"text": ["b a", "a"], "time": [7, 8]})
        >>> Candidates("text", "time", slide=5, longest=2)(rows).drop_columns("time").to_pydict()
        {'pattern': ['a', 'b', 'a b'], 'n': [2, 1, 1]}
    """

    items: str
    time: str
    slide: int
    longest: int

    def __call__(self, rows: pa.Table) -> pa.Table:
        """(pattern, the beginning of the pane, n)."""
        rows = rows.filter(pc.is_valid(rows.column(self.time)))
        pane = microseconds(contiguous(rows.column(self.time))) // self.slide * self.slide
        row, pattern = subsets(*distinct_items(*items_of(rows.column(self.items))), self.longest)
        found = pa.table({"pattern": pattern, self.time: times(pane[row])})
        counted = found.group_by(["pattern", self.time], use_threads=False).aggregate([([], "count_all")])
        return counted.select(["pattern", self.time, "count_all"]).rename_columns(["pattern", self.time, "n"])


def distinct_items(row: Ints, item: pa.Array) -> tuple[Ints, pa.Array]:
    """Each item of each row once, the items of a row in order.

    Example:
        >>> row, item = distinct_items(np.array([0, 0, 0, 1]), pa.array(["b", "a", "b", "c"]))
        >>> row.tolist(), item.to_pylist()
        ([0, 0, 1], ['a', 'b', 'c'])
    """
    encoded = item.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy().astype(np.int64)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    known = max(1, len(order))
    once = np.unique(row * known + place[encoded.indices.to_numpy()])
    return once // known, encoded.dictionary.take(pa.array(order[once % known]))


def subsets(row: Ints, item: pa.Array, longest: int) -> tuple[Ints, pa.Array]:
    """All patterns of one to ``longest`` items of a row: for each its row, and itself.

    The items are as ``distinct_items`` gives them.

    Example:
        >>> row, pattern = subsets(np.array([0, 0, 0, 1]), pa.array(["a", "b", "c", "a"]), 2)
        >>> row.tolist(), pattern.to_pylist()
        ([0, 0, 0, 1, 0, 0, 0], ['a', 'b', 'c', 'a', 'a b', 'a c', 'b c'])
    """
    end = np.searchsorted(row, row, "right")
    last, pattern = np.arange(len(row)), item
    rows, patterns = [row], [item]
    for _ in range(longest - 1):
        # Each pattern with each item of its row that comes after its last.
        which, nth = expanded(end[last] - last - 1)
        last = last[which] + 1 + nth
        pattern = pc.binary_join_element_wise(pattern.take(pa.array(which)), item.take(pa.array(last)), SPACE)
        rows.append(row[last])
        patterns.append(pattern)
    return np.concatenate(rows), pa.concat_arrays(patterns)


def parts_of(patterns: pa.Array) -> tuple[Ints, pa.Array]:
    """The patterns with one item less: for each the number of the pattern that it is a part of, and itself.

    A single item has none.

    Example:
        >>> whole, part = parts_of(pa.array(["a b c", "a", "b c"]))
        >>> whole.tolist(), part.to_pylist()
        ([0, 0, 0, 2, 2], ['b c', 'a c', 'a b', 'c', 'b'])
    """
    items = pc.split_pattern(patterns, SPACE)
    length = pc.list_value_length(items).to_numpy().astype(np.int64)
    whole, left_out = expanded(np.where(length > 1, length, 0))
    copies = items.take(pa.array(whole)).flatten()
    end = np.cumsum(length[whole])
    stays = np.ones(len(copies), np.bool_)
    stays[end - length[whole] + left_out] = False
    # Each copy lacks one item, so it ends by one earlier for each copy up to it.
    offsets = np.append(0, end - np.arange(1, len(end) + 1))
    shorter = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), copies.filter(pa.array(stays)))
    return whole, pc.binary_join(shorter, SPACE)
