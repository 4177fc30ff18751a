"""Query 4: the average closing price of each category."""

from __future__ import annotations

import sterna
from sterna.nexmark.queries.closing import closed
from sterna.nexmark.streams import Streams
from sterna.stream import Stream


def q4(events: Streams) -> Stream:
    """(category, average), whenever it changes."""
    return closed(events).key_by("category").aggregate(average=sterna.mean("price"))
