"""The anchor: a tiny DataFrame with one row and one partition a slot, cached on the executors.

A slot's key is chosen so that Spark's hash partitioning sends it to a partition of its own. Once an anchor is
made, it is asked where each slot landed.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from sterna.engine.where import executor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPREAD_SECONDS = 0.3


@dataclass(frozen=True)
class Slot:
    """A partition that is pinned to an executor."""

    key: int
    executor: str

    @property
    def host(self) -> str:
        """The host of the executor."""
        return self.executor.rsplit("/", 1)[0]


def _probe(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        where = pa.array([executor()] * batch.num_rows, pa.string())
        yield pa.RecordBatch.from_arrays([batch.column(0), where], names=["slot", "executor"])


def _spread(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    # Slow on purpose: while one executor is busy with a slot, the others get the next ones.
    for batch in batches:
        time.sleep(SPREAD_SECONDS)
        yield batch


class Anchor:
    """The cached DataFrame of a number of slots."""

    def __init__(self, spark: SparkSession, count: int) -> None:
        self.count = count
        self._spark = spark
        spark.conf.set("spark.sql.shuffle.partitions", str(count))
        candidates = spark.range(0, 40 * count + 40, 1, 1).select(F.col("id").cast("int").alias("slot"))
        rows = candidates.select("slot", F.pmod(F.hash("slot"), F.lit(count)).alias("partition")).collect()
        keys: dict[int, int] = {}
        for row in rows:
            keys.setdefault(row["partition"], row["slot"])
        chosen = sorted(keys.values())
        # Spark would take two anchors of one plan for the same cached data, so each has a mark of its own.
        marked = (
            candidates.where(F.col("slot").isin(chosen))
            .withColumn("mark", F.lit(uuid.uuid4().hex))
            .select("slot")
        )
        base = marked.repartition(count, "slot").mapInArrow(_spread, "slot int")
        # mapInArrow forgets how its input was partitioned; a join needs to know, so say it again (each row
        # stays where it is).
        self.frame = base.repartition(count, "slot").persist()
        self.slots = [
            Slot(row["slot"], row["executor"])
            for row in self.frame.mapInArrow(_probe, "slot int, executor string").collect()
        ]

    def close(self) -> None:
        """Releases the slots."""
        self.frame.unpersist()
