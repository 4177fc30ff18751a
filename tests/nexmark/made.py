"""Events made by hand, where the generator has none.

They are on the boundaries of windows, with equal prices, at the very moment at which an auction expires.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pyarrow as pa

from sterna.nexmark import AUCTION, BID, PERSON, Events
from sterna.nexmark.packing import packed

BASE = 1_420_070_400_000_000
"""The first moment of 2015, where windows of minutes and of twelve hours begin."""
SECOND, MINUTE, HOUR = 1_000_000, 60_000_000, 3_600_000_000


def when(at):
    """A moment, in microseconds after the first, as queries tell it."""
    return datetime.fromtimestamp(BASE // SECOND, timezone.utc) + timedelta(microseconds=at)


def person(id_, at):
    texts = dict.fromkeys(("emailAddress", "creditCard", "city", "state", "extra"), "")
    return PERSON, {"id": id_, "name": f"name {id_}", **texts, "dateTime": at}


def auction(id_, at, expires=0, *, seller=1, reserve=0, category=10):
    texts = dict.fromkeys(("itemName", "description", "extra"), "")
    numbers = {"id": id_, "initialBid": 0, "reserve": reserve, "seller": seller, "category": category}
    return AUCTION, {**numbers, **texts, "dateTime": at, "expires": max(expires, at + 1)}


def bid(auction_, at, price=100, *, bidder=1):
    return BID, {"auction": auction_, "bidder": bidder, "price": price, "dateTime": at, "extra": ""}


def tables(events):
    """Persons, auctions and bids, each a table."""
    return tuple(
        pa.Table.from_pylist([_absolute(row) for kind, row in events if kind is schema], schema)
        for schema in (PERSON, AUCTION, BID)
    )


def _absolute(row):
    return {name: BASE + value if name in ("dateTime", "expires") else value for name, value in row.items()}


def epoch(*events):
    """What the source hands to the router for these events, in one partition."""
    batches = (table.combine_chunks().to_batches() for table in tables(events))
    parts = [
        found[0] if found else _none(kind)
        for found, kind in zip(batches, (PERSON, AUCTION, BID), strict=True)
    ]
    return [pa.Table.from_batches([packed(Events(*parts))])]


def _none(schema):
    return pa.RecordBatch.from_arrays([pa.array([], item.type) for item in schema], schema=schema)
