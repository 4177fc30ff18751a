"""The one Spark job of an epoch: route, exchange, apply, for each operator in turn, ending in the receipts.

```
source rows ─▶ RouteTask ──┐
hello rows ────────────────┼─▶ exchange by slot ─▶ ApplyTask ─▶ (exchange ─▶ ApplyTask)* ─▶ receipts
ranges(n) ─▶ ExtractTask ──┘
```
Rows for a later operator pass through the earlier ones. Adaptive execution is switched off for this plan, in the query's own
session: it would merge the slots. A failed task fails the job, and the error that a fold raised comes out with the user's traceback.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DoubleType, FloatType, IntegerType, StructField, StructType

from sterna.dataflow import Dataflow
from sterna.engine.epoch import Tasks
from sterna.engine.messages import HELLO, Message, parse
from sterna.engine.process import ApplyTask, ExtractTask, RouteTask, ship
from sterna.errors import FoldError, InvalidInput, StateError, SternaError
from sterna.operators.aggregate import Aggregate
from sterna.operators.base import hash_name
from sterna.state.store import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from sterna.engine.placement import Pinned, Placer

ARROW_ROWS = 1 << 17
SPARK_SCHEMA = StructType([StructField("slot", IntegerType()), StructField("body", BinaryType())])
SETTINGS = (
    "spark.sql.adaptive.enabled",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.shuffle.partitions",
)


class SparkRunner:
    """Builds and runs the job of each epoch of one query."""

    def __init__(self, flow: Dataflow, store: Store, local: str | None, placer: Placer | None = None) -> None:
        self.flow = flow
        self._shared = ship(flow, store, local)
        self._placer = placer
        self._hello: tuple[Any, DataFrame] | None = None
        self._prepared: Any = None

    def run(self, batch: DataFrame, tasks: Tasks) -> list[dict[str, Any]]:
        """Runs an epoch's job and returns its receipts."""
        spark = batch.sparkSession
        slots = max(tasks.workers)
        self._configure(spark, slots)
        routed = self._source(batch, tasks).mapInArrow(RouteTask(self._shared, tasks.routing), SPARK_SCHEMA)
        frame = routed.union(self._hello_rows(spark, tasks))
        for index, task in enumerate(tasks.applying):
            extractions = tasks.extractions[index]
            if extractions:
                frame = frame.union(self._extraction(spark, tasks, index))
            frame = self._exchange(frame, slots).mapInArrow(ApplyTask(self._shared, task), SPARK_SCHEMA)
        try:
            rows = frame.collect()
        except Exception as error:
            raise translated(error) from error
        return [parse(row[1]).json() for row in rows]

    def _configure(self, spark: SparkSession, slots: int) -> None:
        if self._prepared == slots:
            return
        # The query's own session, a clone: the user's stays as it is.
        for name, value in zip(SETTINGS, ("false", str(ARROW_ROWS), str(slots)), strict=True):
            spark.conf.set(name, value)
        self._prepared = slots

    def _source(self, batch: DataFrame, tasks: Tasks) -> DataFrame:
        """The rows of all sources with a hash for each edge, or Spark's own partial aggregates of them."""
        if not tasks.routing.native:
            return batch
        (edge,) = (edge for edge in self.flow.edges if edge.source is not None)
        operator = self.flow.operators[self.flow.reader(edge)]
        assert isinstance(operator, Aggregate)
        functions = operator.native()
        assert functions is not None
        aggregates = [
            _native(function, column if column == "*" else self.flow.wire_name(0, column)).alias(
                f"a{position}"
            )
            for position, (_, function, column) in enumerate(functions)
        ]
        keys = [self.flow.wire_name(0, key) for key in edge.keys]
        return batch.groupBy(hash_name(edge), *keys).agg(*aggregates)

    def _hello_rows(self, spark: SparkSession, tasks: Tasks) -> DataFrame:
        key = (tasks.routing.seats, tasks.workers)
        if self._hello is None or self._hello[0] != key:
            hellos = [
                Message(tasks.routing.seats[index][worker], HELLO, index, worker)
                for index, workers in enumerate(tasks.workers)
                for worker in range(workers)
            ]
            values = ", ".join(f"({m.slot}, X'{m.header().hex()}')" for m in hellos)
            frame = spark.sql(f"SELECT slot, body FROM VALUES {values} AS t(slot, body)")  # noqa: S608 - our own numbers
            self._hello = (key, frame.coalesce(1))
        return self._hello[1]

    def _extraction(self, spark: SparkSession, tasks: Tasks, index: int) -> DataFrame:
        """Reads what moves: at the slots of the workers that send, where slots are pinned."""
        extractions = tasks.extractions[index]
        by_row: dict[int, list[int]] = defaultdict(list)
        for position, extraction in enumerate(extractions):
            row = position
            if self._placer is not None and self._pinned is not None:
                row = self._placer.seat_of_leaver(index, extraction.worker)
            by_row[row].append(position)
        task = ExtractTask(
            self._shared, extractions, dict(by_row), tasks.routing.seats[index], tasks.horizons[index]
        )
        if self._pinned is not None:
            return self._pinned.slots().mapInArrow(task, SPARK_SCHEMA)
        return spark.range(0, len(extractions), 1, len(extractions)).mapInArrow(task, SPARK_SCHEMA)

    @property
    def _pinned(self) -> Pinned | None:
        return None if self._placer is None else self._placer.pinned

    def _exchange(self, frame: DataFrame, slots: int) -> DataFrame:
        if self._pinned is not None:
            return self._pinned.exchange(frame)
        return frame.repartitionById(slots, "slot")


@contextmanager
def settings_kept(spark: SparkSession) -> Iterator[None]:
    """Puts the settings that a runner changes back, for a session that is the user's."""
    before = {name: spark.conf.get(name, None) for name in SETTINGS}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)


def source_columns(frame: DataFrame, source: int, flow: Dataflow) -> list[Column]:
    """The columns of a source that its readers need, under their wire names, keys normalised, and a hash for each edge."""
    keys = {key for _, edge in flow.readers(source) for key in edge.keys}
    columns = {}
    for name in flow.needed(source):
        column = F.col("`" + name.replace("`", "``") + "`")
        kind = frame.schema[name].dataType
        if name in keys and isinstance(kind, DoubleType | FloatType):
            zero = F.lit(0.0).cast(kind)
            column = F.when(F.isnan(column), F.lit(float("nan")).cast(kind)).otherwise(column + zero)
        columns[name] = column
    hashes = [
        F.xxhash64(*[columns[key] for key in edge.keys]).alias(hash_name(edge))
        for _, edge in flow.readers(source)
    ]
    return [*hashes, *(column.alias(flow.wire_name(source, name)) for name, column in columns.items())]


def unioned(frames: list[DataFrame], flow: Dataflow, tick: DataFrame | None) -> DataFrame:
    """All sources as one streaming DataFrame, tagged if there are several, and the tick source."""
    parts = []
    for source, frame in enumerate(frames):
        columns = source_columns(frame, source, flow)
        if len(frames) > 1:
            columns = [F.lit(source).alias("_source"), *columns]
        parts.append(frame.select(*columns))
    if tick is not None:
        types = parts[0].schema
        parts.append(
            tick.where(F.lit(False)).select(
                *[F.lit(None).cast(item.dataType).alias(item.name) for item in types]
            )
        )
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part, allowMissingColumns=True)
    return whole


def _native(function: str, column: str) -> Column:
    if column == "*":
        return F.count(F.lit(1))
    return {"count": F.count, "sum": F.sum, "min": F.min, "max": F.max}[function](column)


KINDS: dict[str, type[SternaError]] = {
    "FoldError": FoldError,
    "StateError": StateError,
    "InvalidInput": InvalidInput,
}


def translated(error: BaseException) -> BaseException:
    """The error that a task raised on purpose, if it did; otherwise the error itself."""
    text = str(error)
    match = re.search(r"sterna\.errors\.(\w+): (.*)", text, re.DOTALL)
    if match is None or match.group(1) not in KINDS:
        return error
    # Spark appends its own lines after the worker's traceback.
    message = re.split(r"\n\s*(?:SQLSTATE|at org\.apache|JVM stacktrace|Driver stacktrace)", match.group(2))[
        0
    ]
    return KINDS[match.group(1)](message.strip())
