"""Merging slices of runs into one: the kernel of compaction, scanning and flushing.

In: slices ``(run, start, stop)`` of one table, the oldest first. Out: one record batch in the table's run
schema, sorted by hash. For a value table the newest row of each key stays; for a rows table all rows stay, in
append order, but those that a later tombstone of their key deletes or that are older than the horizon.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sterna.state.columns import Hashes, Ints, Mask, Words, build, equal, identify, plain
from sterna.state.columns import take as take_column
from sterna.state.run import Run
from sterna.state.spec import TableSpec

Slice = tuple[Run, int, int]


def merge(
    spec: TableSpec, slices: Sequence[Slice], drop_deleted: bool, horizon: int | None = None
) -> pa.RecordBatch:
    """Merge slices, the oldest first.

    Args:
        spec: The table.
        slices: What to merge; each is sorted by hash.
        drop_deleted: Drop the tombstones too, because nothing older is left for them to hide.
        horizon: Rows with a time before this are dropped.
    """
    slices = [s for s in slices if s[2] > s[1]]
    if not slices:
        return empty(spec)
    merger = _Merger(spec, slices)
    order = merger.live(horizon)
    if drop_deleted and merger.gone is not None:
        order = order[~merger.gone[order]]
    return merger.batch(order)


def empty(spec: TableSpec) -> pa.RecordBatch:
    """No rows, in the run schema of a table."""
    schema = spec.schema()
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


class _Merger:
    """The slices laid end to end; rows are named by their position in that."""

    def __init__(self, spec: TableSpec, slices: Sequence[Slice]) -> None:
        self.spec = spec
        self.slices = slices
        parts = [run.hashes[start:stop] for run, start, stop in slices]
        self.hashes: Hashes = parts[0] if len(parts) == 1 else np.concatenate(parts)
        self.gone = self._gone()
        self._columns: dict[str, pa.Array] = {}

    def _gone(self) -> Mask | None:
        mask: Mask | None = None
        base = 0
        for run, start, stop in self.slices:
            first, last = run.gone.searchsorted([start, stop])
            if last > first:
                if mask is None:
                    mask = np.zeros(len(self.hashes), np.bool_)
                mask[run.gone[first:last] - start + base] = True
            base += stop - start
        return mask

    def column(self, name: str) -> pa.Array:
        if name not in self._columns:
            parts = [run.column(name).slice(start, stop - start) for run, start, stop in self.slices]
            self._columns[name] = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        return self._columns[name]

    def keys(self) -> list[pa.Array]:
        return [self.column(name) for name in self.spec.key_columns]

    def live(self, horizon: int | None) -> Ints:
        """The rows that stay, by hash, then age."""
        hashes = self.hashes
        if len(self.slices) == 1 or bool((hashes[1:] >= hashes[:-1]).all()):
            order = np.arange(len(hashes))
        else:
            order = np.argsort(hashes, kind="stable")
        if self.spec.kind == "value":
            return self._newest(order)
        if self.gone is not None:
            order = self._undeleted(order)
        if horizon is not None:
            alive = plain(self.column("_time")).view(np.int64) >= horizon
            if self.gone is not None:
                alive |= self.gone
            order = order[alive[order]]
        return order

    def _newest(self, order: Ints) -> Ints:
        """Only the last row of each key."""
        hashes = self.hashes[order]
        twin = hashes[1:] == hashes[:-1]
        at = np.flatnonzero(twin)
        if not len(at):
            return order
        keys = [Words(column) for column in self.keys()]
        same = equal(keys, order[at], keys, order[at + 1])
        stays = np.ones(len(order), np.bool_)
        if not same.all():
            # Different keys share a hash: their rows may alternate, so equal neighbours are not enough.
            group = np.concatenate([[0], np.cumsum(~twin)])
            mixed = np.zeros(group[-1] + 1, np.bool_)
            mixed[group[at[~same]]] = True
            members = np.flatnonzero(mixed[group])
            ids = identify([column.take(pa.array(order[members])) for column in self.keys()])
            last = np.full(int(ids.max()) + 1, -1, np.int64)
            np.maximum.at(last, ids, np.arange(len(ids)))
            stays[members] = last[ids] == np.arange(len(ids))
            at = at[~mixed[group[at]]]
        stays[at] = False
        return order[stays]

    def _undeleted(self, order: Ints) -> Ints:
        """All rows but those that come before a tombstone of the same key."""
        assert self.gone is not None
        hashes, gone = self.hashes[order], self.gone[order]
        marked = np.unique(hashes[gone])
        slot = np.minimum(marked.searchsorted(hashes), len(marked) - 1)
        members = np.flatnonzero(marked[slot] == hashes)
        ids = identify([column.take(pa.array(order[members])) for column in self.keys()])
        dead_before = np.full(int(ids.max()) + 1, -1, np.int64)
        stones = np.flatnonzero(gone[members])
        np.maximum.at(dead_before, ids[stones], stones)
        stays = np.ones(len(order), np.bool_)
        stays[members] = np.arange(len(members)) >= dead_before[ids]
        return order[stays]

    def batch(self, order: Ints) -> pa.RecordBatch:
        schema = self.spec.schema()
        whole = len(order) == len(self.hashes) and len(self.slices) == 1
        if whole:
            return pa.RecordBatch.from_arrays([self.column(field.name) for field in schema], schema=schema)
        columns = [self._taken(field.name, order) for field in schema]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _taken(self, name: str, order: Ints) -> pa.Array:
        if name == "_hash":
            return build(pa.uint64(), self.hashes[order], None)
        if name == "_gone" and self.gone is None:
            return build(pa.bool_(), np.zeros(len(order), np.bool_), None)
        return take_column([self.column(name)], order)
