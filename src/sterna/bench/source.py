"""The input of all benchmarks: integers hashed to keys.

Spark's ``rate-micro-batch`` source counts 0, 1, 2, …, exactly ``rows`` of them an epoch, as fast as epochs
follow each other; it remembers its position in the checkpoint and goes on from there after a restart, also
with another number of rows. Keys are native expressions of that counter, so the input costs both sides the
same and next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F


class Keyed(Protocol):
    """Which key each count becomes."""

    @property
    def count(self) -> int:
        """How many keys there are."""

    @property
    def filled_at(self) -> int:
        """The count from which on the state has all keys."""

    def expression(self, value: Column) -> Column:
        """The key of a count."""


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


@dataclass(frozen=True)
class Turns:
    """Every key in its turn: ``count`` counts in a row have each key once, in an order that jumps about.

    Nothing but arithmetic, so every system can do it.

    ``count`` must be a power of two.

    Example:
        >>> [Turns(8).key(value) for value in range(9)]
        [0, 1, 2, 3, 4, 5, 6, 7, 0]
    """

    count: int
    multiplier: int = 2_654_435_761

    @property
    def filled_at(self) -> int:
        """See ``Keyed``."""
        return self.count

    def key(self, value: int) -> int:
        """The key of a count."""
        return value * self.multiplier % self.count

    def expression(self, value: Column) -> Column:
        """See ``Keyed``."""
        return F.pmod(value * F.lit(self.multiplier), F.lit(self.count))

    def times(self, key: Column, end: int) -> Column:
        """How often a key is among the counts below ``end``."""
        whole, rest = divmod(end, self.count)
        # The one count below ``count`` that gives a key: multiplied by the inverse of the multiplier.
        first = F.pmod(key * F.lit(pow(self.multiplier, -1, self.count)), F.lit(self.count))
        return F.lit(whole) + F.when(first < rest, 1).otherwise(0)


def stream(spark: SparkSession, rows: int, keys: Keys) -> DataFrame:
    """A streaming DataFrame with the column ``key`` and ``rows`` rows an epoch."""
    counts = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", rows)
        .option("numPartitions", spark.sparkContext.defaultParallelism)
        .load()
    )
    return counts.select(keys.expression(F.col("value")).alias("key"))
