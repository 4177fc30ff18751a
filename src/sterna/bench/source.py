"""The input of all benchmarks: integers hashed to keys.

Spark's ``rate-micro-batch`` source counts 0, 1, 2, …, exactly ``rows`` of them an epoch, as fast as epochs follow
each other; it remembers its position in the checkpoint and goes on from there after a restart, also with
another number of rows. Keys are native expressions of that counter, so the input costs both sides the same
and next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F


@dataclass(frozen=True)
class Keys:
    """Which key each count becomes.

    ``count`` keys, drawn uniformly by hash, except for the counts from ``fill_from`` on: these visit each key
    from ``known`` to ``count`` once, which brings the state to its full size without leaving a key to chance.
    Counts before ``fill_from`` are drawn from the keys that exist by then.
    """

    count: int
    known: int = 0
    fill_from: int = 0

    @property
    def filled_at(self) -> int:
        """The count from which on the state has all keys."""
        return self.fill_from + self.count - self.known

    def grown(self, count: int, position: int) -> Keys:
        """More keys, filled in from a position of the source on."""
        return Keys(count, self.count, position)

    def expression(self, value: Column) -> Column:
        """The key of a count."""
        uniform = F.pmod(F.xxhash64(value), F.lit(self.count))
        filling = F.when(value < self.filled_at, value - self.fill_from + self.known).otherwise(uniform)
        if not self.known:
            return filling
        return F.when(value < self.fill_from, F.pmod(F.xxhash64(value), F.lit(self.known))).otherwise(filling)


def stream(spark: SparkSession, rows: int, keys: Keys) -> DataFrame:
    """A streaming DataFrame with the column ``key`` and ``rows`` rows an epoch."""
    counts = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", rows)
        .option("numPartitions", spark.sparkContext.defaultParallelism)
        .load()
    )
    return counts.select(keys.expression(F.col("value")).alias("key"))
