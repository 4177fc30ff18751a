"""Query 7: the highest bids of each minute."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import sterna
from sterna.folds import Later, Tables, ints
from sterna.nexmark.queries.columns import distinct, microseconds, only, tumbling
from sterna.nexmark.streams import Streams
from sterna.stream import Stream

LENGTH = "60 seconds"
KEPT = ("auction", "bidder", "price")


def q7(events: Streams) -> Stream:
    """(window, auction, bidder, price) of all bids that tie for the highest price of a minute.

    They come when the minute has ended.
    """
    bids = events.bids.map(tumbling(LENGTH)).map(highest).map(only("window", *KEPT, "dateTime"))
    return bids.key_by("window", time="dateTime").unary(
        best,
        tables={"bids": sterna.rows("auction long, bidder long, price long", keep=LENGTH)},
        output="window timestamp, auction long, bidder long, price long",
        later=pa.schema([]),
    )


def best(bids: pa.Table, tables: Tables, later: Later) -> pa.Table:
    """Keeps what may be the highest, and tells at the end."""
    tables.bids.append(bids)
    begun = distinct(bids, "window")
    later.notify_at(ints(begun, "window") + microseconds(LENGTH), begun)
    ended = distinct(later.due, "window")
    return highest(tables.bids.get(ended)).select(["window", *KEPT])


def highest(bids: pa.Table) -> pa.Table:
    """The bids with the highest price of each window."""
    _, which = np.unique(ints(bids, "window"), return_inverse=True)
    price = ints(bids, "price")
    top = np.zeros(len(price), np.int64)
    np.maximum.at(top, which, price)
    return bids.filter(pa.array(price == top[which]))
