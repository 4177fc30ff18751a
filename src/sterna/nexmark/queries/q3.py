"""Query 3: who sells something of category 10 in Oregon, Idaho or California?"""

from __future__ import annotations

from sterna.nexmark.streams import Streams
from sterna.stream import Stream

STATES, CATEGORY = ["OR", "ID", "CA"], 10


def q3(events: Streams) -> Stream:
    """(id, name, city, state, auction): every auction joins its seller, whichever comes first."""
    sellers = events.persons.where(state=STATES)
    auctions = events.auctions.where(category=CATEGORY)
    return sellers.key_by("id").join(
        auctions.key_by("seller"), left=["name", "city", "state"], right={"auction": "id"}
    )
