"""Rhino's query 5: how many bids has every auction had in the last minute? Asked every ten seconds."""

from __future__ import annotations

from sterna.nexmark.queries.sliding import counts
from sterna.nexmark.streams import Streams
from sterna.stream import Stream


def nbq5(events: Streams) -> Stream:
    """(end of the window, auction, bids)."""
    return counts(events, "60 seconds", "10 seconds")
