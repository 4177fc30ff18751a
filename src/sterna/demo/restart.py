"""Spark's part: the same aggregation, the same state, the same input, rescaled in Spark's own way."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from sterna.bench import harness, offline
from sterna.bench.feeder import Schedule, write_range
from sterna.bench.phases import Phase, Run, waits
from sterna.bench.subjects import SparkSubject
from sterna.demo.setup import Setup
from sterna.demo.watching import Watcher

STEADY_S = 6.0
CATCH_UP_S = 40.0
SHARE = 0.5
"""Of the rate at which the state could be filled, so much is fed at most."""
STEPS = {
    "stop": "stopping",
    "refused": "repartitioning, which Spark refused because the stop had interrupted an epoch",
    "finish": "finishing that epoch with an availableNow run",
    "repartition": "repartitioning offline",
    "first_epoch": "the first epoch after the start",
}


@dataclass
class Restart:
    """What came of it, or why there is nothing."""

    skipped: str | None = None
    result: dict[str, Any] | None = None
    rate: float = 0.0
    began: float = 0.0
    seconds: float = 0.0
    note: str = ""
    wrong: int = 0
    steady: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)


def run(spark: SparkSession, setup: Setup, folder: str, rate: float, watcher: Watcher) -> Restart:
    """Fills the state in one epoch, and rescales while input comes.

    It comes at the same rate, or at what Spark keeps up with.
    """
    if not setup.spark:
        return Restart("Spark's own rescale is left out.")
    if not offline.available(spark):
        return Restart(
            f"Spark {spark.version} has no way to rescale a stateful query, not even offline "
            "(4.2 and later have)."
        )
    os.makedirs(folder, exist_ok=True)
    checkpoint = os.path.join(folder, "checkpoint")
    records = setup.records(filling=True)
    subject = SparkSubject(checkpoint, setup.workers)
    watcher.say("Spark: filling the same state")
    filled_in = _fill(spark, setup, subject, os.path.join(folder, "input"))
    most = 1000 * max(1, SHARE * setup.keys / filled_in // 1000)
    done = Restart(rate=min(rate, most))
    watcher.rate = done.rate
    watcher.say(
        "Spark: getting steady",
        "" if done.rate == rate else "fewer records a second: Spark keeps up with less",
    )

    def rescale(run: Run) -> None:
        usual = max(wait for _, wait in waits(run.reports)[-10:])
        watcher.say("Spark: stop, repartition offline, restart", "no record is taken meanwhile")
        done.began = time.time()
        steps = subject.rescale(setup.fewer)
        done.seconds = time.time() - done.began
        done.note = "It took " + ", ".join(
            f"{seconds:.1f} s for {STEPS[name]}" for name, seconds in steps.items()
        )
        watcher.say("Spark: catching up")
        with contextlib.suppress(TimeoutError):
            run.until_usual(1.5 * usual, since=done.began + done.seconds, limit=CATCH_UP_S)

    done.result = harness.run(
        spark,
        subject,
        folder,
        [Phase("steady", STEADY_S), Phase("rescale", rescale), Phase("settling", setup.settle)],
        rate=done.rate,
        records=records,
        first=setup.keys,
        window=3.0,
        say=lambda line: watcher.say(line.replace("spark:", "Spark:")),
        watch=watcher.watch,
        settings_folder=os.path.dirname(folder),
    )
    watcher.watch(None)
    _measure(done, done.result, subject, Schedule(done.result["begin"], done.rate, setup.keys))
    watcher.say("Spark: comparing every count with the input")
    # The state store knows columns by their place: the count, and the greatest payload.
    state = spark.read.format("statestore").load(checkpoint).select("key.*", "value.*")
    done.wrong = setup.wrong(
        state.toDF("key", "n", "payload"), setup.counts(setup.keys, done.result["next_record"])
    )
    return done


def _fill(spark: SparkSession, setup: Setup, subject: SparkSubject, source: str) -> float:
    """One epoch with each key once; how many seconds it took."""
    os.makedirs(source, exist_ok=True)
    files = spark.sparkContext.defaultParallelism
    cuts = [setup.keys * i // files for i in range(files + 1)]
    for start, end in itertools.pairwise(cuts):
        write_range(source, start, end)
    began = time.time()
    subject.start(setup.records(filling=True).stream(spark, source))
    subject.drain()
    subject.stop()
    return time.time() - began


def _measure(done: Restart, result: dict[str, Any], subject: SparkSubject, schedule: Schedule) -> None:
    """The latencies of the records that waited for the rescale, and of those before them.

    The former are measured until the query had caught up.
    """
    epochs = subject.epochs(lambda files: schedule.first + files * schedule.size)
    rescale = result["phases"][1]
    # Records that were there when the query was stopped waited too.
    first = next(epoch.first for epoch in epochs if epoch.at > done.began and epoch.end > epoch.first)
    waiting, end = schedule.due(first), schedule.begin + rescale["second"] + rescale["seconds"]
    done.steady = harness.figures(epochs, schedule, waiting - STEADY_S, waiting)
    done.figures = harness.figures(epochs, schedule, waiting, end)
