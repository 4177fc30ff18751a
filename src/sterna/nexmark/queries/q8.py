"""Query 8: who offers something within the twelve hours in which they registered?"""

from __future__ import annotations

from sterna.nexmark.queries.columns import tumbling
from sterna.nexmark.streams import Streams
from sterna.stream import Stream

LENGTH = "12 hours"


def q8(events: Streams) -> Stream:
    """(id, window, name, reserve) for every auction of a new person."""
    persons = events.persons.map(tumbling(LENGTH)).key_by("id", "window", time="dateTime")
    auctions = events.auctions.map(tumbling(LENGTH)).key_by("seller", "window", time="dateTime")
    return persons.join(auctions, left=["name"], right=["reserve"], keep=LENGTH)
