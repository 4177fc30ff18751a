"""Rhino's query 5: how many bids has every auction had in the last minute? Asked every ten seconds."""

from __future__ import annotations

import sterna
from sterna.nexmark.queries.columns import only
from sterna.nexmark.streams import Streams
from sterna.stream import Stream


def nbq5(events: Streams) -> Stream:
    """(auction, window, bids)."""
    bids = events.bids.map(only("auction", "dateTime")).key_by("auction", time="dateTime")
    return bids.window("60 seconds", slide="10 seconds").aggregate(n=sterna.count())
