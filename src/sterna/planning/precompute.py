"""Values for a planner that looks ahead, computed beforehand: here, or as Spark jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sterna.planning.inputs import Inputs
from sterna.planning.matrix import Matrix
from sterna.planning.plan import Numbers
from sterna.planning.search import Effort, search
from sterna.planning.tasks import Each, Result, Task, in_turn
from sterna.planning.values import Values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTS = 8
"""Spark's tasks for each core."""


def precompute(
    sizes: Numbers,
    loads: Numbers,
    matrix: Matrix,
    tau: float,
    gamma: float,
    *,
    spark: SparkSession | None = None,
    effort: Effort | None = None,
    tell: Callable[[float], None] = lambda _: None,
) -> Values:
    """What partitionings of these bins will cost, given how worker counts follow each other.

    Args:
        sizes: how much state each bin has.
        loads: how much work each bin is.
        matrix: how worker counts follow each other.
        tau: how much more than the mean load a worker may have.
        gamma: what a later migration counts, against the one before it: from 0 to less than 1.
        spark: where the work is done; in this process unless given. The values are the same.
        effort: how many partitionings are looked at, where there are too many to look at all of them.
        tell: takes the part that is done, from 0 to 1.

    Raises:
        InvalidInput: an entry is wrong; it is named.
        Unbalanceable: for one of the worker counts no partitioning is that even; the least tau that is
            possible for all of them is named.
    """
    inputs = Inputs.of(sizes, loads, matrix, tau, gamma)
    return Values(inputs, search(inputs, effort, in_turn if spark is None else on_spark(spark), tell))


def on_spark(spark: SparkSession) -> Each:
    """Does tasks on Spark, some in each of Spark's tasks.

    There are as many of these as keep all cores busy until the end, though some take longer than others.
    """
    context = spark.sparkContext

    def each(function: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
        if not tasks:
            return []
        return (
            context.parallelize(tasks, min(len(tasks), PARTS * context.defaultParallelism))
            .map(function)
            .collect()
        )

    return each
