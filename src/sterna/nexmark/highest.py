"""The highest rate that a query keeps up with while records wait no longer than a given time.

Method. Epochs of a fixed number of events run back to back. A record that comes at a steady rate waits for the end of the epoch that is under way, and then for its own: two epochs at
the most. So an epoch may take half of the given time, and its size is corrected from one try to the next until it does. Every try begins with no state, at the event rate that
the last one reached, so that windows hold what they would hold. Open loops leave a tenth for what varies.
"""

from __future__ import annotations

import itertools
import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sterna.bench.phases import LOOK_SECONDS, Run
from sterna.bench.rig import Say
from sterna.bench.subjects import Subject
from sterna.nexmark.feeding import Auctions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHARE = 0.9
CLOSE = 0.15


@dataclass(frozen=True)
class Search:
    """How it is searched.

    Attributes:
        latency: how long records may wait, in seconds.
        first: events a second of the first try.
        tries: how many there are at most.
        warm: seconds of each that do not count.
        seconds: seconds of each that do.
        least: how many epochs are waited for, whatever it takes.
    """

    latency: float = 2.0
    first: float = 200_000.0
    tries: int = 4
    warm: float = 10.0
    seconds: float = 10.0
    least: int = 0


def highest(
    spark: SparkSession,
    start: Callable[[str], Subject],
    events: Auctions,
    folder: str,
    search: Search,
    say: Say,
) -> float:
    """Events a second; ``start`` makes the system with a new checkpoint, which is given."""
    wanted, rate, measured = search.latency / 2, search.first, False
    for number in range(search.tries):
        size = max(1_000, int(rate * wanted))
        subject = start(os.path.join(folder, f"try-{number}"))
        took = epoch_seconds(subject, events.frame(spark, rate=0, eventRate=rate, perEpoch=size), search)
        if took is None:
            say(f"{subject.name}: {size:,} events an epoch are too many")
            rate /= 4
            continue
        say(f"{subject.name}: {size:,} events an epoch take {took:.2f} s")
        rate, measured = size / took, True
        if abs(took - wanted) <= CLOSE * wanted:
            break
    if not measured:
        raise TimeoutError(f"no try of {search.tries} had two epochs in {search.warm + search.seconds:.0f} s")
    return rate * SHARE


def epoch_seconds(subject: Subject, events: DataFrame, search: Search) -> float | None:
    """What an epoch takes where they run back to back, from the end of one to the end of the next; ``None`` if there were not two."""
    subject.start(events)
    try:
        run = Run(subject)
        run.sleep(search.warm + search.seconds)
        while len(run.reports) < search.least:
            run.sleep(LOOK_SECONDS)
    finally:
        subject.stop()
    ends = [epoch.at for epoch in subject.epochs(lambda _: 0) if epoch.end > epoch.first]
    late = [end for end in ends if end >= ends[0] + search.warm] if ends else []
    if len(late) < 2:
        late = ends[-3:]  # epochs are long: what there is
    if len(late) < 2:
        return None
    return statistics.mean(b - a for a, b in itertools.pairwise(late))
