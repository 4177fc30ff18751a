"""Query 1: bids with their price in euros."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from sterna.nexmark.queries.columns import only
from sterna.nexmark.streams import Streams
from sterna.stream import Stream

EUROS = 0.908


def q1(events: Streams) -> Stream:
    """(auction, bidder, price, dateTime) of every bid."""
    bids = events.bids.map(only("auction", "bidder", "price", "dateTime")).map(in_euros)
    return bids.key_by("auction").unary(lambda rows, *_: rows, output=bids.schema)


def in_euros(bids: pa.Table) -> pa.Table:
    """The same bids at another price."""
    return bids.set_column(2, "price", pc.multiply(bids.column("price"), EUROS))
