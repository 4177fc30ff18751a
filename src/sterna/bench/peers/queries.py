"""NEXMark's queries on Sterna and on Spark's own operators: events a second at the same size of epochs.

Method. Both read the same parquet files, a file of each kind an epoch, from an empty state, until all are read; the first epochs, while the state is built up and code is compiled, do not count. Rounds alternate, and so does who is
first. The time of an epoch is Spark's ``triggerExecution``. Spark runs as its guide recommends for large state: RocksDB, changelog checkpoints, no counting of the total number of rows; it has as
many state partitions as there are cores, as Sterna has workers. Outputs go to a sink that drops them.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sterna
from sterna.bench.acknowledge import keep_reports
from sterna.bench.peers.events import Files
from sterna.bench.rig import Say
from sterna.bench.systems import SPARK_STATE
from sterna.nexmark.generator import Shape
from sterna.nexmark.native import NATIVE, WHY_NOT, Frames
from sterna.nexmark.queries import QUERIES
from sterna.nexmark.streams import Streams

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

END_SECONDS = 1800
MANY_KEYS = ("q3", "q4", "q6", "q8", "nbq8")
LEAST_RATIO = 5.0


@dataclass(frozen=True)
class Size:
    """How much is measured.

    Attributes:
        each: events an epoch.
        epochs: how many there are.
        warm: how many of them do not count.
        in_flight: auctions open at a time.
        rounds: how often the two take turns.
    """

    each: int = 200_000
    epochs: int = 16
    warm: int = 6
    in_flight: int = 20_000
    rounds: int = 3

    def files(self, folder: Path, dilation: float) -> Files:
        """The events: an epoch's worth of them is a second of event time, before dilation."""
        shape = Shape(rate=float(self.each), dilation=dilation, in_flight=self.in_flight)
        return Files(folder / f"dilated-{dilation:g}", shape, self.epochs, self.each)

    def longest(self, dilation: float) -> str:
        """How long an auction may be open: Spark needs to know."""
        seconds = 2 * self.in_flight * 50 / 3 / self.each * dilation + 1
        return f"{int(seconds) + 1} seconds"


QUICK = Size(each=5_000, epochs=3, warm=1, in_flight=200, rounds=1)


def compare(
    spark: SparkSession, root: Path, names: Sequence[str], size: Size, dilations: dict[str, float], say: Say
) -> list[dict[str, Any]]:
    """A line for each query."""
    lines = []
    for name in names:
        dilation = dilations.get(name, 1.0)
        files = size.files(root / "events", dilation).written()
        found: dict[str, list[float]] = {"sterna": [], "spark": []}
        for number in range(size.rounds):
            for side in ("sterna", "spark") if number % 2 == 0 else ("spark", "sterna"):
                took = _measured(spark, root, side, name, files, size.longest(dilation))
                found[side].append(size.each * len(took[size.warm :]) / sum(took[size.warm :]))
                say(f"{name}, round {number + 1}: {side} {found[side][-1]:,.0f} events a second")
        lines.append(_line(name, size, dilation, found))
    return lines


def _line(name: str, size: Size, dilation: float, found: dict[str, list[float]]) -> dict[str, Any]:
    ratios = [mine / theirs for mine, theirs in zip(found["sterna"], found["spark"], strict=True)]
    return {
        "query": name,
        "events_an_epoch": size.each,
        "dilation": dilation,
        **{f"{side}_events_per_second": round(statistics.median(rates)) for side, rates in found.items()},
        **{f"{side}_rounds": [round(rate) for rate in rates] for side, rates in found.items()},
        "ratio": round(statistics.median(ratios), 2),
        "many_keys": name in MANY_KEYS,
        "spark_note": WHY_NOT.get(name),
    }


def _measured(
    spark: SparkSession, root: Path, side: str, name: str, files: Files, longest: str
) -> list[float]:
    """The seconds that each epoch took."""
    keep_reports(spark)
    frames = files.frames(spark)
    with tempfile.TemporaryDirectory(dir=root) as checkpoint:
        start = _sterna if side == "sterna" else _spark
        with start(spark, name, frames, checkpoint, longest) as query:
            if not query.awaitTermination(END_SECONDS):
                raise TimeoutError(f"{side} was not done with {name} after {END_SECONDS} s")
            reports = [json.loads(progress.json) for progress in query.recentProgress]
    return [one["durationMs"]["triggerExecution"] / 1e3 for one in reports if one["numInputRows"]]


@contextlib.contextmanager
def _sterna(
    spark: SparkSession,
    name: str,
    frames: dict[str, DataFrame],
    checkpoint: str,
    longest: str,  # noqa: ARG001 - as for Spark
) -> Iterator[StreamingQuery]:
    streams = Streams(*(sterna.read(frame) for frame in frames.values()))
    query = QUERIES[name](streams).start(
        checkpoint=checkpoint,
        workers=spark.sparkContext.defaultParallelism,
        watermark_delay=0,
        trigger={"availableNow": True},
    )
    try:
        yield query.streaming_query
    finally:
        query.stop()


@contextlib.contextmanager
def _spark(
    spark: SparkSession, name: str, frames: dict[str, DataFrame], checkpoint: str, longest: str
) -> Iterator[StreamingQuery]:
    settings = {**SPARK_STATE, "spark.sql.shuffle.partitions": str(spark.sparkContext.defaultParallelism)}
    for key, value in settings.items():
        spark.conf.set(key, value)
    answers = NATIVE[name](Frames(frames["person"], frames["auction"], frames["bid"], longest))
    writer = answers.writeStream.format("noop").outputMode("append").option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    try:
        yield query
    finally:
        query.stop()
