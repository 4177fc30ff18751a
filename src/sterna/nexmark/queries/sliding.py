"""Bids for each auction in sliding windows. Queries 5 and NBQ5 are made of these.

Bids are counted in panes, as long as a window slides; a window is some panes. An auction that has panes waits
for the end of its next window, whichever epoch passes it: one epoch may pass many.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import sterna
from sterna.folds import Later, Tables, first_of_each, ints, times
from sterna.nexmark.queries.columns import microseconds, only
from sterna.nexmark.streams import Streams
from sterna.stream import Stream

COUNTS = "window timestamp, auction long, n long"


def counts(events: Streams, length: str, slide: str, *, hottest: bool = False) -> Stream:
    """(end of the window, auction, bids) for every window and auction.

    With ``hottest`` only for each worker's auctions with most bids.
    """
    fold = Counting(microseconds(length), microseconds(slide), hottest)
    bids = events.bids.map(only("auction", "dateTime")).key_by("auction", time="dateTime")
    tables = {"panes": sterna.rows("n long", keep=length), "waiting": sterna.value("until long")}
    return bids.unary(fold, tables, COUNTS, later="until long")


@dataclass(frozen=True)
class Counting:
    """The fold; lengths are in microseconds."""

    length: int
    slide: int
    hottest: bool

    def __call__(self, bids: pa.Table, tables: Tables, later: Later) -> pa.Table:
        """Counts bids, and puts out the windows that have ended."""
        self._count(bids, tables, later)
        ended = later.due.select(["auction", "until"])
        # An auction may have been told to wait for an earlier window after it began to wait for a later one,
        # and then for the later one again.
        current = pc.equal(tables.waiting.get(ended).column("until"), ended.column("until"))
        ended = ended.filter(current)
        _, once = np.unique(ints(ended, "auction"), return_index=True)
        windows = self._windows(ended.take(pa.array(once)), tables, later)
        return windows.filter(most_of_each(windows)) if self.hottest else windows

    def _count(self, bids: pa.Table, tables: Tables, later: Later) -> None:
        if not bids.num_rows:
            return
        auction, pane = ints(bids, "auction"), ints(bids, "dateTime") // self.slide
        order = np.lexsort((pane, auction))
        auction, pane = auction[order], pane[order]
        first = np.flatnonzero(first_of_each(auction, pane))
        n = np.diff(first, append=len(auction))
        auction, pane = auction[first], pane[first] * self.slide
        tables.panes.append(pa.table({"auction": auction, "dateTime": times(pane), "n": n}))
        # The first pane of each auction is the earliest: its first window is that which ends with it.
        mine = first_of_each(auction)
        wish = pa.table({"auction": auction[mine], "until": pane[mine] + self.slide})
        before = tables.waiting.get(wish).column("until")
        self._wait(wish.filter(pc.fill_null(pc.less(wish.column("until"), before), True)), tables, later)

    def _wait(self, wish: pa.Table, tables: Tables, later: Later) -> None:
        tables.waiting.put(wish)
        later.notify_at(ints(wish, "until"), wish)

    def _windows(self, ended: pa.Table, tables: Tables, later: Later) -> pa.Table:
        """The windows that have ended for these auctions; they wait for their next ones."""
        assert later.frontier is not None or not ended.num_rows
        last = (later.frontier or 0) // self.slide * self.slide
        panes = tables.panes.get(ended)
        which, start, n = ints(panes, "_position"), ints(panes, "dateTime"), ints(panes, "n")
        first = np.maximum(start + self.slide, ints(ended, "until")[which])
        many = np.maximum(np.minimum(start + self.length, last) - first, -self.slide) // self.slide + 1
        row = np.repeat(np.arange(len(many)), many)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
        auction = ints(ended, "auction")[which[row]]
        self._go_on(ended, which, start, last, tables, later)
        return summed(first[row] + nth * self.slide, auction, n[row])

    def _go_on(
        self,
        ended: pa.Table,
        which: npt.NDArray[np.int64],
        start: npt.NDArray[np.int64],
        last: int,
        tables: Tables,
        later: Later,
    ) -> None:
        live = start + self.length > last
        earliest = np.full(ended.num_rows, np.iinfo(np.int64).max)
        np.minimum.at(earliest, which[live], start[live] + self.slide)
        alive = earliest < np.iinfo(np.int64).max
        until = pa.array(np.maximum(earliest, last + self.slide))
        tables.waiting.delete(ended.filter(pa.array(~alive)))
        self._wait(ended.set_column(1, "until", until).filter(pa.array(alive)), tables, later)


def summed(
    window: npt.NDArray[np.int64], auction: npt.NDArray[np.int64], n: npt.NDArray[np.int64]
) -> pa.Table:
    """The bids of each window and auction."""
    order = np.lexsort((auction, window))
    window, auction = window[order], auction[order]
    first = np.flatnonzero(first_of_each(window, auction))
    total = np.add.reduceat(n[order], first) if len(first) else n
    return pa.table({"window": times(window[first]), "auction": auction[first], "n": total})


def most_of_each(windows: pa.Table) -> pa.Array:
    """Which auctions have most bids in their window."""
    window, n = ints(windows, "window"), ints(windows, "n")
    _, which = np.unique(window, return_inverse=True)
    most = np.zeros(len(window), np.int64)
    np.maximum.at(most, which, n)
    return pa.array(n == most[which])
