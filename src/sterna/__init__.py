"""Sterna: moves the state of running PySpark streaming jobs between workers without stopping them."""

from __future__ import annotations

from sterna import sinks
from sterna.configuration import bins, rescale
from sterna.control import event_time
from sterna.operators.accumulators import count, first, largest, last, max, mean, min, sum
from sterna.operators.state_machine import pickled
from sterna.query import Query
from sterna.session import recommended_conf, session
from sterna.stream import KeyedStream, Stream, read, rows, value

__version__ = "0.1.0"

__all__ = [
    "KeyedStream",
    "Query",
    "Stream",
    "bins",
    "count",
    "event_time",
    "first",
    "largest",
    "last",
    "max",
    "mean",
    "min",
    "pickled",
    "read",
    "recommended_conf",
    "rescale",
    "rows",
    "session",
    "sinks",
    "sum",
    "value",
]
