"""Rhino's query 8: persons and their auctions of the same twelve hours, everything about both kept."""

from __future__ import annotations

from sterna.nexmark.generator import AUCTION, PERSON
from sterna.nexmark.queries.columns import tumbling
from sterna.nexmark.streams import Streams
from sterna.stream import Stream

LENGTH = "12 hours"


def nbq8(events: Streams) -> Stream:
    """(id, window, everything else of the person, everything else of the auction)."""
    persons = events.persons.map(tumbling(LENGTH)).key_by("id", "window", time="dateTime")
    auctions = events.auctions.map(tumbling(LENGTH)).key_by("seller", "window", time="dateTime")
    return persons.join(
        auctions,
        left=[name for name in PERSON.names if name != "id"],
        right={f"auction_{name}": name for name in AUCTION.names if name != "seller"},
        keep=LENGTH,
    )
