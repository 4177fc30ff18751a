"""Laps and maximum rates of what runs on Spark: Sterna, and Spark's own aggregation.

Sterna ships the state that moves, also between workers of one machine (``share_host_state=False``), and moves
it ``matched``. Spark runs as in ``subjects``, and writes its own logs in the quick way in which Sterna has
them written on a local disk, which its guide does not mention: in its favour. Both are filled by records that
go through the query.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

import sterna
from sterna.bench import ceiling, harness
from sterna.bench.latency import Histogram
from sterna.bench.peers.lap import AFTER, BEFORE, Case, Course, Lap
from sterna.bench.phases import Phase, Run, rescale
from sterna.bench.subjects import SparkSubject, SternaSubject
from sterna.session import quick_local_logs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sterna.bench.rig import Say
    from sterna.bench.source import Turns

Subject = SternaSubject | SparkSubject


class OnSpark:
    """Sterna, with so many bins, or Spark; an empty folder of its own for each lap."""

    def __init__(self, name: str, spark: SparkSession, root: str, bins: int, say: Say) -> None:
        self.name, self._spark, self._root, self._bins, self._say = name, spark, root, bins, say

    def maximum_rate(self, folder: str, case: Case, course: Course) -> float:
        """Records a second, with epochs of about a second."""
        with quick_local_logs(self._spark):
            subject, first = self._filled(folder, case)
            found = ceiling.maximum_rate(
                self._spark,
                subject,
                folder,
                case.records,
                first=first,
                warm=course.warm,
                seconds=course.seconds,
            )
        return found.rate

    def lap(self, folder: str, case: Case, course: Course, rate: float) -> Lap:
        """See ``lap``."""
        with quick_local_logs(self._spark):
            subject, first = self._filled(folder, case)
            result = harness.run(
                self._spark,
                subject,
                folder,
                [
                    Phase("before", course.quiet),
                    Phase("lead", course.lead),
                    Phase("rescale", _patient(rescale(AFTER, course.quiet, course.limit))),
                    Phase("after", course.rest),
                ],
                rate=rate,
                records=case.records,
                first=first,
                window=course.window,
                settings_folder=self._root,
            )
        phases = {phase["name"]: phase for phase in result["phases"]}
        steps = result["notes"].get(f"rescale to {AFTER}")
        if steps is None:
            raise TimeoutError(f"{self.name} did not rescale in {course.limit:.0f} s")
        parts = {name: seconds for name, seconds in steps.items() if name != "whole"}
        during = Histogram()
        for name in ("lead", "rescale"):
            during.merge(Histogram.from_json(phases[name]["histogram"]))
        quiet, asked = phases["before"], phases["rescale"]["second"]
        return Lap(
            self.name,
            Histogram.from_json(quiet["histogram"]),
            during,
            (quiet["second"], quiet["second"] + quiet["seconds"]),
            asked,
            sum(parts.values()),
            wrong(counts(self._spark, subject, _checkpoint(folder)), case.turns, result["next_record"]),
            result["timeline"],
            parts,
        )

    def _filled(self, folder: str, case: Case) -> tuple[Subject, int]:
        """The system with every key once in its state, and the number of the next record."""
        os.makedirs(folder)
        self._say(f"{self.name}: filling {case.keys:,} keys")
        subject: Subject = (
            SparkSubject(_checkpoint(folder), BEFORE)
            if self.name == "spark"
            else SternaSubject(
                _checkpoint(folder), BEFORE, self._bins, sterna.matched(), share_host_state=False
            )
        )
        return subject, ceiling.fill(self._spark, subject, folder, case.records)


def _checkpoint(folder: str) -> str:
    return os.path.join(folder, "checkpoint")


def counts(spark: SparkSession, subject: Subject, checkpoint: str) -> DataFrame:
    """``key`` and ``n`` of every key in the state of a query that was stopped."""
    if isinstance(subject, SternaSubject):
        assert subject.handle is not None, "not started"
        held: DataFrame = subject.handle.state()
        return held.select("key", "n")
    # The state store knows columns by their place: the key, the count, and the greatest payload if there is
    # one.
    flat = spark.read.format("statestore").load(checkpoint).select("key.*", "value.*")
    return flat.toDF("key", "n", *flat.columns[2:])


def _patient(action: Callable[[Run], None]) -> Callable[[Run], None]:
    """A phase that ends also if latency has not come back by then: the timeline tells."""

    def patient(run: Run) -> None:
        with suppress(TimeoutError):
            action(run)

    return patient


def wrong(counts: DataFrame, keys: Turns, end: int) -> int:
    """How many keys have not been counted as often as they are among the records below ``end``, exactly once.

    A key that is in two places, or should not be there, counts as wrong too.
    """
    known = (F.col("key") >= 0) & (F.col("key") < keys.count)
    right = F.coalesce(known & (F.col("n") == keys.times(F.col("key"), end)), F.lit(False))
    each = counts.groupBy("key").agg(F.count(F.lit(1)).alias("rows"), F.bool_and(right).alias("right"))
    found = each.agg(
        F.count_if((F.col("rows") == 1) & F.col("right")).alias("right"), F.count(F.lit(1)).alias("keys")
    ).collect()[0]
    return keys.count - int(found["right"]) + max(0, int(found["keys"]) - keys.count)
