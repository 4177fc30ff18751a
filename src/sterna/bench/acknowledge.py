"""Which records each epoch acknowledged, and when.

An epoch is acknowledged when Spark's trigger has ended: the start of its progress report plus
``triggerExecution``, which covers everything up to the commit log. It is the same moment for every system,
and later than the one at which a sink has the output.

Files of records are contiguous and every epoch takes all that are there, so counting is enough to know which
records an epoch had. For Spark's own queries ``numInputRows`` counts lines, of which each is a file of known
size. Sterna counts the rows that it routed, which are the records: a sink notes the total when an epoch is
published. Epochs without records are kept, as empty ranges.

Reports are read once, after the run: reading them costs the driver time that belongs to the query. Spark must
therefore keep as many as the run has epochs: call ``keep_reports`` before the query starts. ``Missing`` is
raised if there were more.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

import sterna
from sterna.sinks.base import Part, Sink, TaskSink
from sterna.state.store import Store

KEPT_REPORTS = 10_000
ATTACH_SECONDS = 60.0


class Missing(Exception):
    """Some epochs of a run can't be accounted for."""


@dataclass(frozen=True)
class Report:
    """One finished trigger: its epoch, the lines it read, when it began and when it ended."""

    epoch: int
    lines: int
    began: float
    ended: float


@dataclass(frozen=True)
class Epoch:
    """The records [first, end) and the moment at which all of them were acknowledged."""

    id: int
    first: int
    end: int
    at: float


def report_of(progress: Mapping[str, Any]) -> Report | None:
    """What a progress report (as JSON) says, or None if its trigger ran no epoch."""
    took = progress["durationMs"]
    if "triggerExecution" not in took or "addBatch" not in took:
        return None
    began = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp()
    lines = int(progress["numInputRows"])
    return Report(int(progress["batchId"]), lines, began, began + took["triggerExecution"] / 1e3)


def keep_reports(spark: SparkSession) -> None:
    """Makes Spark remember the epochs of queries that are started from now on."""
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(KEPT_REPORTS))


def latest(query: StreamingQuery) -> Report | None:
    """The newest finished epoch; cheap enough to ask some times a second."""
    progress = query.lastProgress
    return None if progress is None else report_of(json.loads(progress.json))


def reports(query: StreamingQuery) -> list[Report]:
    """All finished epochs of a query, in order."""
    found = [json.loads(progress.json) for progress in query.recentProgress]
    if len(found) >= KEPT_REPORTS:
        raise Missing(
            f"the run has more than {KEPT_REPORTS:,} epochs, and Spark has forgotten the first ones"
        )
    by_id = {report.epoch: report for report in map(report_of, found) if report is not None}
    return [by_id[id_] for id_ in sorted(by_id)]


def by_lines(found: Iterable[Report], end_of: Callable[[int], int]) -> list[Epoch]:
    """Epochs of a query of Spark's own, which counts lines.

    ``end_of`` tells at which record so many lines end.

    Example:
        >>> found = [Report(7, 2, 0.0, 0.5), Report(8, 0, 0.5, 0.6), Report(9, 1, 0.6, 0.9)]
        >>> for epoch in by_lines(found, lambda lines: 100 + 10 * lines):
        ...     print(epoch)
        Epoch(id=7, first=100, end=120, at=0.5)
        Epoch(id=8, first=120, end=120, at=0.6)
        Epoch(id=9, first=120, end=130, at=0.9)
    """
    epochs, lines = [], 0
    for report in found:
        epochs.append(Epoch(report.epoch, end_of(lines), end_of(lines + report.lines), report.ended))
        lines += report.lines
    return epochs


def by_totals(found: Iterable[Report], first: int, totals: Mapping[int, int]) -> list[Epoch]:
    """Epochs of a query that notes, after each, how many records it has had since its checkpoint began."""
    epochs, position = [], first
    for report in found:
        if report.epoch not in totals:
            raise Missing(f"epoch {report.epoch} was finished, but nobody noted its records")
        epochs.append(Epoch(report.epoch, position, totals[report.epoch], report.ended))
        position = totals[report.epoch]
    return epochs


class Noting(Sink):
    """A sink that takes notes of each epoch of a Sterna query, and hands everything on to another.

    It notes how many records the query has had, and how long the epoch took.

    Attributes:
        totals: the records since the checkpoint began, by epoch.
        milliseconds: what the epoch took by the query's own account, which is what ``paced`` goes by.
    """

    def __init__(self, inner: Sink) -> None:
        self.totals: dict[int, int] = {}
        self.milliseconds: dict[int, float] = {}
        self._inner = inner
        self._query: sterna.Query | None = None
        self._attached = threading.Event()

    def attach(self, query: sterna.Query) -> None:
        """Says whose sink this is; epochs that are published earlier wait for it."""
        self._query = query
        self._attached.set()

    def open(self, checkpoint: Store, schema: pa.Schema, spark: Any, incarnation: int) -> None:  # noqa: D102
        self._inner.open(checkpoint, schema, spark, incarnation)

    def task(self) -> TaskSink:  # noqa: D102
        return self._inner.task()

    def publish(self, epoch: int, parts: list[Part]) -> None:  # noqa: D102
        self._inner.publish(epoch, parts)
        if not self._attached.wait(ATTACH_SECONDS) or self._query is None:
            raise RuntimeError("Noting.attach(query) was not called")
        # The manifest of the epoch that is being published is the last one already.
        status = self._query.status()
        self.totals[epoch] = status["rows"]
        self.milliseconds[epoch] = status["epoch_ms"]

    def forget(self, epoch: int, parts: list[Part]) -> None:  # noqa: D102
        self._inner.forget(epoch, parts)
