"""One run of a NEXMark query on Sterna, or on Spark's own operators: over all files, from an empty state.

Spark runs as its guide recommends for large state: RocksDB, changelog checkpoints, no counting of the total
number of rows; it has as many state partitions as there are cores, as Sterna has workers. Two things are in
its favour, though its guide does not mention them: it writes its own logs in the quick way in which Sterna
has them written on a local disk, and a join may keep its state in the format that Spark 4.3 has for it
(version 4, which finds rows that are too old without looking at all rows).
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

import sterna
from sterna.bench.acknowledge import keep_reports
from sterna.bench.peers.events import Files
from sterna.bench.peers.loads import Load
from sterna.bench.peers.pace import Run, paced, spark_state, with_events
from sterna.bench.systems import SPARK_STATE
from sterna.nexmark.native import NATIVE, Frames
from sterna.nexmark.queries import QUERIES
from sterna.operators.base import LATER
from sterna.session import quick_local_logs, set_for_a_while

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

END_SECONDS = 1800
JOINING = ("q3", "q4", "q6", "q8", "nbq8", "nbqx")
JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"
JOIN_FORMATS = ("2", "4")
"""The usual one and the newest."""
NEWEST_SINCE = (4, 3)


def join_formats(name: str, version: str) -> tuple[str, ...]:
    """The formats in which this version of Spark can keep the state of a query's join, if it has one.

    Example:
        >>> join_formats("q8", "4.3.0"), join_formats("q8", "4.2.1"), join_formats("q5", "4.3.0")
        (('2', '4'), ('2',), ())
    """
    if name not in JOINING:
        return ()
    numbers = tuple(int(number) for number in version.split(".")[:2])
    return JOIN_FORMATS if numbers >= NEWEST_SINCE else JOIN_FORMATS[:1]


def on_sterna(spark: SparkSession, root: Path, name: str, files: Files, load: Load, *, look: bool) -> Run:
    """A run on Sterna; its state is looked at afterwards if asked for."""
    keep_reports(spark)
    with tempfile.TemporaryDirectory(dir=root, ignore_cleanup_errors=True) as checkpoint:
        query = QUERIES[name](files.streams(spark)).start(
            checkpoint=checkpoint,
            workers=spark.sparkContext.defaultParallelism,
            watermark_delay=0,
            trigger={"availableNow": True},
        )
        try:
            reports = _ended(query.streaming_query, "sterna", name, files)
            query.await_termination(END_SECONDS)
            state = sterna_state(query, int(reports[-1]["batchId"])) if look else []
        finally:
            query.stop()
    return Run(*paced(reports, load), state)


def sterna_state(query: sterna.Query, epoch: int) -> list[dict[str, Any]]:
    """The rows and the keys of each table of each operator after an epoch."""
    out = []
    for operator in query.flow.operators:
        for table in operator.tables:
            if table.name != LATER:
                frame = query.state(operator.name, epoch, table.name)
                keys = F.count_distinct(*(F.col(name) for name in table.keys.names))
                rows, distinct = frame.agg(F.count(F.lit(1)), keys).first()
                out.append({"operator": operator.name, "table": table.name, "rows": rows, "keys": distinct})
    return out


def on_spark(
    spark: SparkSession, root: Path, name: str, files: Files, load: Load, join_format: str | None = None
) -> Run:
    """A run on Spark's own operators, with a join's state in a format if one is given."""
    keep_reports(spark)
    settings = {**SPARK_STATE, "spark.sql.shuffle.partitions": str(spark.sparkContext.defaultParallelism)}
    if join_format is not None:
        settings[JOIN_FORMAT] = join_format
    with (
        tempfile.TemporaryDirectory(dir=root, ignore_cleanup_errors=True) as checkpoint,
        set_for_a_while(spark, settings),
        quick_local_logs(spark),
    ):
        answers = native(spark, name, files, load)
        writer = answers.writeStream.format("noop").outputMode("append")
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        try:
            reports = _ended(query, "spark", name, files)
        finally:
            query.stop()
    return Run(*paced(reports, load), spark_state(reports), join_format)


def native(spark: SparkSession, name: str, files: Files, load: Load) -> DataFrame:
    """The answers of Spark's own version of a query."""
    frames = files.frames(spark)
    return NATIVE[name](Frames(frames["person"], frames["auction"], frames["bid"], load.longest))


def _ended(query: StreamingQuery, side: str, name: str, files: Files) -> list[Any]:
    """Waits for the end, and returns the reports of the epochs with events."""
    if not query.awaitTermination(END_SECONDS):
        raise TimeoutError(f"{side} was not done with {name} after {END_SECONDS} s")
    return with_events([json.loads(one.json) for one in query.recentProgress], str(files.folder))
