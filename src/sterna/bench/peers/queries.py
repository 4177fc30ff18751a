"""NEXMark's queries on Sterna and on Spark's own operators: events a second at the same size of epochs.

Method. Both read the same parquet files, one of each kind an epoch, from an empty state, until all are read; the first epochs, while code is compiled and the state is built up, do not count.
Rounds alternate, and so does who is first. The time of an epoch is Spark's ``triggerExecution``. Outputs go to a sink that drops them.

Spark runs as its guide recommends for large state: RocksDB, changelog checkpoints, no counting of the total number of rows; it has as many state partitions as there are cores, as Sterna has workers. It also
writes its own logs in the quick way in which Sterna has them written on a local disk, which its guide does not mention: in its favour.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
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
from sterna.nexmark.running import DILATION
from sterna.nexmark.streams import Streams
from sterna.session import quick_local_logs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

END_SECONDS = 1800
MANY_KEYS = ("q3", "q4", "q6", "q8", "nbq8")
LEAST_RATIO = 5.0
PERSON_TO_ALL = 50
SIDES = ("sterna", "spark")


@dataclass(frozen=True)
class Size:
    """How much is measured.

    Attributes:
        each: events an epoch.
        epochs: how many there are.
        warm: how many of them do not count.
        rate: events for each second of event time, before dilation.
        in_flight: auctions open at a time, about.
    """

    each: int = 500_000
    epochs: int = 16
    warm: int = 6
    rate: float = 100_000.0
    in_flight: int = 20_000

    def files(self, folder: Path, dilation: float) -> Files:
        """The events."""
        shape = Shape(rate=self.rate, dilation=dilation, in_flight=self.in_flight)
        name = f"events-{self.each}-{self.rate:g}-{self.in_flight}-{dilation:g}"
        return Files(folder / name, shape, self.epochs, self.each)

    def longest(self, dilation: float) -> str:
        """How long an auction may be open at the most: Spark needs to know."""
        # An auction is open until about as many others have begun as are in flight, three in fifty events each; twice that at the most.
        seconds = 2 * self.in_flight * PERSON_TO_ALL / 3 / self.rate * dilation + 1
        return f"{int(seconds) + 1} seconds"


FULL = Size()
QUICK = Size(each=5_000, epochs=3, warm=1, rate=5_000.0, in_flight=200)


def compare(
    spark: SparkSession,
    root: Path,
    names: Sequence[str],
    size: Size,
    rounds: int,
    say: Say,
    fail: Callable[[str, Exception], None],
) -> list[dict[str, Any]]:
    """A line for each query; both take so many turns. A query that fails is told of, and costs only itself."""
    out = []
    for name in names:
        try:
            out.append(_compared(spark, root, name, size, rounds, say))
        except Exception as error:  # noqa: BLE001 - as the docstring says
            fail(f"queries, {name}", error)
    return out


def _compared(
    spark: SparkSession, root: Path, name: str, size: Size, rounds: int, say: Say
) -> dict[str, Any]:
    dilation = DILATION.get(name, 1.0)
    files = size.files(root, dilation).written()
    found: dict[str, list[list[float]]] = {side: [] for side in SIDES}
    for number in range(rounds):
        for side in SIDES if number % 2 == 0 else SIDES[::-1]:
            took = _measured(spark, root, side, name, files, size.longest(dilation))[size.warm :]
            found[side].append(took)
            say(f"{name}, round {number + 1}: {side} {_rate(size, took):,.0f} events a second")
    return _line(name, size, dilation, found)


def _rate(size: Size, took: list[float]) -> float:
    return size.each * len(took) / sum(took)


def _line(name: str, size: Size, dilation: float, found: dict[str, list[list[float]]]) -> dict[str, Any]:
    rates = {side: [_rate(size, took) for took in rounds] for side, rounds in found.items()}
    ratios = [mine / theirs for mine, theirs in zip(rates["sterna"], rates["spark"], strict=True)]
    line: dict[str, Any] = {"query": name, "events_per_epoch": size.each, "dilation": dilation}
    for side in SIDES:
        epochs = [took for rounds in found[side] for took in rounds]
        line[f"{side}_events_per_second"] = round(statistics.median(rates[side]))
        line[f"{side}_rounds"] = [round(rate) for rate in rates[side]]
        line[f"{side}_epoch_ms_p50"] = round(1e3 * statistics.median(epochs), 1)
    ratio = statistics.median(ratios)
    line |= {"ratio": round(ratio, 2), "ratios": [round(one, 2) for one in ratios]}
    if name in MANY_KEYS:
        line["at_least_5_times"] = ratio >= LEAST_RATIO
    if name in WHY_NOT:
        line["spark_note"] = WHY_NOT[name]
    return line


def _measured(
    spark: SparkSession, root: Path, side: str, name: str, files: Files, longest: str
) -> list[float]:
    """The seconds that each epoch with events took."""
    keep_reports(spark)
    frames = files.frames(spark)
    with tempfile.TemporaryDirectory(dir=root) as checkpoint:
        running = (
            _sterna(spark, name, frames, checkpoint)
            if side == "sterna"
            else _spark(spark, name, frames, checkpoint, longest)
        )
        with running as query:
            if not query.awaitTermination(END_SECONDS):
                raise TimeoutError(f"{side} was not done with {name} after {END_SECONDS} s")
            reports = [json.loads(progress.json) for progress in query.recentProgress]
    return [one["durationMs"]["triggerExecution"] / 1e3 for one in reports if _has_events(one, files)]


def _has_events(report: dict[str, Any], files: Files) -> bool:
    """Whether an epoch read some of the files: the last ones of a query may only let windows end."""
    return any(
        source["startOffset"] != source["endOffset"]
        for source in report["sources"]
        if str(files.folder) in source["description"]
    )


@contextlib.contextmanager
def _sterna(
    spark: SparkSession, name: str, frames: dict[str, DataFrame], checkpoint: str
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
    cores = str(spark.sparkContext.defaultParallelism)
    with (
        set_for_a_while(spark, {**SPARK_STATE, "spark.sql.shuffle.partitions": cores}),
        quick_local_logs(spark),
    ):
        answers = NATIVE[name](Frames(frames["person"], frames["auction"], frames["bid"], longest))
        writer = answers.writeStream.format("noop").outputMode("append")
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        try:
            yield query
        finally:
            query.stop()


@contextlib.contextmanager
def set_for_a_while(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Settings that a session has inside, and gets its own back after."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, held in before.items():
            if held is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, held)
