"""Auctions that close: each with the price of its winning bid, at the time at which it expires.

Queries 4 and 6 are made of these.

The winner is the highest bid while the auction is open that is not below its reserve; of two equal ones the
earlier. An open auction keeps its best bid so far; a bid whose auction has not come yet waits for it until
the watermark has passed the bid's time: the auction would be older still.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import sterna
from sterna.folds import Later, Tables, first_of_each, ints
from sterna.nexmark.queries.columns import only
from sterna.nexmark.streams import Streams
from sterna.stream import Stream

OPEN = "seller long, category long, reserve long, dateTime timestamp, expires timestamp"
BEST = "price long, bid timestamp"
CLOSED = "id long, seller long, category long, price long, expires timestamp"


def closed(events: Streams) -> Stream:
    """(id, seller, category, price, expires) of every auction with a winner."""
    auctions = events.auctions.map(only("id", "seller", "category", "reserve", "dateTime", "expires"))
    bids = events.bids.map(only("auction", "price", "dateTime"))
    return auctions.key_by("id", time="dateTime").binary(
        bids.key_by("auction", time="dateTime"),
        close,
        tables={"open": sterna.value(f"{OPEN}, {BEST}"), "early": sterna.rows("price long", keep=0)},
        output=CLOSED,
    )


def close(auctions: pa.Table, bids: pa.Table, tables: Tables, later: Later) -> pa.Table:
    """Opens auctions, takes bids, closes auctions that have expired."""
    nobody = pa.nulls(auctions.num_rows, pa.int64())
    tables.open.put(auctions.append_column("price", nobody).append_column("bid", nobody))
    later.notify_at("expires", auctions)
    early = tables.early.get(auctions).select(["id", "price", "dateTime"])
    offers = pa.concat_tables([early, bids.rename_columns(early.column_names)])
    standing = tables.open.get(offers)
    tables.early.append(offers.filter(pc.invert(standing.column("_found"))))
    tables.open.put(improved(offers, standing))
    done = tables.open.get(later.due)
    tables.open.delete(later.due)
    won = done.append_column("id", later.due.column("id")).filter(pc.is_valid(done.column("price")))
    return won.select(["id", "seller", "category", "price", "expires"])


def improved(offers: pa.Table, standing: pa.Table) -> pa.Table:
    """The auctions that have a better bid now: ``standing`` is each offer's auction as it was."""
    price, time = offers.column("price"), offers.column("dateTime")
    better = pc.or_(
        pc.greater(price, standing.column("price")),
        pc.and_(pc.equal(price, standing.column("price")), pc.less(time, standing.column("bid"))),
    )
    opened = pc.and_(
        pc.greater_equal(time, standing.column("dateTime")), pc.less(time, standing.column("expires"))
    )
    valid = pc.and_(pc.greater_equal(price, standing.column("reserve")), opened)
    good = pc.fill_null(pc.and_(valid, pc.fill_null(better, True)), False)
    offers, standing = offers.filter(good), standing.filter(good)
    ids, prices, times = (ints(offers, name) for name in ("id", "price", "dateTime"))
    order = np.lexsort((times, -prices, ids))
    best = pa.array(order[first_of_each(ids[order])])
    return (
        standing.take(best)
        .drop_columns(["price", "bid", "_found"])
        .append_column("id", offers.column("id").take(best))
        .append_column("price", offers.column("price").take(best))
        .append_column("bid", offers.column("dateTime").take(best))
    )
