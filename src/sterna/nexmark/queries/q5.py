"""Query 5: which auctions have had most bids in the last minute?

Asked every second; all that tie for the first place.
"""

from __future__ import annotations

from sterna.nexmark.queries.sliding import COUNTS, counts, most_of_each
from sterna.nexmark.streams import Streams
from sterna.stream import Stream


def q5(events: Streams) -> Stream:
    """(end of the window, auction, bids): each worker names its own, and of these the best are chosen."""
    candidates = counts(events, "60 seconds", "1 second", hottest=True)
    return candidates.key_by("window").unary(lambda rows, *_: rows.filter(most_of_each(rows)), output=COUNTS)
