"""Run queries for a number of epochs and read off how long each took.

A query is started on its own checkpoint, runs some epochs that do not count (loading state, compiling), then
the epochs that do, and is stopped. The next start goes on from that checkpoint. Durations are Spark's own:
``durationMs.triggerExecution`` of each epoch's progress, which covers everything from asking the source for
offsets to the commit log. An epoch counts only if it had exactly the wanted number of rows: the first one
after a restart may be an interrupted epoch of the previous start.

If a query fails, its exception is raised here; whatever happens, the query is stopped.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from sterna.bench import machine
from sterna.bench.source import Keys, stream
from sterna.bench.systems import System

Say = Callable[[str], None]
MEMORY_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 1800.0


@dataclass(frozen=True)
class Plan:
    """How long to measure: at least so many epochs, and at least so long, after the warm-up."""

    warmup: int
    epochs: int
    seconds: float = 0.0


@dataclass(frozen=True)
class Epoch:
    """One finished epoch of the measured source."""

    id: int
    rows: int
    end: int
    milliseconds: float


@dataclass
class Lane:
    """One system on one checkpoint, with how far its source has come."""

    system: System
    checkpoint: str
    keys: Keys
    position: int = 0
    rows_in_flight: int = 0
    rounds: list[list[float]] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)

    @property
    def next_position(self) -> int:
        """No epoch that was planned so far reaches beyond this count.

        Past the last one that was seen to finish there may be one that finished unseen and one interrupted.
        """
        return self.position + 3 * self.rows_in_flight


def fill(spark: SparkSession, lane: Lane, rows: int, say: Say) -> None:
    """Run epochs of ``rows`` rows until the lane's state holds all of its keys."""
    if lane.position >= lane.keys.filled_at:
        return
    for epoch in _epochs(spark, lane, rows):
        done = min(epoch.end, lane.keys.filled_at) - lane.keys.fill_from + lane.keys.known
        say(f"filling {lane.system.name}: {max(done, 0):,} of {lane.keys.count:,} keys")
        if epoch.end >= lane.keys.filled_at:
            return


def measure(
    spark: SparkSession, lane: Lane, rows: int, plan: Plan, say: Say, *, memory: bool = False
) -> None:
    """Run one round of ``rows`` rows an epoch and add the durations of its epochs to the lane."""
    times: list[float] = []
    skipped = 0
    for epoch in _epochs(spark, lane, rows, lane.memory if memory else None):
        if epoch.rows != rows:
            continue
        if skipped < plan.warmup:
            skipped += 1
            continue
        times.append(epoch.milliseconds)
        if len(times) >= plan.epochs and sum(times) >= plan.seconds * 1000:
            break
    lane.rounds.append(times)
    say(
        f"{lane.system.name}: {rows:,} rows an epoch, p50 {statistics.median(times):,.0f} ms of {len(times)} "
        "epochs"
    )


def _epochs(spark: SparkSession, lane: Lane, rows: int, memory: list[int] | None = None) -> Iterator[Epoch]:
    """Start the lane's query and yield its epochs as they finish; stop it when the caller has enough."""
    lane.rows_in_flight = max(rows, lane.rows_in_flight)
    running = lane.system.start(stream(spark, rows, lane.keys), lane.checkpoint)
    last, seen_at, weighed_at, pause = -1, time.monotonic(), 0.0, 0.05
    try:
        while True:
            now = time.monotonic()
            for epoch in _finished(running.query, last):
                last, seen_at = epoch.id, now
                lane.position = epoch.end
                # Polling costs the driver time that belongs to the query: some times an epoch is enough.
                pause = min(max(epoch.milliseconds / 5000, 0.02), 0.5)
                yield epoch
            if not running.query.isActive:
                raise running.query.exception() or RuntimeError(f"{lane.system.name} stopped by itself")
            if now > seen_at + LONGEST_WAIT_SECONDS:
                raise TimeoutError(f"no epoch of {lane.system.name} finished in {LONGEST_WAIT_SECONDS:.0f} s")
            if memory is not None and now > weighed_at + MEMORY_SECONDS:
                weighed_at = now
                memory.extend(machine.anonymous_bytes(machine.python_workers()))
            time.sleep(pause)
    finally:
        running.stop()
        for epoch in _finished(running.query, last):
            lane.position = epoch.end
        lane.rows_in_flight = rows


def _finished(query: StreamingQuery, after: int) -> list[Epoch]:
    """The epochs that finished after the one with this id."""
    newest = query.lastProgress
    if newest is None or newest.batchId <= after:
        return []
    progress = [newest] if newest.batchId == after + 1 else query.recentProgress
    epochs = {epoch.id: epoch for epoch in map(_read, progress) if epoch is not None}
    return [epochs[id_] for id_ in sorted(epochs) if id_ > after]


def _read(progress: Any) -> Epoch | None:
    """The epoch of a progress report, or None if it had no rows of ours (an idle trigger, a tick)."""
    report = json.loads(progress.json)
    for source in report["sources"]:
        if "RatePerMicroBatch" not in source["description"]:
            continue
        start, end = (_count(source[name]) for name in ("startOffset", "endOffset"))
        duration = report["durationMs"].get("triggerExecution")
        if end > start and duration is not None:
            return Epoch(int(report["batchId"]), end - start, end, float(duration))
    return None


def _count(offset: Any) -> int:
    if isinstance(offset, str):
        offset = json.loads(offset)
    return int(offset["offset"]) if offset else 0
