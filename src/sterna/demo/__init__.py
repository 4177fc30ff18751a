"""What moving state costs, seen live: the same quarter of the state, moved in every way that there is.

A stream at a fixed rate updates a few hundred megabytes of state. A quarter of it moves, because the number
of workers changes, all at once, fluid, matched and paced, and each time back again; then Spark's own
aggregation, with the same state and the same input, is rescaled in Spark's own way: stop, repartition the
checkpoint offline, start. Workers share this machine and could just hand files over; here state really
travels through the exchange, as it would between machines.

At the end every key's count is compared with what the input implies, in the state and in what
came out. One folder is used and removed; a page with all timelines is left.
"""

from __future__ import annotations

from sterna.demo.setup import FULL, QUICK, Setup
from sterna.demo.show import run

__all__ = ["FULL", "QUICK", "Setup", "run"]
