"""What runs on the open-loop input: Sterna, and Spark's own aggregation.

Each is able to change its number of workers. Both count the rows of each key, and keep the greatest
``payload`` where there is one; output goes to a sink that drops everything. Spark runs as in ``systems``:
RocksDB, changelog checkpoints, no counting of total rows.

Contract. ``start`` may be called again after ``stop``, and goes on from the checkpoint. ``epochs`` answers
after ``stop``, for everything since the last ``start``. ``rescale`` returns when the new number of workers is
in force. For Sterna that is an epoch; for Spark it is a stop, a rewrite of the checkpoint and a start (see
``offline``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

import sterna
from sterna.bench import acknowledge, offline
from sterna.bench.acknowledge import Epoch, Report
from sterna.bench.systems import SPARK_STATE
from sterna.sinks.base import Sink

RESCALE_SECONDS = DRAIN_SECONDS = 600.0


class Subject(Protocol):
    """A system under test, with one query on one checkpoint."""

    @property
    def name(self) -> str:
        """How it is called in figures and messages."""

    @property
    def query(self) -> StreamingQuery:
        """Spark's handle of the query that runs, or ran last."""

    def start(self, stream: DataFrame) -> None:
        """Starts, or goes on from the checkpoint."""

    def drain(self) -> None:
        """Waits until all input that is there has been acknowledged."""

    def stop(self) -> None:
        """Stops; does nothing if it does not run."""

    def epochs(self, end_of: Callable[[int], int]) -> list[Epoch]:
        """What was acknowledged since the start.

        ``end_of`` tells at which record so many files, counted from the start, end.
        """

    def rescale(self, workers: int) -> dict[str, float]:
        """Changes the number of workers; returns how many seconds each step took."""


class SternaSubject:
    """Sterna's ``aggregate(n=count(), payload=max("payload"))``.

    It rescales with the strategy given, by default that of ``migrate``, and drops its output where no sink is
    given.
    """

    def __init__(
        self,
        checkpoint: str,
        workers: int,
        bins: int = 4096,
        strategy: sterna.strategies.Strategy | None = None,
        sink: Sink | None = None,
        **options: Any,
    ) -> None:
        self.name = "sterna"
        self._given = sink or sterna.sinks.noop()
        self._strategy = strategy
        self._options = {"checkpoint": checkpoint, "workers": workers, "bins": bins, **options}
        self.handle: sterna.Query | None = None
        self._sink = acknowledge.Noting(self._given)

    @property
    def query(self) -> StreamingQuery:
        """See ``Subject``."""
        assert self.handle is not None, "not started"
        query: StreamingQuery = self.handle.streaming_query
        return query

    def start(self, stream: DataFrame) -> None:
        """See ``Subject``."""
        acknowledge.keep_reports(stream.sparkSession)
        self._sink = acknowledge.Noting(self._given)
        self.handle = self.flow(stream).start(sink=self._sink, **self._options)
        self._sink.attach(self.handle)

    def flow(self, stream: DataFrame) -> sterna.Stream:
        """What is computed."""
        functions = {"n": sterna.count()}
        if "payload" in stream.columns:
            functions["payload"] = sterna.max("payload")
        return sterna.read(stream).key_by("key").aggregate(**functions)

    def drain(self) -> None:
        """See ``Subject``."""
        assert self.handle is not None, "not started"
        self.handle.process_all_available(DRAIN_SECONDS)

    def stop(self) -> None:
        """See ``Subject``."""
        if self.handle is not None and self.handle.is_active:
            self.handle.stop()

    @property
    def milliseconds(self) -> dict[int, float]:
        """How long each epoch since the start took, by the query's own account."""
        return self._sink.milliseconds

    def epochs(self, end_of: Callable[[int], int]) -> list[Epoch]:
        """See ``Subject``; it counts records, not files."""
        return acknowledge.by_totals(acknowledge.reports(self.query), end_of(0), self._sink.totals)

    def rescale(self, workers: int) -> dict[str, float]:
        """See ``Subject``."""
        assert self.handle is not None, "not started"
        began = time.monotonic()
        # The number of workers changes with the first step; the migration is over with the last.
        self.handle.migrate(sterna.rescale(workers), self._strategy).wait(RESCALE_SECONDS)
        return {"migrate": time.monotonic() - began}


class SparkSubject:
    """Spark's ``groupBy("key").agg(count, max("payload"))``."""

    def __init__(self, checkpoint: str, partitions: int) -> None:
        self.name = "spark"
        self._checkpoint, self._partitions = checkpoint, partitions
        self._stream: DataFrame | None = None
        self._query: StreamingQuery | None = None
        self._earlier: list[Report] = []

    @property
    def query(self) -> StreamingQuery:
        """See ``Subject``."""
        assert self._query is not None, "not started"
        return self._query

    def start(self, stream: DataFrame) -> None:
        """See ``Subject``."""
        self._earlier = []
        self._stream = stream
        self._launch(stream)

    def _launch(self, stream: DataFrame, **trigger: Any) -> None:
        acknowledge.keep_reports(stream.sparkSession)
        settings = {**SPARK_STATE, "spark.sql.shuffle.partitions": str(self._partitions)}
        for name, value in settings.items():
            stream.sparkSession.conf.set(name, value)
        functions = [F.count(F.lit(1)).alias("n")]
        if "payload" in stream.columns:
            functions.append(F.max("payload").alias("payload"))
        writer = stream.groupBy("key").agg(*functions).writeStream.format("noop").outputMode("update")
        writer = writer.option("checkpointLocation", self._checkpoint)
        self._query = (writer.trigger(**trigger) if trigger else writer).start()

    def drain(self) -> None:
        """See ``Subject``."""
        self.query.processAllAvailable()

    def stop(self) -> None:
        """See ``Subject``."""
        if self._query is not None:
            self._query.stop()

    def epochs(self, end_of: Callable[[int], int]) -> list[Epoch]:
        """See ``Subject``."""
        by_id = {report.epoch: report for report in [*self._earlier, *acknowledge.reports(self.query)]}
        return acknowledge.by_lines([by_id[id_] for id_ in sorted(by_id)], end_of)

    def rescale(self, workers: int) -> dict[str, float]:
        """See ``Subject``; the query does not run for most of it."""
        assert self._stream is not None, "not started"
        spark, clock = self._stream.sparkSession, _Steps()
        offline.check(spark)
        self._halt()
        clock.step("stop")
        try:
            offline.repartition(spark, self._checkpoint, workers)
        except offline.Unfinished:
            clock.step("refused")
            self._launch(self._stream, availableNow=True)
            self.query.awaitTermination()  # raises what made the query fail
            self._halt()
            clock.step("finish")
            offline.repartition(spark, self._checkpoint, workers)
        clock.step("repartition")
        self._partitions = workers
        self._launch(self._stream)
        while acknowledge.latest(self.query) is None:
            if not self.query.isActive:
                raise self.query.exception() or RuntimeError("the query stopped by itself")
            time.sleep(0.05)
        clock.step("first_epoch")
        return clock.seconds

    def _halt(self) -> None:
        self.stop()
        self._earlier += acknowledge.reports(self.query)


class _Steps:
    """How many seconds each step took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.monotonic()

    def step(self, name: str) -> None:
        """Ends a step."""
        now = time.monotonic()
        self.seconds[name], self._last = now - self._last, now
