"""Small dataflows with folds that the test brings, and a twin to run them on."""

from __future__ import annotations

import pyarrow as pa

from sterna.dataflow import Dataflow
from sterna.engine.coordinator import Options
from sterna.operators import accumulators as agg
from sterna.operators.aggregate import Aggregate
from sterna.operators.base import Edge
from sterna.operators.fold import Fold, TableWish
from sterna.operators.state_machine import StateMachine
from sterna.sinks import memory
from sterna.testing import Twin

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("t", pa.int64())])
OUTPUT = pa.schema([("k", pa.int64()), ("v", pa.int64())])
SOURCE = Edge(0, 0, None, ("k",), "t", SCHEMA)


def rows(*values, time=0):
    """Rows (k, v), or keys alone, all at one time."""
    pairs = [one if isinstance(one, tuple) else (one, 1) for one in values]
    columns = [[k for k, _ in pairs], [v for _, v in pairs], [time] * len(pairs)]
    return pa.table([pa.array(column, pa.int64()) for column in columns], schema=SCHEMA)


def counts():
    return Dataflow((Aggregate("counts", (SOURCE,), {"n": agg.count(), "total": agg.sum("v")}),), 1)


def machine(fold, state=None, output=OUTPUT):
    return Dataflow(
        (StateMachine("machine", (SOURCE,), fold, state or pa.schema([("n", pa.int64())]), output),), 1
    )


def unary(fold, tables=None, output=OUTPUT):
    wishes = {"total": TableWish("value", pa.schema([("v", pa.int64())]))} if tables is None else tables
    return Dataflow((Fold("fold", (SOURCE,), fold, wishes, output, pa.schema([("v", pa.int64())])),), 1)


def chain(fold):
    """A per-record fold, and counts of what it puts out."""
    first = StateMachine("first", (SOURCE,), fold, pa.schema([("n", pa.int64())]), OUTPUT)
    second = Aggregate(
        "second", (Edge(1, None, 0, ("k",), None, OUTPUT),), {"n": agg.count(), "total": agg.sum("v")}
    )
    return Dataflow((first, second), 1)


def adding(key, record, state):
    state = (state or 0) + record["v"]
    return state, [(key, state)]


def start(flow, path, **options):
    """A twin with a memory sink and few workers; what is not an option of a query is one of the twin."""
    known = {name: options.pop(name) for name in list(options) if name in Options.__dataclass_fields__}
    sink = options.pop("sink", None) or memory()
    return Twin(flow, str(path), sink, Options(**{"bins": 16, "workers": 3, **known}), **options)


def totals(twin, operator=None):
    """The state of the first table by key."""
    table = twin.state(operator or twin.flow.operators[0].name)
    return {row["k"]: next(v for name, v in row.items() if name != "k") for row in table.to_pylist()}
