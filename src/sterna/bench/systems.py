"""What is compared: Sterna, Spark's ``groupBy().count()``, and Spark's ``transformWithStateInPandas``.

All of them count rows by key and write to a sink that drops everything. Spark runs as its guide recommends
for large state: RocksDB, changelog checkpoints, no counting of the total number of rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

import sterna
from sterna.session import quick_local_logs

SPARK_STATE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
}


@dataclass(frozen=True)
class Running:
    """A query that runs: Spark's handle, and how to stop it."""

    query: StreamingQuery
    stop: Callable[[], None]


class System(Protocol):
    """Anything that can count a stream by key."""

    @property
    def name(self) -> str:
        """How it is called in figures and messages."""

    def start(self, stream: DataFrame, checkpoint: str) -> Running:
        """Count the rows of each ``key``, going on from the checkpoint if there is one."""


@dataclass(frozen=True)
class Sterna:
    """Sterna's ``aggregate(n=count())``."""

    workers: int
    bins: int = 4096
    name: str = "sterna"

    def start(self, stream: DataFrame, checkpoint: str) -> Running:
        """See ``System``."""
        counts = sterna.read(stream).key_by("key").aggregate(n=sterna.count())
        query = counts.start(
            sink=sterna.sinks.noop(), checkpoint=checkpoint, bins=self.bins, workers=self.workers
        )
        return Running(query.streaming_query, query.stop)


@dataclass(frozen=True)
class SparkCount:
    """Spark's ``groupBy("key").count()``.

    With ``quick_logs`` its own logs are written as Sterna has Spark write them, which its guide does not
    mention.
    """

    partitions: int
    quick_logs: bool = False

    @property
    def name(self) -> str:
        """See ``System``."""
        return "spark_quick_logs" if self.quick_logs else "spark"

    def start(self, stream: DataFrame, checkpoint: str) -> Running:
        """See ``System``."""
        _configure(stream, self.partitions)
        writer = stream.groupBy("key").count().writeStream.format("noop").outputMode("update")
        writer = writer.option("checkpointLocation", checkpoint)
        with quick_local_logs(stream.sparkSession) if self.quick_logs else contextlib.nullcontext():
            query = writer.start()
        return Running(query, query.stop)


@dataclass(frozen=True)
class TransformWithState:
    """Spark's ``transformWithStateInPandas``: the stateful operator that Spark gives to Python."""

    partitions: int
    name: str = "transform_with_state"

    def start(self, stream: DataFrame, checkpoint: str) -> Running:
        """See ``System``."""
        from sterna.bench.counter import Counter  # needs protobuf and grpcio

        _configure(stream, self.partitions)
        counted = stream.groupBy("key").transformWithStateInPandas(
            statefulProcessor=Counter(),
            outputStructType="key long, n long",
            outputMode="Update",
            timeMode="None",
        )
        writer = counted.writeStream.format("noop").outputMode("update")
        query = writer.option("checkpointLocation", checkpoint).start()
        return Running(query, query.stop)


def _configure(stream: DataFrame, partitions: int) -> None:
    """Set what a Spark query reads when it starts.

    A checkpoint keeps the number of partitions it began with.
    """
    settings: dict[str, Any] = {**SPARK_STATE, "spark.sql.shuffle.partitions": str(partitions)}
    for name, value in settings.items():
        stream.sparkSession.conf.set(name, value)
