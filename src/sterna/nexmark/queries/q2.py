"""Query 2: bids on some auctions."""

from __future__ import annotations

import pyarrow as pa

from sterna.folds import ints
from sterna.nexmark.queries.columns import only
from sterna.nexmark.streams import Streams
from sterna.stream import Stream

EVERY = 123


def q2(events: Streams) -> Stream:
    """(auction, price) of the bids on auctions whose number is a multiple of 123."""
    bids = events.bids.map(chosen).map(only("auction", "price"))
    return bids.key_by("auction").unary(lambda rows, *_: rows, output=bids.schema)


def chosen(bids: pa.Table) -> pa.Table:
    """The bids on these auctions."""
    return bids.filter(pa.array(ints(bids, "auction") % EVERY == 0))
