"""How large the demo is, what its records are, and what its state must be at the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sterna.bench.openloop import Records
from sterna.bench.source import Keys
from sterna.hashing import hash_keys

Counts = npt.NDArray[np.int64]
PIECE = 1_000_000


@dataclass(frozen=True)
class Setup:
    """Sizes and times.

    Attributes:
        keys: how many there are; all of them are in the state from the beginning.
        payload: length of the text that is kept of each, in bytes.
        bins: Sterna's bins.
        workers: how many there are at first.
        fewer: how many there are after a move: a quarter less.
        rate: records a second at most; less where the machine keeps up with less.
        probe: seconds in which to see how much it keeps up with, after as long a warm-up.
        warm: seconds before anything is measured.
        steady: seconds in which nothing moves.
        settle: seconds after each move.
        spark: whether Spark has its turn.
    """

    keys: int
    payload: int
    bins: int
    workers: int
    fewer: int
    rate: float
    probe: float
    warm: float
    steady: float
    settle: float
    spark: bool

    def records(self, *, filling: bool = False) -> Records:
        """The input: uniform over the keys; or, if it has to fill the state as well, first each key once."""
        return Records(Keys(self.keys, known=0 if filling else self.keys), self.payload)

    def initial(self, spark: SparkSession) -> DataFrame:
        """State in which each key has been seen once."""
        keyed = spark.range(0, self.keys, 1, spark.sparkContext.defaultParallelism).select(
            F.col("id").alias("key")
        )
        return self.records().with_payload(keyed).withColumn("n", F.lit(1).cast("long"))

    def counts(self, first: int, end: int) -> Counts:
        """The count of each key, once it has been seen in the filling and in the records [first, end).

        Spark has no part in this.
        """
        total = np.ones(self.keys, np.int64)
        for start in range(first, end, PIECE):
            numbers = pa.array(np.arange(start, min(start + PIECE, end)))
            keys = np.mod(hash_keys([numbers]).view(np.int64), self.keys)
            total += np.bincount(keys, minlength=self.keys)
        return total

    def wrong(self, state: DataFrame, expected: Counts) -> int:
        """In how many keys a state of ``key``, ``n`` and ``payload`` differs from what it should be."""
        right_text = self.records().with_payload(state.select("key", "n", F.col("payload").alias("found")))
        found = right_text.select("key", "n", F.col("found").eqNullSafe(F.col("payload")).alias("right"))
        return differences(found.toArrow().to_batches(), expected)


FULL = Setup(2_000_000, 100, 128, 8, 6, 20_000, 3.0, 4.0, 12.0, 2.0, spark=True)
QUICK = Setup(100_000, 100, 32, 4, 3, 5_000, 2.0, 1.0, 3.0, 1.0, spark=False)


def differences(batches: Iterable[pa.RecordBatch], expected: Counts) -> int:
    """In how many keys rows of (key, count, whether the rest is right) differ from the expected counts.

    >>> rows = pa.record_batch({"key": [1, 0, 1], "n": [7, 5, 7], "right": [True, False, True]})
    >>> # The first is not right, the second is there twice, the third is missing.
    >>> differences([rows], np.array([5, 7, 9]))
    3
    """
    seen, good = np.zeros(len(expected), np.int64), np.zeros(len(expected), np.int64)
    strange = 0
    for batch in batches:
        keys, counts, right = (batch.column(i).to_numpy(zero_copy_only=False) for i in range(3))
        known = (keys >= 0) & (keys < len(expected))
        strange += int(np.count_nonzero(~known))
        keys, counts, right = keys[known], counts[known], right[known].astype(bool)
        np.add.at(seen, keys, 1)
        np.add.at(good, keys, (counts == expected[keys]) & right)
    return strange + int(np.count_nonzero((seen != 1) | (good != 1)))
