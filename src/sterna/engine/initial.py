"""Initial state: a batch DataFrame, put through the same exchange as any epoch, before the first one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType, DoubleType, FloatType, IntegralType

from sterna.dataflow import Dataflow
from sterna.engine.apply import Applying
from sterna.engine.coordinator import Coordinator
from sterna.engine.epoch import Tasks, plain_seats
from sterna.engine.route import Routing
from sterna.engine.spark import SETTINGS, SparkRunner, source_columns
from sterna.errors import InvalidInput
from sterna.operators.load import Load
from sterna.session import settings_kept
from sterna.state.refs import from_changes


def load_initial_state(
    coordinator: Coordinator, spark: Any, local: str | None, frames: dict[str, Any]
) -> None:
    """Loads the state of each named operator.

    The manifest before epoch 0 refers to it once all of it is durable.
    """
    state = {}
    for name, given in frames.items():
        operator = coordinator.flow.operators[coordinator.flow.index(name)]
        load = Load(operator)
        schema = load.edges[0].schema
        missing = [item.name for item in schema if item.name not in given.columns]
        if missing:
            raise InvalidInput(
                f"the initial state of operator {name!r} needs the columns {schema.names}; missing are "
                f"{missing}"
            )
        frame = _fitting(given, schema, name)
        if getattr(given, "isStreaming", False):
            raise InvalidInput(
                f"the initial state of operator {name!r} must be a batch DataFrame, not a streaming one"
            )
        flow = Dataflow((load,), 1)
        configuration = coordinator.last.configurations[name]
        workers = range(configuration.workers)
        seats = plain_seats((configuration.workers,))
        tables = [spec.name for spec in load.tables]
        task = Applying(
            operator=0,
            epoch=-1,
            incarnation=coordinator.incarnation.number,
            refs={worker: {table: [] for table in tables} for worker in workers},
            changes={},
            frontier=None,
            previous=None,
            configurations=(configuration,),
            seats=seats,
            horizons={},
        )
        tasks = Tasks(-1, Routing(-1, (configuration,), seats, None), ((),), ({},), (task,))
        prepared = frame.select(*source_columns(frame, 0, flow))
        with settings_kept(spark, SETTINGS):
            receipts = SparkRunner(flow, coordinator.store, local).run(prepared, tasks)
        state[name] = {
            receipt["worker"]: {table: from_changes(refs, []) for table, refs in receipt["tables"].items()}
            for receipt in receipts
        }
    coordinator.load_initial(state)


def _fitting(frame: Any, schema: pa.Schema, operator: str) -> Any:
    """The frame with its columns in the types of the state.

    Keys of another type would have other hashes, and never be found.
    """
    for item in from_arrow_schema(schema):
        found = frame.schema[item.name].dataType
        if found == item.dataType:
            continue
        if not _widens(found, item.dataType):
            raise InvalidInput(
                f"the initial state of operator {operator!r}: column {item.name!r} is {found.simpleString()} "
                f"and must be {item.dataType.simpleString()}; cast it"
            )
        column = F.col("`" + item.name.replace("`", "``") + "`")
        frame = frame.withColumn(item.name, column.cast(item.dataType))
    return frame


def _widens(found: DataType, wanted: DataType) -> bool:
    """Whether every value of one type is one of the other."""
    if isinstance(found, IntegralType) and isinstance(wanted, IntegralType):
        order = ["tinyint", "smallint", "int", "bigint"]
        return order.index(found.simpleString()) <= order.index(wanted.simpleString())
    if isinstance(wanted, DoubleType):
        return isinstance(found, FloatType) or found.simpleString() in ("tinyint", "smallint", "int")
    # Strings, binaries and timestamps differ in how they are written down, not in what they are; nested types
    # only in whether nulls may be in them.
    return found.simpleString() == wanted.simpleString()
