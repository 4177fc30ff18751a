"""Keeping slots off executors that are to go.

Spark's public interface has no way to say where a task must not run, but it never runs two tasks on one core:
while the cores of an executor are held by tasks that do nothing, whatever else is started runs elsewhere.
That is how the slots of a new anchor are kept off an executor; once they are cached, they stay where they
are. Before that, the bins of the workers that sit there move to the others. Which executor an executor is, is
told by its host and process; a host alone stands for all of its executors.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sterna.configuration import Configuration
from sterna.engine.where import executor
from sterna.statistics import Statistics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOLD_SECONDS = 60.0
"""The longest that a core is held; the tasks are cancelled as soon as the slots are cached."""

TASKS_A_CORE = 4
SUBMITTED_SECONDS = 10.0


def is_one_of(where: str, names: Iterable[str]) -> bool:
    """Whether an executor is meant by one of these names.

    >>> is_one_of("host7/4242", ["host7"]), is_one_of("host7/4242", ["host7/4242"])
    (True, True)
    >>> is_one_of("host7/4242", ["host"])
    False
    """
    return any(name in (where, where.rsplit("/", 1)[0]) for name in names)


def emptied(current: Configuration, workers: Iterable[int], statistics: Statistics) -> dict[int, int]:
    """Where the bins of these workers go, so that the others have about as much work each.

    Empty if there are no bins, or no others.

    >>> emptied(Configuration.initial(4, 2), [1], Statistics.unknown(4))
    {2: 0, 3: 0}
    """
    leaving = set(workers)
    staying = [worker for worker in range(current.workers) if worker not in leaving]
    load = statistics.at(current.bins).load()
    totals = np.bincount(current.owners, load, current.workers)
    bins = np.flatnonzero(np.isin(current.owners, list(leaving))) if staying else np.array([], np.int64)
    out: dict[int, int] = {}
    for bin_ in bins[np.argsort(-load[bins], kind="stable")].tolist():
        out[bin_] = min(staying, key=lambda worker: totals[worker])
        totals[out[bin_]] += load[bin_]
    return out


@dataclass(frozen=True)
class Hold:
    """A task that stays for long on the executors that are named, and is over at once on the others."""

    names: frozenset[str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What came in."""
        if is_one_of(executor(), self.names):
            time.sleep(HOLD_SECONDS)
        yield from batches


@contextmanager
def held(spark: SparkSession, names: frozenset[str]) -> Iterator[None]:
    """Inside, the cores of these executors are taken, as far as they were free."""
    if not names:
        yield
        return
    context, group = spark.sparkContext, f"sterna-hold-{uuid.uuid4().hex}"
    tasks = TASKS_A_CORE * context.defaultParallelism

    def hold() -> None:
        context.setJobGroup(group, "keeping slots off executors that are drained", interruptOnCancel=True)
        with suppress(Exception):  # it is cancelled
            spark.range(0, tasks, 1, tasks).mapInArrow(Hold(names), "id long").collect()

    thread = threading.Thread(target=hold, name="sterna-hold", daemon=True)
    thread.start()
    try:
        # Spark gives free cores to the job that was submitted first.
        _wait_until(lambda: bool(context.statusTracker().getJobIdsForGroup(group)))
        yield
    finally:
        context.cancelJobGroup(group)
        thread.join(timeout=HOLD_SECONDS)


def _wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SUBMITTED_SECONDS
    while not true() and time.monotonic() < deadline:
        time.sleep(0.02)
