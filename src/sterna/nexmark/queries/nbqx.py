"""Rhino's query X: auctions and their bids, joined in sessions and in windows, all at once.

The sessions are of four kinds, the windows of four hours.
"""

from __future__ import annotations

import pyarrow as pa

from sterna.nexmark.queries.columns import only, tumbling
from sterna.nexmark.queries.sessions import session_join
from sterna.nexmark.streams import Streams
from sterna.stream import Stream

GAPS = ("30 minutes", "60 minutes", "90 minutes", "120 minutes")
LENGTH = "4 hours"


def nbqx(events: Streams) -> Stream:
    """(auction, window, gap, seller, bidder, price) of every pair; ``gap`` names the sub-query."""
    auctions = events.auctions.map(only("id", "seller", "dateTime")).map(
        lambda rows: rows.rename_columns(["auction", "seller", "dateTime"])
    )
    bids = events.bids.map(only("auction", "bidder", "price", "dateTime"))
    fixed = auctions.map(tumbling(LENGTH)).map(
        lambda rows: rows.append_column("gap", pa.array([f"fixed {LENGTH}"] * rows.num_rows, pa.string()))
    )
    windows = fixed.key_by("auction", "window", time="dateTime").join(
        bids.map(tumbling(LENGTH)).key_by("auction", "window", time="dateTime"),
        left=["gap", "seller"],
        right=["bidder", "price"],
        keep=LENGTH,
    )
    parts = [windows, *(session_join(auctions, bids, gap) for gap in GAPS)]
    first, *rest = (part.key_by("auction") for part in parts)
    return first.union(*rest)
