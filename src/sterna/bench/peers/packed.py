"""How many events a second get into Sterna's router: packed, and as rows.

Method. Query 2, which has no state and answers little, on the source ``nexmark`` without a rate: epochs of a
fixed number of events run back to back, packed and as rows in turns. So everything counts that lies between
the generator and the router's last column: making the events, the way through the JVM, opening them, reading
the columns that are asked for.
"""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sterna.nexmark.feeding import Auctions, NexmarkSubject
from sterna.nexmark.highest import Search, epoch_seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sterna.bench.rig import Say

LEAST_PER_CORE = 1_000_000
LEAST_EPOCHS = 5
WAYS = {"packed": "true", "rows": "false"}


@dataclass(frozen=True)
class Size:
    """Events an epoch, packed and as rows; seconds that do not count, and that do."""

    packed: int = 4_000_000
    rows: int = 500_000
    warm: float = 8.0
    seconds: float = 12.0


FULL = Size()
QUICK = Size(20_000, 5_000, 1.0, 2.0)


def measure(spark: SparkSession, root: Path, size: Size, rounds: int, say: Say) -> dict[str, Any]:
    """Events a second and core, in both ways."""
    cores = spark.sparkContext.defaultParallelism
    search = Search(warm=size.warm, seconds=size.seconds, least=LEAST_EPOCHS)
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for number in range(rounds):
        for way in WAYS if number % 2 == 0 else reversed(WAYS):
            each = getattr(size, way)
            subject = NexmarkSubject("q2", os.path.join(root, f"{way}-{number}"), cores)
            events = Auctions({"packed": WAYS[way], "partitions": cores})
            took = epoch_seconds(subject, events.frame(spark, rate=0, perEpoch=each), search)
            assert took is not None, "fewer epochs than were waited for"
            found[way].append(each / took / cores)
            say(f"{way}: {found[way][-1]:,.0f} events a second and core")
    packed = statistics.median(found["packed"])
    return {
        "cores": cores,
        **{f"{way}_per_second_and_core": round(statistics.median(rates)) for way, rates in found.items()},
        **{f"{way}_rounds": [round(rate) for rate in rates] for way, rates in found.items()},
        "at_least_a_million": packed >= LEAST_PER_CORE,
    }
