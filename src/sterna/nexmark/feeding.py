"""NEXMark's events as input of the open-loop harness, and Sterna's queries as what runs on it.

The source itself keeps the schedule: event n is due ``n / rate`` seconds after the begin. Which events an
epoch had, Spark's progress report says: the offsets are numbers of events.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sterna
from sterna.bench import acknowledge
from sterna.bench.acknowledge import Epoch
from sterna.bench.feeder import Schedule
from sterna.bench.subjects import SternaSubject
from sterna.nexmark.queries import query as query_of
from sterna.nexmark.source import register
from sterna.nexmark.streams import streams

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery
    from typing_extensions import Self

AHEAD_SECONDS, LOOK_SECONDS = 0.5, 0.1


@dataclass(frozen=True)
class Auctions:
    """The events, as ``bench.openloop.Input``; options are those of the source."""

    options: dict[str, Any] = field(default_factory=dict)

    def frame(self, spark: SparkSession, **more: Any) -> DataFrame:
        """The source as a streaming DataFrame."""
        register(spark)
        reader = spark.readStream.format("nexmark")
        for name, value in {**self.options, **more}.items():
            reader = reader.option(name, str(value))
        return reader.load()

    def fed(self, spark: SparkSession, folder: str, schedule: Schedule) -> Auction:
        """See ``Input``."""
        os.makedirs(folder, exist_ok=True)
        until = os.path.join(folder, f"until-{schedule.first}")
        begin = schedule.begin - schedule.first / schedule.rate
        return Auction(self.frame(spark, rate=schedule.rate, begin=begin, until=until), schedule, until)


class Auction:
    """Events that come as a schedule says; see ``bench.openloop.Fed``."""

    alive = True

    def __init__(self, stream: DataFrame, schedule: Schedule, until: str) -> None:
        self.stream, self._schedule, self._until = stream, schedule, until

    def stop(self) -> int:
        """Says how many events there are in all, to the source too.

        It says so a little ahead, so that the source has not gone past that. It returns when the last is due.
        """
        end = self._schedule.record_at(time.time() + AHEAD_SECONDS)
        hidden = f"{self._until}.part"
        with open(hidden, "w", encoding="ascii") as file:
            file.write(str(end))
        os.rename(hidden, self._until)
        time.sleep(max(0.0, self._schedule.due(end) - time.time()) + LOOK_SECONDS)
        return end

    def __enter__(self) -> Self:
        """It begins by itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left running."""


class NexmarkSubject(SternaSubject):
    """One of the queries on Sterna; see ``bench.subjects.Subject``."""

    def __init__(self, query: str, checkpoint: str, workers: int, bins: int = 4096, **options: Any) -> None:
        super().__init__(checkpoint, workers, bins, **{"watermark_delay": 0, **options})
        self.name, self.checkpoint = f"sterna {query}", checkpoint
        self._build = query_of(query)

    def flow(self, stream: DataFrame) -> sterna.Stream:
        """See ``SternaSubject``."""
        return self._build(streams(stream))

    def epochs(self, end_of: Callable[[int], int]) -> list[Epoch]:  # noqa: ARG002 - offsets tell
        """See ``Subject``."""
        return by_offsets(self.query)


def by_offsets(query: StreamingQuery) -> list[Epoch]:
    """The epochs of a query that reads the events, with the events of each."""
    ended = {report.epoch: report.ended for report in acknowledge.reports(query)}
    found = {}
    for progress in query.recentProgress:
        told = json.loads(progress.json)
        for source in told["sources"]:
            start, end = (_event(source[name]) for name in ("startOffset", "endOffset"))
            if end is not None and told["batchId"] in ended:
                found[told["batchId"]] = Epoch(told["batchId"], start or 0, end, ended[told["batchId"]])
    return [found[id_] for id_ in sorted(found)]


def _event(offset: Any) -> int | None:
    offset = json.loads(offset) if isinstance(offset, str) else offset
    return int(offset["event"]) if isinstance(offset, dict) and "event" in offset else None
