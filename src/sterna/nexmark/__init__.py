"""NEXMark: the auction benchmark's generator and its queries.

The generator is a Spark streaming source; the queries are on Sterna's surface. Importing it makes
``spark.readStream.format("nexmark")`` known to the active session, if there is one, and to those that
``sterna.session`` makes later; ``register`` does so for any other.
"""

from __future__ import annotations

from sterna.nexmark.generator import AUCTION, BID, PERSON, Events, generate
from sterna.nexmark.shape import Shape
from sterna.nexmark.source import Nexmark, register
from sterna.nexmark.streams import Streams, streams

__all__ = [
    "AUCTION",
    "BID",
    "PERSON",
    "Events",
    "Nexmark",
    "Shape",
    "Streams",
    "generate",
    "register",
    "streams",
]

register()
