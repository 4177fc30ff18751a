"""Dataflows for the properties: every operator, alone and wired together.

They are over a source with keys of any type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from sterna.dataflow import Dataflow
from sterna.operators import accumulators as agg
from sterna.operators.aggregate import Aggregate
from sterna.operators.base import Edge
from sterna.operators.fold import Fold, TableWish
from sterna.operators.mapped import Mapped
from sterna.operators.named import Named
from sterna.operators.state_machine import StateMachine, pickled
from sterna.operators.windows import Windows
from sterna.sources.recipe import Recipe
from twin.folds import (
    SECOND,
    TIME,
    as_v,
    both,
    chained,
    joining,
    meeting,
    passing,
    pickling,
    running,
    traced,
    windows,
)

KEY_TYPES = {"int": pa.int64(), "string": pa.string(), "double": pa.float64()}


def source_schema(key: pa.DataType) -> pa.Schema:
    return pa.schema(
        [
            ("k", key),
            ("g", pa.int32()),
            ("v", pa.int64()),
            ("x", pa.float64()),
            ("s", pa.string()),
            ("ts", TIME),
        ]
    )


def edge(number, schema, keys=("k",), time="ts", source=0, operator=None):
    return Edge(number, None if operator is not None else source, operator, tuple(keys), time, schema)


@dataclass(frozen=True)
class Case:
    """A dataflow, and how many sources it reads."""

    flow: Dataflow
    schema: pa.Schema

    @property
    def sources(self) -> int:
        return self.flow.sources


STATE = pa.schema([("n", pa.int64()), ("seen", pa.list_(pa.struct([("v", pa.int64()), ("s", pa.string())])))])


def _output(key):
    return pa.schema([("k", key), ("n", pa.int64()), ("text", pa.string()), ("ts", TIME)])


def _windows(name, one, key):
    wishes = {
        "total": TableWish("value", pa.schema([("total", pa.int64())])),
        "recent": TableWish("rows", pa.schema([("v", pa.int64())]), None, 5 * SECOND),
    }
    return Fold(name, (one,), windows, wishes, _output(key), pa.schema([("v", pa.int64())]))


def aggregates(key):
    """All functions, order and floats included: nothing can be combined."""
    schema = source_schema(key)
    named = {
        "n": agg.count(),
        "nv": agg.count("v"),
        "sv": agg.sum("v"),
        "sx": agg.sum("x"),
        "lo": agg.min("x"),
        "hi": agg.max("x"),
        "avg": agg.mean("x"),
        "one": agg.first("s"),
        "end": agg.last("s"),
        "top": agg.largest(2, "v"),
    }
    return Case(Dataflow((Aggregate("aggregate", (edge(0, schema),), named),), 1), schema)


def exact(key):
    """Functions that routers may combine, with a key of two columns."""
    schema = source_schema(key)
    named = {
        "n": agg.count(),
        "sv": agg.sum("v"),
        "lo": agg.min("x"),
        "hi": agg.max("s"),
        "top": agg.largest(3, "v"),
    }
    return Case(Dataflow((Aggregate("exact", (edge(0, schema, ("k", "g")),), named),), 1), schema)


def machine(key):
    schema = source_schema(key)
    return Case(
        Dataflow((StateMachine("machine", (edge(0, schema),), running, STATE, _output(key)),), 1), schema
    )


def objects(key):
    schema = source_schema(key)
    out = pa.schema([("size", pa.int64())])
    return Case(
        Dataflow((StateMachine("objects", (edge(0, schema, time=None),), pickling, pickled(), out),), 1),
        schema,
    )


def unary(key):
    schema = source_schema(key)
    return Case(Dataflow((_windows("windows", edge(0, schema), key),), 1), schema)


def binary(key):
    schema = source_schema(key)
    wishes = {
        "left": TableWish("rows", pa.schema([("v", pa.int64())]), None, 6 * SECOND),
        "right": TableWish("rows", pa.schema([("v", pa.int64())])),
    }
    edges = (edge(0, schema), edge(1, schema, source=1))
    return Case(Dataflow((Fold("join", edges, joining, wishes, _output(key), pa.schema([])),), 2), schema)


def chain(key):
    """Per record, then windows with notifications of their own, an epoch behind."""
    schema = source_schema(key)
    first = StateMachine("first", (edge(0, schema),), running, STATE, _output(key))
    second = StateMachine(
        "second",
        (edge(1, first.output, operator=0),),
        chained,
        pa.schema([("all", pa.string())]),
        _output(key),
    )
    third = pa.schema([*[f for f in second.output if f.name != "n"], pa.field("v", pa.int64())])
    rename = Fold("third", (edge(2, second.output, operator=1),), as_v, {}, third, pa.schema([]))
    return Case(
        Dataflow((first, second, rename, _windows("fourth", edge(3, third, operator=2), key)), 1), schema
    )


def rekeyed(key):
    """Keyed by one column, then by another: many keys of the first meet in one of the second."""
    schema = source_schema(key)
    out = pa.schema([("k", key), ("g", pa.int32()), ("n", pa.int64()), ("x", pa.float64())])
    first = StateMachine("first", (edge(0, schema),), passing, pa.schema([("n", pa.int64())]), out)
    named = {"n": agg.count(), "sx": agg.sum("x"), "one": agg.first("n"), "end": agg.last("n")}
    return Case(
        Dataflow((first, Aggregate("second", (edge(1, out, ("g",), None, operator=0),), named)), 1), schema
    )


def diamond(key):
    """One operator with two consumers, which meet again in a last one."""
    schema = source_schema(key)
    first = StateMachine("top", (edge(0, schema),), running, STATE, _output(key))
    trace = pa.schema([("all", pa.string())])
    left = StateMachine("left", (edge(1, first.output, operator=0),), chained, trace, _output(key))
    both = pa.schema([*[f for f in first.output if f.name != "n"], pa.field("v", pa.int64())])
    middle = Fold("middle", (edge(2, first.output, operator=0),), as_v, {}, both, pa.schema([]))
    right = _windows("right", edge(3, both, operator=2), key)
    edges = (edge(4, left.output, operator=1), edge(5, right.output, operator=3))
    met = {"met": TableWish("value", pa.schema([("trace", pa.string())]))}
    last = Fold("meeting", edges, meeting, met, _output(key), pa.schema([]))
    return Case(Dataflow((first, left, middle, right, last), 1), schema)


def skipping(key):
    """One source read by three operators under two keys.

    For the last one its rows pass through the others.
    """
    schema = source_schema(key)
    # With the key it comes from, so that rows of different workers can be put in order.
    out = pa.schema([("k", key), ("g", pa.int32()), ("n", pa.int64())])
    first = Aggregate("groups", (edge(0, schema, ("g",), None),), {"n": agg.count(), "v": agg.last("v")})
    second = Fold(
        "both",
        (edge(1, first.output, ("g",), None, operator=0), edge(2, schema, ("g",))),
        both,
        {},
        out,
        pa.schema([]),
    )
    edges = (edge(3, out, ("k",), None, operator=1), edge(4, schema))
    met = {"met": TableWish("value", pa.schema([("trace", pa.string())]))}
    last = Fold("meeting", edges, traced, met, _output(key), pa.schema([]))
    return Case(Dataflow((first, second, last), 1), schema)


def windowed(key):
    """Sliding windows, and what the fullest of each worker come to; their panes are shorter than a slide."""
    schema = source_schema(key)
    named = Named(
        {"n": agg.count(), "sx": agg.sum("x"), "one": agg.first("s"), "top": agg.largest(2, "v")},
        schema,
        ["k"],
        "aggregate",
    )
    fold = Windows(5 * SECOND, 2 * SECOND, (schema.field("k"),), "ts", named)
    told = Fold("told", (edge(0, schema),), fold, fold.tables, fold.output, fold.later)
    recipe = Recipe(tuple(told.output.names), told.output, told.output).then(
        lambda rows: rows.drop_columns("sx")
    )
    out = recipe.schema
    second = {"n": agg.sum("n"), "one": agg.first("one"), "end": agg.last("one")}
    last = Aggregate("by_window", (edge(1, out, ("window_end",), None, operator=0),), second)
    return Case(Dataflow((Mapped(told, recipe), last), 1), schema)


CASES: dict[str, Callable[[pa.DataType], Case]] = {
    one.__name__: one
    for one in (
        aggregates,
        exact,
        machine,
        objects,
        unary,
        binary,
        chain,
        rekeyed,
        diamond,
        skipping,
        windowed,
    )
}
