"""Auctions and their bids in the same session. NBQX is made of these.

What happens to an auction is one session until nothing happens for a while. Rows of a session wait in the
state until the watermark is a gap past the last of them; then its pairs come out and its rows are deleted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import sterna
from sterna.folds import Ints, Later, Tables, first_of_each, ints, times
from sterna.nexmark.queries.columns import distinct, microseconds
from sterna.stream import Stream

PAIRS = "auction long, window timestamp, gap string, seller long, bidder long, price long"


def session_join(auctions: Stream, bids: Stream, gap: str) -> Stream:
    """(auction, beginning of the session, gap, seller, bidder, price) of all pairs in one session.

    A pair is an auction (auction, seller, dateTime) and a bid (auction, bidder, price, dateTime).
    """
    return auctions.key_by("auction", time="dateTime").binary(
        bids.key_by("auction", time="dateTime"),
        Sessions(gap, microseconds(gap)),
        tables={"auctions": sterna.rows("seller long"), "bids": sterna.rows("bidder long, price long")},
        output=PAIRS,
    )


@dataclass(frozen=True)
class Sessions:
    """The fold."""

    name: str
    gap: int

    def __call__(self, auctions: pa.Table, bids: pa.Table, tables: Tables, later: Later) -> pa.Table:
        """Keeps rows; puts out the pairs of the sessions that have ended."""
        tables.auctions.append(auctions)
        tables.bids.append(bids)
        for rows in (auctions, bids):
            last = rows.group_by("auction", use_threads=False).aggregate([("dateTime", "max")])
            later.notify_at(ints(last, "dateTime_max") + self.gap, last)
        keys = distinct(later.due, "auction")
        sides = tables.auctions.get(keys), tables.bids.get(keys)
        sessions, starts, ended = self._sessions(*sides, frontier=later.frontier)
        left, right = np.split(sessions, [sides[0].num_rows])
        for table, side, session in zip((tables.auctions, tables.bids), sides, (left, right), strict=True):
            table.delete(keys)
            table.append(side.filter(pa.array(~ended[session])))
        mine, theirs = pairs(left, right)
        done = ended[left[mine]]
        mine, theirs = mine[done], theirs[done]
        found, offers = sides[0].take(pa.array(mine)), sides[1].take(pa.array(theirs))
        return pa.table(
            {
                "auction": found.column("auction"),
                "window": times(starts[left[mine]]),
                "gap": pa.array([self.name]).take(pa.array(np.zeros(len(mine), np.int64))),
                "seller": found.column("seller"),
                "bidder": offers.column("bidder"),
                "price": offers.column("price"),
            }
        )

    def _sessions(
        self, auctions: pa.Table, bids: pa.Table, frontier: int | None
    ) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
        """The session of each row, of the auctions and then of the bids.

        Also when each session began, and whether it has ended.
        """
        which = np.concatenate([ints(side, "_position") for side in (auctions, bids)])
        time = np.concatenate([ints(side, "dateTime") for side in (auctions, bids)])
        order = np.lexsort((time, which))
        begins = first_of_each(which[order])
        begins[1:] |= np.diff(time[order]) >= self.gap
        first = np.flatnonzero(begins)
        sessions = np.empty(len(order), np.int64)
        sessions[order] = np.cumsum(begins) - 1
        last = time[order][np.append(first[1:], len(order)) - 1] if len(first) else time
        ended = last + self.gap <= (np.iinfo(np.int64).min if frontier is None else frontier)
        return sessions, time[order][first], ended


def pairs(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """The positions of all pairs of equal numbers.

    Example:
        >>> [found.tolist() for found in pairs(np.array([5, 7]), np.array([7, 5, 7]))]
        [[0, 1, 1], [1, 0, 2]]
    """
    order = np.argsort(right, kind="stable")
    begin, end = (np.searchsorted(right[order], left, side) for side in ("left", "right"))
    many = end - begin
    mine = np.repeat(np.arange(len(left)), many)
    nth = np.arange(len(mine)) - np.repeat(np.cumsum(many) - many, many)
    return mine, order[begin[mine] + nth]
