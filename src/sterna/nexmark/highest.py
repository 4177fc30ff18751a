"""The highest rate that a query keeps up with while records wait no longer than a given time.

Method. Epochs of a fixed number of events run back to back. A record that comes at a steady rate waits for
the end of the epoch that is under way, and then for its own: so what two epochs in a row took, at the most,
is how long records would have waited, at the most. The size of epochs is corrected from one try to the next
until that is the given time. Every try begins with no state, at the event rate that the last one reached. The
first ones are short, until one comes near; those that count run until as much event time has passed as the
query's windows hold, and are measured then. Open loops leave a tenth for what varies, and are checked
(``rounds``).
"""

from __future__ import annotations

import itertools
import os
import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sterna.bench.phases import LOOK_SECONDS, Run
from sterna.bench.rig import Say
from sterna.bench.subjects import Subject
from sterna.errors import SternaError
from sterna.nexmark.feeding import Auctions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHARE = 0.9
CLOSE = 0.2
"""How much longer or less long than they may records may wait for a try to be the last one.

The rate is corrected by what is left.
"""
FLOOR_SECONDS = 0.15
"""What an epoch takes, about, however little it holds.

It is there so that twice the events are not taken for twice the time.
"""
NEAR = 0.5
"""The same for a short try to be the last short one."""
MOST_CHANGE = 4.0
PATIENCE = 2.0
"""How many times as long as the windows a try may take until they are full.

Epochs that are too large pass event time slowly.
"""


@dataclass(frozen=True)
class Search:
    """How it is searched.

    Attributes:
        latency: how long records may wait, in seconds.
        first: events a second of the first try.
        short: how many tries there are at most that do not wait for full windows; none where the windows take
            no longer to fill than a try to get warm.
        tries: how many there are at most that do.
        warm: seconds of each that do not count.
        seconds: seconds of each that do.
        least: how many epochs are waited for, whatever it takes.
    """

    latency: float = 2.0
    first: float = 200_000.0
    short: int = 3
    tries: int = 3
    warm: float = 6.0
    seconds: float = 12.0
    least: int = 0


@dataclass(frozen=True)
class Try:
    """What a try showed.

    That is so many events an epoch, seconds that one took on the average, and seconds that a record waited at
    the most.
    """

    size: int
    mean: float
    longest: float
    full: bool = True

    @property
    def rate(self) -> float:
        """Events a second."""
        return self.size / self.mean

    def at(self, latency: float) -> tuple[int, float]:
        """How many events an epoch would have for records to wait so long, and events a second then.

        Example:
            >>> size, rate = Try(100_000, 0.5, 1.0).at(2.0)
            >>> size, round(rate)
            (200000, 235294)
        """
        change = min(max(latency / self.longest, 1 / MOST_CHANGE), MOST_CHANGE)
        floor = min(FLOOR_SECONDS, self.mean / 2)
        size = max(1_000, int(self.size * change))
        return size, size / (floor + (self.mean - floor) * change)

    def to_json(self) -> dict[str, Any]:
        """For the figures."""
        return {
            "events_per_epoch": self.size,
            "epoch_ms": round(self.mean * 1e3, 1),
            "longest_ms": round(self.longest * 1e3, 1),
            "windows_full": self.full,
        }


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes:
        rate: events a second.
        converged: whether the last try, with full windows, had records wait about as long as they may;
            otherwise the rate follows from how long they waited, and was not tried.
        tries: all of them that had enough epochs.
    """

    rate: float
    converged: bool
    tries: tuple[Try, ...]


Attempt = Callable[[float, int, bool], "Try | None"]
"""From events a second of event time, events an epoch, and whether windows are to be full, to what was seen.

``None`` if there were too few epochs.
"""


def search_with(attempt: Attempt, search: Search, *, windows: bool) -> Found:
    """The search itself: ``attempt`` makes a try.

    ``windows`` says whether short tries differ from the others.
    """
    size, rate = max(1_000, int(search.first * search.latency / 2)), search.first
    tries: list[Try] = []
    short, left = (search.short, search.tries) if windows else (0, search.short + search.tries)
    while left:
        found = attempt(rate, size, not short)
        short, left = max(0, short - 1), left if short else left - 1
        if found is None:
            size, rate = max(1_000, int(size / MOST_CHANGE)), rate / MOST_CHANGE
            continue
        tries.append(found)
        size, rate = found.at(search.latency)
        off = abs(found.longest - search.latency)
        if found.full and off <= CLOSE * search.latency:
            return Found(rate * SHARE, True, tuple(tries))
        if off <= NEAR * search.latency:
            short = 0
    if not tries:
        raise SternaError(
            f"no try of {search.short + search.tries} had three epochs in {search.seconds:.0f} s, the last "
            f"with {size:,} events in each: give a rate"
        )
    return Found(rate * SHARE, False, tuple(tries))


def highest(
    spark: SparkSession,
    start: Callable[[str], Subject],
    events: Callable[[float], Auctions],
    folder: str,
    search: Search,
    say: Say,
    needed: Callable[[float], float] = lambda _: 0.0,
) -> Found:
    """The highest rate.

    Args:
        spark: a session.
        start: makes the system with a new checkpoint, which is given.
        events: what comes in, at so many events a second.
        folder: for the checkpoints, which are gone after each try.
        search: how it is searched.
        say: takes a line about each try.
        needed: seconds until windows are full, at so many events a second.
    """
    numbers = itertools.count()

    def attempt(rate: float, size: int, full: bool) -> Try | None:
        checkpoint = os.path.join(folder, f"try-{next(numbers)}")
        subject = start(checkpoint)
        filled = needed(rate) if full else 0.0
        frame = events(rate).frame(spark, rate=0, perEpoch=size)
        try:
            took = epochs_took(subject, frame, search, round(filled * rate / size), PATIENCE * filled)
        finally:
            shutil.rmtree(checkpoint, ignore_errors=True)
        if len(took.seconds) < 2:
            say(f"{subject.name}: {size:,} events an epoch are too many")
            return None
        mean, waited = statistics.mean(took.seconds), max(a + b for a, b in itertools.pairwise(took.seconds))
        say(
            f"{subject.name}: {size:,} events an epoch take {mean:.2f} s, two in a row at most {waited:.2f} s"
        )
        return Try(size, mean, waited, full and took.settled)

    return search_with(attempt, search, windows=needed(search.first) > search.warm)


def epoch_seconds(subject: Subject, events: DataFrame, search: Search) -> float | None:
    """What an epoch takes on the average where they run back to back; ``None`` if there were not two."""
    took = epochs_took(subject, events, search).seconds
    return statistics.mean(took) if took else None


@dataclass(frozen=True)
class Took:
    """The seconds from the end of one epoch to that of the next, where they run back to back.

    Settled are they if all are from the time after the warm-up, and as many epochs as should had passed.
    """

    seconds: tuple[float, ...]
    settled: bool


def epochs_took(
    subject: Subject, events: DataFrame, search: Search, filled: int = 0, patience: float = 0.0
) -> Took:
    """How long epochs take.

    They count once the system is warm and ``filled`` epochs have passed. Nobody waits for these longer than
    ``patience`` seconds; where too few epochs ended after that, earlier ones count as well.
    """
    subject.start(events)
    try:
        run, began = Run(subject), time.monotonic()
        while not run.reports and time.monotonic() < began + search.warm + search.seconds:
            run.sleep(LOOK_SECONDS)
        run.sleep(search.warm)
        while _passed(run) < filled and time.monotonic() < began + patience:
            run.sleep(LOOK_SECONDS)
        since, settled = time.time(), _passed(run) >= filled
        run.sleep(search.seconds)
        while len(run.reports) < search.least:
            run.sleep(LOOK_SECONDS)
    finally:
        subject.stop()
    ends = [epoch.at for epoch in subject.epochs(lambda _: 0) if epoch.end > epoch.first]
    late = [end for end in ends if end >= since]
    if len(late) < 3:
        late, settled = ends[-4:], False  # epochs are long: what there is
    return Took(tuple(b - a for a, b in itertools.pairwise(late)), settled)


def _passed(run: Run) -> int:
    return run.reports[-1].epoch + 1 if run.reports else 0
