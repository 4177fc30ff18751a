"""Sliding and tumbling windows: aggregates of the rows of a key in a stretch of event time.

As in Spark, windows begin at multiples of the time by which they slide, counted from 1970. Each is told once,
with its key, when the watermark has passed its end; a window without rows is not told. A row without an event
time is in no window.

Rows are added up in *panes*, the longest stretches of which all windows are made. State: a row of
accumulators for each pane in which a key has rows, and epoch in which these came, kept until the last of its
windows is over; and for each key with panes the end of the next window that it waits for. One epoch may pass
many windows, so what is due is not a window but a key.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sterna.folds import Ints, first_of_each, ints, microseconds, times
from sterna.hashing import hash_keys
from sterna.operators.base import contiguous
from sterna.operators.fold import TableWish
from sterna.operators.groups import Groups, group_sorted
from sterna.operators.handles import Later, Tables
from sterna.operators.named import Named

START, END = "window_start", "window_end"
PANE, UNTIL = "_pane", "_until"
NAMES = (START, END, PANE, UNTIL)
"""What keys and results can't be called."""
TIME = pa.timestamp("us", tz="UTC")
FOREVER = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class Windows:
    """The fold; see the module's docstring.

    Attributes:
        length: of a window, in microseconds.
        slide: from the beginning of a window to that of the next.
        keys: the fields of the key columns.
        time: the event-time column.
        named: what is told of a window.
    """

    length: int
    slide: int
    keys: tuple[pa.Field, ...]
    time: str
    named: Named

    @property
    def pane(self) -> int:
        """How long a pane is."""
        return math.gcd(self.length, self.slide)

    @property
    def output(self) -> pa.Schema:
        """The key, the window, and the results."""
        window = [pa.field(START, TIME), pa.field(END, TIME)]
        return pa.schema([*self.keys, *window, *self.named.results])

    @property
    def tables(self) -> dict[str, TableWish]:
        """The state."""
        panes = pa.schema(self.named.accumulators)
        return {
            "panes": TableWish("rows", panes, PANE, self.length),
            "waiting": TableWish("value", self.later),
        }

    @property
    def later(self) -> pa.Schema:
        """What is kept with a notification."""
        return pa.schema([pa.field(UNTIL, pa.int64())])

    def __call__(self, rows: pa.Table, tables: Tables, later: Later) -> pa.Table:
        """Adds rows to their panes, and tells the windows that are over."""
        self._add(rows, tables, later)
        due = later.due.select([*(key.name for key in self.keys), UNTIL])
        # A key may have been told to wait for an earlier window after it began to wait for a later one, and
        # then for the later one again.
        due = due.filter(pc.equal(tables.waiting.get(due).column(UNTIL), due.column(UNTIL)))
        return self._over(self._once(due), tables, later)

    def _add(self, rows: pa.Table, tables: Tables, later: Later) -> None:
        rows = rows.filter(pc.is_valid(rows.column(self.time)))
        if not rows.num_rows:
            return
        pane = microseconds(contiguous(rows.column(self.time))) // self.pane * self.pane
        keys = [contiguous(rows.column(key.name)) for key in self.keys]
        both = [*keys, pa.array(pane)]
        order, groups = group_sorted(hash_keys(both), both)
        panes = self._table(keys, order[groups.starts])
        at = pane[order[groups.starts]]
        added = self.named.partial(groups, rows, order)
        # By time, so that what is first in a window is first among its panes.
        by_time = np.argsort(at, kind="stable")
        whole = panes.append_column(PANE, times(at))
        for item, column in zip(self.named.accumulators, added, strict=True):
            whole = whole.append_column(item, column)
        tables.panes.append(whole.take(pa.array(by_time)))
        # The first pane of a key is the first of those by time: its next window may be earlier than what the
        # key waits for.
        until = pa.array(self._first(at) + self.length)
        first = self._once(panes.append_column(UNTIL, until).take(pa.array(by_time)))
        before = tables.waiting.get(first).column(UNTIL)
        self._wait(first.filter(pc.fill_null(pc.less(first.column(UNTIL), before), True)), tables, later)

    def _first(self, pane: Ints) -> Ints:
        """When the first window of each pane begins."""
        return -((self.length - self.pane - pane) // self.slide) * self.slide

    def _last(self, pane: Ints) -> Ints:
        """When the last window of each pane begins."""
        return pane // self.slide * self.slide

    def _table(self, keys: list[pa.Array], rows: Ints) -> pa.Table:
        index = pa.array(rows)
        return pa.table([key.take(index) for key in keys], schema=pa.schema(self.keys))

    def _once(self, rows: pa.Table) -> pa.Table:
        """The first row of each key."""
        keys = [contiguous(rows.column(key.name)) for key in self.keys]
        order, groups = group_sorted(hash_keys(keys), keys)
        return rows.take(pa.array(order[groups.starts]))

    def _wait(self, keys: pa.Table, tables: Tables, later: Later) -> None:
        tables.waiting.put(keys)
        later.notify_at(ints(keys, UNTIL), keys)

    def _over(self, due: pa.Table, tables: Tables, later: Later) -> pa.Table:
        """The windows that are over for these keys, which then wait for their next ones."""
        if later.frontier is None or not due.num_rows:
            return self.output.empty_table()
        newest = (later.frontier - self.length) // self.slide * self.slide
        panes = tables.panes.get(due)
        which, pane = ints(panes, "_position"), ints(panes, PANE)
        oldest = ints(due, UNTIL) - self.length
        begin = np.maximum(self._first(pane), oldest[which])
        many = np.maximum((np.minimum(self._last(pane), newest) - begin) // self.slide + 1, 0)
        row = np.repeat(np.arange(len(many)), many)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
        told = self._told(panes, row, begin[row] + nth * self.slide, due, which[row])
        self._go_on(due, which, pane, newest, tables, later)
        return told

    def _told(self, panes: pa.Table, row: Ints, start: Ints, due: pa.Table, which: Ints) -> pa.Table:
        """The results of each window and key, of panes that are in some windows each."""
        if not len(row):
            return self.output.empty_table()
        order = np.lexsort((which, start))
        start, which = start[order], which[order]
        begins = np.flatnonzero(first_of_each(start, which))
        index = pa.array(row[order])
        merged = self.named.merge(
            Groups(begins, len(order)),
            [contiguous(panes.column(item.name)).take(index) for item in self.named.accumulators],
        )
        start = start[begins]
        keys = self._table([contiguous(due.column(key.name)) for key in self.keys], which[begins])
        columns = [*keys.columns, times(start), times(start + self.length), *self.named.finish(merged)]
        return pa.table(columns, schema=self.output)

    def _go_on(
        self, due: pa.Table, which: Ints, pane: Ints, newest: int, tables: Tables, later: Later
    ) -> None:
        live = self._last(pane) > newest
        start = np.full(due.num_rows, FOREVER)
        np.minimum.at(start, which[live], self._first(pane[live]))
        alive = start < FOREVER
        tables.waiting.delete(due.filter(pa.array(~alive)))
        until = np.maximum(start[alive], newest + self.slide) + self.length
        going = due.filter(pa.array(alive))
        place = going.column_names.index(UNTIL)
        self._wait(going.set_column(place, UNTIL, pa.array(until)), tables, later)
