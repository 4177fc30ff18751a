"""The one Spark job of an epoch: route, exchange, apply, for each operator in turn, ending in the receipts.

```
source rows ─▶ RouteTask ──┐
                           ├─▶ exchange by slot ─▶ ApplyTask ─▶ (exchange ─▶ ApplyTask)* ─▶ receipts
ranges(n) ─▶ ExtractTask ──┘
```
State that moves is read by tasks of its own, or, where it is little, by the routing tasks, of which each
reads a part. The first routing task greets all workers. Without rows Spark may run no routing task at all:
then, or where that is likely, the greetings are a third branch. Rows for a later operator pass through the
earlier ones. Adaptive execution is switched off for this plan, in the query's own session: it would merge the
slots. A failed task fails the job, and the error that a fold raised comes out with the user's traceback.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import BinaryType, DoubleType, FloatType, IntegerType, StructField, StructType

from sterna.dataflow import Dataflow
from sterna.engine.epoch import Tasks
from sterna.engine.messages import parse
from sterna.engine.process import ApplyTask, Carried, ExtractTask, RouteTask, SinkTask, ship
from sterna.engine.route import COUNTED, Routing, hellos
from sterna.errors import FoldError, InvalidInput, StateError, SternaError
from sterna.operators.base import hash_name
from sterna.sources.tick import spark_path
from sterna.state.store import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

    from sterna.engine.placement import Pinned, Placer

ARROW_ROWS = 1 << 17
ARROW_BYTES = 4 << 20
"""How much Spark puts into a batch for Python.

It doubles the memory for a batch while it fills it, and copies what is there: with its 64 MB, 72 MB of
bodies took 196 ms of its processors' time to hand to Python, with 4 MB they take 79.
"""
JOB_ATTEMPTS = 4
CARRIED_BYTES = 16 << 20
"""State up to this size is read by routing tasks.

A task of its own, and its part of the plan, would take longer than reading it: some 100 ms, and 3 MB are read
in 12.
"""
PART_BYTES = 256 << 10
"""How much a routing task reads at least, where there is so much."""
SPARK_SCHEMA = StructType([StructField("slot", IntegerType()), StructField("body", BinaryType())])
SETTINGS = (
    "spark.sql.adaptive.enabled",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.execution.arrow.maxBytesPerBatch",
    "spark.sql.shuffle.partitions",
)


@dataclass(frozen=True)
class Functions:
    """The user's DataFrame functions: before derived sources, and before the sink."""

    derived: tuple[Callable[[DataFrame], DataFrame], ...] = ()
    final: Callable[[DataFrame], DataFrame] | None = None


class SparkRunner:
    """Builds and runs the job of each epoch of one query."""

    def __init__(
        self,
        flow: Dataflow,
        store: Store,
        local: str | None,
        placer: Placer | None = None,
        functions: Functions | None = None,
    ) -> None:
        self.flow = flow
        self._store = store
        self._shared = ship(flow, store, local)
        self._placer = placer
        self._functions = functions or Functions()
        self._hello: dict[Any, DataFrame] = {}
        self._prepared: Any = None
        self._silent = True  # whether the last epoch had no rows: then this one may have none either
        self._routers = 1  # how many routing tasks the last epoch had

    def relaunched(self) -> None:
        """Spark's query is started, with a session of its own: what was made in the last one is of no use."""
        self._prepared = None
        self._hello.clear()

    def run(self, batch: DataFrame, tasks: Tasks) -> list[dict[str, Any]]:
        """Runs an epoch's job and returns the receipts.

        There are several jobs where DataFrame functions stand between operators.
        """
        spark = batch.sparkSession
        self._configure(spark, max(tasks.workers))
        receipts: list[dict[str, Any]] = []
        try:
            for members in self.flow.phases():
                receipts += self._phase(spark, batch, tasks, tuple(members), receipts)
            if self.flow.final is not None:
                self._finish(spark, tasks, receipts)
        except Exception as error:
            raise translated(error) from error
        self._store.delete([r["stage"]["file"] for r in receipts if "stage" in r])
        return receipts

    def _phase(
        self,
        spark: SparkSession,
        batch: DataFrame,
        tasks: Tasks,
        members: tuple[int, ...],
        receipts: list[dict[str, Any]],
    ) -> list[dict[str, Any]]:
        routing = tasks.routing
        if len(members) < len(self.flow.operators):
            routing = replace(routing, members=members)
        source = self._source(spark, batch, tasks, members, receipts)
        if len(members) == len(self.flow.operators) and not self._silent:
            found = self._carrying(spark, tasks, members, source)
            if found:
                return found
        # No routing task ran. What the other tasks did, if anything, is an attempt that nobody knows of.
        routed = source.mapInArrow(RouteTask(self._shared, routing, (), 0), SPARK_SCHEMA)
        found = self._applied(spark, tasks, members, routed.union(self._hello_rows(spark, routing)))
        self._learn(found)
        return found

    def _carrying(
        self, spark: SparkSession, tasks: Tasks, members: tuple[int, ...], source: DataFrame
    ) -> list[dict[str, Any]]:
        """The receipts of a job whose routing tasks greet the workers, and read what moves if it is little.

        As many of them share the reading as there were in the last epoch. If there are fewer this time, some
        of it was not read: that job was an attempt that nobody knows of, and the first one reads all.
        """
        carried, found = self._carried(tasks), []
        left = replace(tasks, extractions=((),) * len(tasks.extractions)) if carried else tasks
        moving = sum(one.bytes for one, _ in carried)
        for parts in (max(1, min(self._routers, moving // PART_BYTES)), 1):
            routed = source.mapInArrow(RouteTask(self._shared, tasks.routing, carried, parts), SPARK_SCHEMA)
            found = self._applied(spark, left, members, routed)
            self._learn(found)
            if not found or not carried or _routed(found, "sent") == parts:
                break
        return found

    def _learn(self, receipts: list[dict[str, Any]]) -> None:
        """Takes note of who routed in this epoch, and whether there was anything to route."""
        self._silent = not _routed(receipts, "rows")
        self._routers = max(1, _routed(receipts, "tasks"))

    def _carried(self, tasks: Tasks) -> Carried:
        """What routing tasks extract.

        That is everything, if it is little and need not be read where its worker sits.
        """
        found = [one for some in tasks.extractions for one in some]
        if self._pinned is not None or sum(one.bytes for one in found) > CARRIED_BYTES:
            return ()
        return tuple((one, tasks.horizons[one.operator]) for one in found)

    def _applied(
        self, spark: SparkSession, tasks: Tasks, members: tuple[int, ...], frame: DataFrame
    ) -> list[dict[str, Any]]:
        """Lets the operators apply what is routed; the receipts, none if nobody greeted the workers."""
        for index in members:
            if tasks.extractions[index]:
                frame = frame.union(self._extraction(spark, tasks, index))
            frame = self._exchange(frame, max(tasks.workers))
            frame = frame.mapInArrow(ApplyTask(self._shared, tasks.applying[index]), SPARK_SCHEMA)
        return [parse(row[1]).json() for row in collected(frame)]

    def _staged(self, spark: SparkSession, operator: int, receipts: list[dict[str, Any]]) -> DataFrame:
        """What an operator has put out in this epoch."""
        files = [r["stage"]["file"] for r in receipts if r["operator"] == operator and "stage" in r]
        schema = from_arrow_schema(self.flow.operators[operator].output)
        if not files:
            return spark.createDataFrame([], schema)
        return spark.read.schema(schema).parquet(*[spark_path(self._store, file) for file in files])

    def _finish(self, spark: SparkSession, tasks: Tasks, receipts: list[dict[str, Any]]) -> None:
        """Applies the DataFrame function before the sink and lets tasks write its rows."""
        assert tasks.sink is not None
        assert self._functions.final is not None
        assert self.flow.final is not None
        last = len(self.flow.operators) - 1
        frame = self._functions.final(self._staged(spark, last, receipts))
        task = SinkTask(tasks.sink, self.flow.final, tasks.epoch, tasks.incarnation)
        parts = [json.loads(row[0]) for row in collected(frame.mapInArrow(task, "part string"))]
        home = next(r for r in receipts if r["operator"] == last)
        home["parts"] = parts
        home["out"] = sum(part.get("rows", 0) for part in parts)

    def _configure(self, spark: SparkSession, slots: int) -> None:
        if self._prepared == slots:
            return
        values = ("false", str(ARROW_ROWS), str(ARROW_BYTES), str(slots))
        # The query's own session, a clone: the user's stays as it is.
        for name, value in zip(SETTINGS, values, strict=True):
            spark.conf.set(name, value)
        self._prepared = slots

    def _source(
        self,
        spark: SparkSession,
        batch: DataFrame,
        tasks: Tasks,
        members: tuple[int, ...],
        receipts: list[dict[str, Any]],
    ) -> DataFrame:
        """The rows that this phase routes.

        They are those of the sources, and of earlier operators through DataFrame functions.
        """
        read = {
            edge.source
            for index in members
            for edge in self.flow.operators[index].edges
            if edge.source is not None
        }
        derived = sorted(source for source in read if source >= self.flow.sources)
        if not derived:
            return self._combined(batch, tasks)
        frames = [batch] if len(derived) < len(read) else []
        for source in derived:
            position = source - self.flow.sources
            frame = self._functions.derived[position](
                self._staged(spark, self.flow.derived[position], receipts)
            )
            frames.append(
                frame.select(F.lit(source).alias("_source"), *source_columns(frame, source, self.flow))
            )
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionByName(frame, allowMissingColumns=True)
        return whole

    def _combined(self, batch: DataFrame, tasks: Tasks) -> DataFrame:
        """The rows of the sources, or Spark's own partial aggregates of them."""
        if not tasks.routing.native:
            return batch
        (edge,) = (edge for edge in self.flow.edges if edge.source is not None)
        operator = self.flow.operators[self.flow.reader(edge)]
        functions = operator.native()
        assert functions is not None
        aggregates = [
            _native(function, column if column == "*" else self.flow.wire_name(0, column)).alias(
                f"a{position}"
            )
            for position, (_, function, column) in enumerate(functions)
        ]
        keys = [self.flow.wire_name(0, key) for key in edge.keys]
        return batch.groupBy(hash_name(edge), *keys).agg(F.count(F.lit(1)).alias(COUNTED), *aggregates)

    def _hello_rows(self, spark: SparkSession, routing: Routing) -> DataFrame:
        key = (routing.seats, tuple(c.workers for c in routing.configurations), routing.members)
        if key not in self._hello:
            if len(self._hello) >= len(self.flow.phases()):
                self._hello.clear()
            values = ", ".join(f"({m.slot}, X'{m.header().hex()}')" for m in hellos(routing))
            frame = spark.sql(f"SELECT slot, body FROM VALUES {values} AS t(slot, body)")  # noqa: S608 - our own numbers
            self._hello[key] = frame.coalesce(1)
        return self._hello[key]

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


def _routed(receipts: list[dict[str, Any]], count: str) -> int:
    """One of the routing tasks' counts, of all of them."""
    return sum(int(receipt.get("routed", {}).get(count, 0)) for receipt in receipts)


def source_columns(frame: DataFrame, source: int, flow: Dataflow) -> list[Column]:
    """The columns of a source that its readers need, and a hash for each edge whose rows they are.

    Columns are under their wire names, and keys are normalised.
    """
    plain = [edge for _, edge in flow.readers(source) if edge.recipe is None]
    keys = {key for edge in plain for key in edge.keys}
    columns = {}
    for name in flow.needed(source):
        column = F.col("`" + name.replace("`", "``") + "`")
        kind = frame.schema[name].dataType
        if name in keys and isinstance(kind, DoubleType | FloatType):
            zero = F.lit(0.0).cast(kind)
            column = F.when(F.isnan(column), F.lit(float("nan")).cast(kind)).otherwise(column + zero)
        columns[name] = column
    hashes = [F.xxhash64(*[columns[key] for key in edge.keys]).alias(hash_name(edge)) for edge in plain]
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


def collected(frame: DataFrame) -> list[Row]:
    """The rows of a job; it is run again where Spark gives up because an executor was lost.

    When a stage has to be run again after the next one has begun, Spark fails the job, for all it knows the
    rows may be others this time. Ours are the same, whichever attempt they come from.
    """
    for _ in range(JOB_ATTEMPTS - 1):
        try:
            return frame.collect()
        except Exception as error:
            if "with indeterminate output was failed and retried" not in str(error):
                raise
    return frame.collect()


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
