"""One worker's table at one epoch: a view over its runs, and the writes of this epoch on top.

In: hashes (uint64) and key columns in the order of the table's keys, with value columns in theirs. Reads see
the earlier writes of the same epoch. Nothing is written to disk until ``flush``, which hands over the epoch's
writes as one run; a table that is thrown away instead leaves no trace. A damaged run raises ``StateError``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sterna.hashing import stable_order
from sterna.state.columns import Hashes, Ints, Mask, build, gather, plain
from sterna.state.lookup import Located, View, all_rows, locate, survivors, timely, views_of
from sterna.state.merging import Slice, empty, merge
from sterna.state.refs import END, RunRef, newest_first
from sterna.state.run import Run
from sterna.state.runs import RunCache
from sterna.state.spec import TableSpec

__all__ = ["Located", "Table", "TableSpec"]

_CHUNK_BYTES = 64 << 20
Columns = Sequence[pa.Array | pa.ChunkedArray]


class Table:
    """A table of a worker at an epoch.

    Args:
        spec: What the table is.
        refs: The runs that hold it, in any order.
        cache: Where runs are opened.
        horizon: Rows of a rows table with a time before this are expired: nobody sees them.
    """

    def __init__(
        self, spec: TableSpec, refs: Sequence[RunRef], cache: RunCache, horizon: int | None = None
    ) -> None:
        self.spec = spec
        self.refs = sorted(refs, key=newest_first)
        self.horizon = horizon
        self._cache = cache
        self._views: list[View] | None = None
        self._memory: list[Run] = []  # this epoch's writes, the oldest first
        self._types: dict[str, pa.DataType] = {field.name: field.type for field in spec.schema()}

    @property
    def rows_estimate(self) -> int:
        """How many rows the table holds at most: rows that a newer one replaces are counted too."""
        return sum(stop - start for _, start, stop in self._slices(0, END))

    def fresh(self) -> Table:
        """The table as it was before this epoch's writes."""
        return Table(self.spec, self.refs, self._cache, self.horizon)

    # Value tables.

    def locate(self, hashes: Hashes, keys: Columns) -> Located:
        """Find keys that are sorted by hash once, to read single columns after."""
        self._only("value")
        self._sorted(hashes)
        return locate(
            self._all_views(), self.spec.key_columns, self._types, hashes, self._fit(keys, self.spec.keys)
        )

    def get(self, hashes: Hashes, keys: Columns) -> tuple[Mask, list[pa.Array]]:
        """Which keys have a row, and the value columns aligned to them, null where there is none."""
        order = stable_order(hashes)
        back = _inverse(order)
        index = pa.array(order)
        found = self.locate(hashes[order], [column.take(index) for column in self._fit(keys, self.spec.keys)])
        index = pa.array(back)
        return found.found[back], [found.take(name).take(index) for name in self.spec.values.names]

    def put(self, hashes: Hashes, keys: Columns, values: Columns) -> None:
        """Set the values of keys in any order; of two rows with one key the later wins."""
        self._only("value")
        self._write(hashes, self._fit(keys, self.spec.keys), None, self._fit(values, self.spec.values), False)

    def put_sorted(self, hashes: Hashes, keys: Columns, values: Columns) -> None:
        """Set the values of distinct keys that are sorted by hash."""
        self._only("value")
        self._sorted(hashes)
        self._add(hashes, self._fit(keys, self.spec.keys), None, self._fit(values, self.spec.values), False)

    def delete(self, hashes: Hashes, keys: Columns) -> None:
        """Delete keys: the row of each in a value table, all rows so far of each in a rows table."""
        values = [pa.nulls(len(hashes), field.type) for field in self.spec.values]
        times = np.zeros(len(hashes), np.int64) if self.spec.timed else None
        self._write(hashes, self._fit(keys, self.spec.keys), times, values, True)

    # Rows tables.

    def append(self, hashes: Hashes, keys: Columns, times: Any, values: Columns) -> None:
        """Add rows, in any order of keys; rows of one key keep the order they are given in."""
        self._only("rows")
        if not isinstance(times, np.ndarray):
            times = plain(times.combine_chunks() if isinstance(times, pa.ChunkedArray) else times)
        self._write(
            hashes,
            self._fit(keys, self.spec.keys),
            times.view(np.int64),
            self._fit(values, self.spec.values),
            False,
        )

    def rows(self, hashes: Hashes, keys: Columns) -> tuple[Ints, npt.NDArray[np.int64], list[pa.Array]]:
        """The live rows of keys: for each the position of its key, its time, and the value columns.

        The position is that in the input. Ordered by the position of the key, then as appended.
        """
        self._only("rows")
        order = stable_order(hashes)
        index = pa.array(order)
        columns = [column.take(index) for column in self._fit(keys, self.spec.keys)]
        parts = all_rows(self._all_views(), self.spec.key_columns, hashes[order], columns, self.horizon)[::-1]
        if not parts:
            nothing = [pa.array([], field.type) for field in self.spec.values]
            return np.empty(0, np.int64), np.empty(0, np.int64), nothing
        owners = order[np.concatenate([who for _, _, who in parts])]
        by_owner = np.argsort(owners, kind="stable")
        batch = self._gather(
            [(run, rows) for run, rows, _ in parts], _inverse(by_owner), ["_time", *self.spec.value_columns]
        )
        return owners[by_owner], plain(batch[0]).view(np.int64), batch[1:]

    def due(self, after: int | None, upto: int) -> pa.RecordBatch:
        """All live rows with ``after < _time <= upto``, ordered by time, then hash, then as appended."""
        self._only("rows")
        if self.horizon is not None:
            after = self.horizon - 1 if after is None else max(after, self.horizon - 1)
        parts: list[tuple[Run, Ints]] = []
        killers: list[View] = []
        for view in self._all_views():
            rows = timely(view, after, upto)
            for killer in killers:
                rows = survivors(self.spec.key_columns, view.run, rows, killer)
            if len(rows):
                parts.append((view.run, rows))
            if view.deletes:
                killers.append(view)
        if not parts:
            return empty(self.spec)
        parts.reverse()
        hashes = np.concatenate([run.hashes[rows] for run, rows in parts])
        times = np.concatenate([plain(run.column("_time")).view(np.int64)[rows] for run, rows in parts])
        order = np.lexsort((hashes, times))
        schema = self.spec.schema()
        return pa.RecordBatch.from_arrays(self._gather(parts, _inverse(order), schema.names), schema=schema)

    # Both.

    def scan(self, lo: int = 0, hi: int = END) -> pa.Table:
        """The live content of a hash range in hash order, in the schema of the run files."""
        slices = self._slices(lo, hi)
        total = sum(stop - start for _, start, stop in slices)
        if not total:
            return pa.Table.from_batches([], self.spec.schema())
        # In pieces, so that a large table is never sorted or held twice as a whole.
        biggest, start, stop = max(slices, key=lambda s: s[2] - s[1])
        size = sum((y - x) * (run.batch.nbytes // run.rows) for run, x, y in slices if run.rows)
        steps = max(1, size // _CHUNK_BYTES)
        cuts = [int(biggest.hashes[start + (stop - start) * i // steps]) for i in range(1, steps)]
        edges = [lo, *sorted(set(cuts) - {lo}), hi]
        batches = []
        for a, b in itertools.pairwise(edges):
            pieces = []
            for run, first, last in slices:
                x, y = run.span(a, b)
                pieces.append((run, max(x, first), min(y, last)))
            batches.append(merge(self.spec, pieces, True, self.horizon))
        return pa.Table.from_batches([batch for batch in batches if batch.num_rows], self.spec.schema())

    def flush(self, write: Callable[[pa.RecordBatch], list[RunRef]]) -> list[RunRef]:
        """Hand this epoch's writes over as one batch to what writes it, e.g.

        ``cache.writer(...)``; [] if none.

        The table goes on showing them.
        """
        if not self._memory:
            return []
        if len(self._memory) > 1:
            self._memory = [self._merged(self._memory)]
        batch = self._memory[0].batch
        return write(batch) if batch.num_rows else []

    def _only(self, kind: str) -> None:
        if self.spec.kind != kind:
            raise TypeError(
                f"table {self.spec.name!r} is a {self.spec.kind} table, this is for {kind} tables"
            )

    def _sorted(self, hashes: Hashes) -> None:
        if len(hashes) > 1 and not bool((hashes[1:] >= hashes[:-1]).all()):
            raise ValueError(f"hashes for table {self.spec.name!r} are not sorted")

    def _fit(self, columns: Columns, schema: pa.Schema) -> list[pa.Array]:
        if len(columns) != len(schema):
            raise ValueError(f"table {self.spec.name!r} takes {len(schema)} columns, got {len(columns)}")
        out = []
        for column, field in zip(columns, schema, strict=True):
            whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            out.append(whole if whole.type == field.type else whole.cast(field.type))
        return out

    def _all_views(self) -> list[View]:
        if self._views is None:
            self._views = views_of(self.refs, self._cache)
        memory = [
            View(run, [(int(run.hashes[0]), int(run.hashes[-1]) + 1)], len(run.gone) > 0)
            for run in reversed(self._memory)
            if run.rows
        ]
        return memory + self._views

    def _slices(self, lo: int, hi: int) -> list[Slice]:
        parts = [part for ref in reversed(self.refs) if (part := ref.cut(lo, hi))]
        slices: list[Slice] = []
        for part in parts:
            run = self._cache.open(part)
            slices.append((run, *run.span(part.lo, part.hi)))
        return slices + [(run, *run.span(lo, hi)) for run in self._memory]

    def _write(
        self, hashes: Hashes, keys: list[pa.Array], times: Ints | None, values: list[pa.Array], gone: bool
    ) -> None:
        if not bool((hashes[1:] >= hashes[:-1]).all()):
            order = stable_order(hashes)
            index = pa.array(order)
            hashes, keys = hashes[order], [column.take(index) for column in keys]
            values = [column.take(index) for column in values]
            times = None if times is None else times[order]
        self._add(hashes, keys, times, values, gone)
        if self._memory and (gone or not self.spec.timed):
            run = self._memory[-1]
            if bool((run.hashes[1:] == run.hashes[:-1]).any()):
                # The same key may be there twice: a run holds each once.
                self._memory[-1] = self._merged([run])
        self._tidy()

    def _add(
        self, hashes: Hashes, keys: list[pa.Array], times: Ints | None, values: list[pa.Array], gone: bool
    ) -> None:
        if not len(hashes):
            return
        columns = [build(pa.uint64(), hashes, None), *keys]
        if times is not None:
            columns.append(build(pa.int64(), times, None))
        columns += [*values, build(pa.bool_(), np.full(len(hashes), gone), None)]
        self._memory.append(Run(pa.RecordBatch.from_arrays(columns, schema=self.spec.schema())))
        self._tidy()

    def _tidy(self) -> None:
        # Like sizes are merged, so that many small writes cost the logarithm of their number, not their
        # number.
        while len(self._memory) > 2 and self._memory[-1].rows * 2 > self._memory[-2].rows:
            self._memory[-2:] = [self._merged(self._memory[-2:])]

    def _merged(self, runs: list[Run]) -> Run:
        return Run(merge(self.spec, [(run, 0, run.rows) for run in runs], False, self.horizon))

    def _gather(self, parts: list[tuple[Run, Ints]], places: Ints, names: Sequence[str]) -> list[pa.Array]:
        edges = np.cumsum([0, *(len(rows) for _, rows in parts)]).tolist()
        spots = [places[a:b] for a, b in itertools.pairwise(edges)]
        return [
            gather(
                self._types[name],
                len(places),
                [(run.words(name), rows, spot) for (run, rows), spot in zip(parts, spots, strict=True)],
            )
            for name in names
        ]


def _inverse(order: Ints) -> Ints:
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places
