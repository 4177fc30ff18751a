"""Where migrations are measured: a query whose state is filled once, and gone on from by every run.

The state is kept while an experiment runs. Filling is Sterna's own initial state: a batch DataFrame with all
keys. All runs on a place take turns: each starts the query where the last one left it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from sterna.bench import ceiling
from sterna.bench.openloop import Records
from sterna.bench.rig import Say
from sterna.bench.source import Keys
from sterna.bench.subjects import SternaSubject

WORKERS = 4


@dataclass(frozen=True)
class Pressure:
    """How the maximum rate is measured: seconds that do not count, seconds that do, seconds an epoch."""

    warm: float = 15.0
    seconds: float = 25.0
    epoch: float = 1.0


@dataclass
class Place:
    """A filled checkpoint.

    Attributes:
        folder: everything that belongs to it.
        records: what a record is; all keys are known.
        bins: with how many it began.
        first: the number of the next record.
        ceiling: the maximum rate, once it was measured.
    """

    folder: str
    records: Records
    bins: int
    first: int = 0
    ceiling: dict[str, float] = field(default_factory=dict)

    def subject(self, **options: Any) -> SternaSubject:
        """The query, to be started."""
        checkpoint = os.path.join(self.folder, "checkpoint")
        return SternaSubject(checkpoint, WORKERS, self.bins, share_host_state=False, **options)

    @property
    def rate(self) -> float:
        """Records a second: half of what was measured as the maximum."""
        return self.ceiling["records_per_second"] / 2


def filled(
    spark: SparkSession, folder: str, keys: int, payload: int, bins: int, pressure: Pressure, say: Say
) -> Place:
    """A new place with all keys in its state, and its maximum rate."""
    os.makedirs(folder)
    place = Place(folder, Records(Keys(keys, known=keys), payload), bins)
    say(f"filling {keys:,} keys with {payload} bytes of payload, {bins:,} bins")
    subject = place.subject(initial_state={"aggregate": place.records.state(spark)})
    subject.start(place.records.stream(spark, os.path.join(folder, "input")))
    subject.stop()
    # As many records as there are keys, so that merging is what it is in the long run when the maximum is
    # measured, and then for as long again: large states are merged seldom, and much at a time.
    busy, place.first = ceiling.keep_busy(spark, place.subject(), folder, place.records, 0, rows=keys)
    lasted = busy[-1].ended - busy[0].ended
    found = ceiling.maximum_rate(
        spark,
        place.subject(),
        folder,
        place.records,
        first=place.first,
        epoch_seconds=pressure.epoch,
        warm=pressure.warm,
        seconds=max(pressure.seconds, lasted),
    )
    place.first, place.ceiling = found.next_record, found.to_json()
    say(f"{keys:,} keys: at most {found.rate:,.0f} records a second")
    return place
