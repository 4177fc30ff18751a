"""Sterna: moves the state of running PySpark streaming jobs between workers without stopping them."""

from __future__ import annotations

from sterna import controllers, sinks, strategies
from sterna.control import event_time
from sterna.operators.accumulators import count, first, largest, last, max, mean, min, sum
from sterna.operators.state_machine import pickled
from sterna.query import Query
from sterna.session import recommended_conf, session
from sterna.strategies import all_at_once, batched, fluid, matched, paced
from sterna.stream import KeyedStream, Stream, read
from sterna.targets import balance, bins, rescale
from sterna.unpacking import read_parquet, unpack
from sterna.wishes import rows, value

__version__ = "0.1.0"

__all__ = [
    "KeyedStream",
    "Query",
    "Stream",
    "all_at_once",
    "balance",
    "batched",
    "bins",
    "controllers",
    "count",
    "event_time",
    "first",
    "fluid",
    "largest",
    "last",
    "matched",
    "max",
    "mean",
    "min",
    "paced",
    "pickled",
    "read",
    "read_parquet",
    "recommended_conf",
    "rescale",
    "rows",
    "session",
    "sinks",
    "strategies",
    "sum",
    "unpack",
    "value",
]
