"""Query 5: which auctions have had most bids in the last minute?

Asked every second; all that tie for the first place.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import sterna
from sterna.folds import ints
from sterna.nexmark.queries.columns import only
from sterna.nexmark.streams import Streams
from sterna.stream import Stream


def q5(events: Streams) -> Stream:
    """(auction, window, bids): each worker names its own, and of these the best are chosen."""
    bids = events.bids.map(only("auction", "dateTime")).key_by("auction", time="dateTime")
    counts = bids.window("60 seconds", slide="1 second").aggregate(n=sterna.count()).map(hottest)
    return counts.key_by("window_end").unary(lambda rows, *_: hottest(rows), output=counts.schema)


def hottest(counts: pa.Table) -> pa.Table:
    """The auctions with most bids in their window."""
    _, which = np.unique(ints(counts, "window_end"), return_inverse=True)
    n = ints(counts, "n")
    most = np.zeros(len(n), np.int64)
    np.maximum.at(most, which, n)
    return counts.filter(pa.array(n == most[which]))
