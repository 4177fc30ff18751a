"""Spark's own way to change the number of state partitions: stop, rewrite the checkpoint, start again.

``StreamingCheckpointManager.repartition`` exists since Spark 4.2; on 4.1 there is no way at all, and
``check`` says so. PySpark has not made it public yet: the session hands it out under a name with an
underscore. It is used here only, to measure it.

Spark's ``stop`` interrupts the epoch that runs, and repartitioning then refuses (``Unfinished``): a sink
might get that epoch twice. Its ``enforce_exactly_once_sink=False`` skips the check, but a file source can't
go on from such a checkpoint (its offsets went back, and Spark 4.3 fails on that). So one does what Spark's
message says: let an ``availableNow`` run finish what was begun, and try again.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

MANAGER = "_streamingCheckpointManager"


class NotInThisSpark(Exception):
    """This version of Spark can't do it."""


class Unfinished(Exception):
    """The last epoch of the checkpoint was begun and not finished."""


def available(spark: SparkSession) -> bool:
    """Whether this Spark can repartition a checkpoint."""
    return hasattr(type(spark), MANAGER)


def check(spark: SparkSession) -> None:
    """Raises ``NotInThisSpark`` if this Spark can't repartition a checkpoint."""
    if not available(spark):
        raise NotInThisSpark(
            f"Spark {spark.version} can't change the number of state partitions of a checkpoint, not even "
            "offline: StreamingCheckpointManager.repartition exists since Spark 4.2"
        )


def repartition(spark: SparkSession, checkpoint: str, partitions: int) -> None:
    """Rewrites the checkpoint of a stopped query for so many state partitions.

    Raises ``Unfinished`` if its last epoch was not finished.
    """
    check(spark)
    try:
        getattr(spark, MANAGER).repartition(checkpoint, partitions)
    except Exception as error:
        if "LAST_BATCH_FAILED" in str(error):
            raise Unfinished(f"the last epoch in {checkpoint} was not finished") from error
        raise
