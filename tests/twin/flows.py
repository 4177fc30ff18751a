"""Dataflows for the properties: every operator, alone and wired together, over a source with keys of any type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sterna.dataflow import Dataflow
from sterna.operators import accumulators as agg
from sterna.operators.aggregate import Aggregate
from sterna.operators.base import Edge
from sterna.operators.fold import Fold, TableWish
from sterna.operators.state_machine import StateMachine, pickled

TIME = pa.timestamp("us", "UTC")
SECOND = 1_000_000
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


# Folds. Each must treat a key alike whatever other keys are at its worker.


def running(key, record, state):
    """State with nested types; every fifth value drops it; outputs show the order of the records."""
    n = 0 if state is None else state["n"]
    seen = [] if state is None else state["seen"]
    v = record["v"]
    if v is not None and v % 5 == 0:
        return None, [(key, n, "dropped", record["ts"])]
    seen = [*seen[-2:], {"v": v, "s": record["s"]}]
    text = ",".join(str(one["v"]) for one in seen)
    return {"n": n + 1, "seen": seen}, [(key, n + 1, text, record["ts"])]


def chained(key, record, state):
    """The state is a text of all that came, in order."""
    state = (state or "") + f"{record['n']};"
    return state[-40:], [(key, record["n"], state[-40:], record["ts"])]


def pickling(key, record, state):
    state = (state or frozenset()) | {record["v"]}
    return (state if len(state) < 4 else None), [len(state)]


def windows(rows, tables, later):
    """A value table, a rows table that expires, deletions, and a notification for each row."""
    out = []
    if later.due.num_rows:
        old = tables["total"].get(later.due)
        recent = tables["recent"].get(later.due)
        counts = np.bincount(recent["_position"].to_numpy(), minlength=later.due.num_rows)
        note = [f"due {t} {n}" for t, n in zip(old["total"].to_pylist(), counts.tolist(), strict=True)]
        out.append(
            pa.table({"k": later.due["k"], "n": later.due["v"], "text": texts(note), "ts": later.due["at"]})
        )
    if rows.num_rows:
        tables["recent"].append(rows)
        later.notify_at(pc.add(rows["ts"].cast(pa.int64()), 3 * SECOND), rows)
        table, keys = tables["total"], _distinct(rows)
        had = table.get(keys)["total"].fill_null(0)
        table.put(keys.append_column("total", pc.add(had, keys["added"])))
        gone = keys.filter(pc.equal(pc.bit_wise_and(keys["added"], 7), 3))
        table.delete(gone)
        tables["recent"].delete(gone)
        recent = tables["recent"].get(keys)
        counts = np.bincount(recent["_position"].to_numpy(), minlength=keys.num_rows)
        text = [f"rows {t} {n}" for t, n in zip(had.to_pylist(), counts.tolist(), strict=True)]
        out.append(pa.table({"k": keys["k"], "n": keys["added"], "text": texts(text), "ts": keys["ts"]}))
    return pa.concat_tables(out)


def texts(values):
    return pa.array(values, pa.string())


def _distinct(rows):
    """One row for each key: how much its values add up to, and its last time."""
    added: dict = {}
    for k, v, ts in zip(rows["k"].to_pylist(), rows["v"].to_pylist(), rows["ts"].to_pylist(), strict=True):
        name = "nan" if k != k else k  # noqa: PLR0124 - that is how to find NaN
        total = added.get(name, (k, 0, ts))[1]
        added[name] = (k, total + (v or 0), ts)
    columns = [list(column) for column in zip(*added.values(), strict=True)]
    types = [rows.schema.field("k").type, pa.int64(), TIME]
    return pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=["k", "added", "ts"])


def joining(left, right, tables, later):
    """A symmetric join: each side looks at what the other has kept, then is kept itself."""
    out = []
    for mine, other, name in ((left, "right", "left"), (right, "left", "right")):
        found = tables[other].get(mine)
        at = found["_position"]
        pairs = [
            f"{name} {a} {b}"
            for a, b in zip(mine["v"].take(at).to_pylist(), found["v"].to_pylist(), strict=True)
        ]
        out.append(
            pa.table(
                {"k": mine["k"].take(at), "n": found["v"], "text": texts(pairs), "ts": mine["ts"].take(at)}
            )
        )
        tables[name].append(mine)
    if left.num_rows:
        later.notify_at(pc.add(left["ts"].cast(pa.int64()), SECOND), left)
    due = later.due
    text = [f"due {at}" for at in due["at"].to_pylist()]
    out.append(
        pa.table(
            {"k": due["k"], "n": pa.nulls(due.num_rows, pa.int64()), "text": texts(text), "ts": due["at"]}
        )
    )
    return pa.concat_tables(out)


def meeting(left, right, tables, later):
    """Where two ways from one operator meet again: counts what came along each."""
    table, sides = tables["met"], [(left, "l"), (right, "r")]
    out = []
    for rows, name in sides:
        if not rows.num_rows:
            continue
        had = table.get(rows.select(["k"]))
        text = [
            f"{name} {n} {t}" for n, t in zip(rows["n"].to_pylist(), had["trace"].to_pylist(), strict=True)
        ]
        new = texts(
            [
                (t or "")[-20:] + f"{name}{n}"
                for n, t in zip(rows["n"].to_pylist(), had["trace"].to_pylist(), strict=True)
            ]
        )
        table.put(pa.table({"k": rows["k"], "trace": new}))
        out.append(pa.table({"k": rows["k"], "n": rows["n"], "text": texts(text), "ts": rows["ts"]}))
    return pa.concat_tables(out)


# Dataflows.


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
    rename = Fold("third", (edge(2, second.output, operator=1),), _as_v, {}, third, pa.schema([]))
    return Case(
        Dataflow((first, second, rename, _windows("fourth", edge(3, third, operator=2), key)), 1), schema
    )


def _as_v(rows, tables, later):
    return rows.rename_columns(["k", "v", "text", "ts"]) if rows.num_rows else None


def rekeyed(key):
    """Keyed by one column, then by another: many keys of the first meet in one of the second."""
    schema = source_schema(key)
    out = pa.schema([("k", key), ("g", pa.int32()), ("n", pa.int64()), ("x", pa.float64())])
    first = StateMachine("first", (edge(0, schema),), _passing, pa.schema([("n", pa.int64())]), out)
    named = {"n": agg.count(), "sx": agg.sum("x"), "one": agg.first("n"), "end": agg.last("n")}
    return Case(
        Dataflow((first, Aggregate("second", (edge(1, out, ("g",), None, operator=0),), named)), 1), schema
    )


def _passing(key, record, state):
    return (state or 0) + 1, [(key, record["g"], (state or 0) + 1, record["x"])]


def diamond(key):
    """One operator with two consumers, and a source that skips it, all of which meet in a last one."""
    schema = source_schema(key)
    first = StateMachine("top", (edge(0, schema),), running, STATE, _output(key))
    trace = pa.schema([("all", pa.string())])
    left = StateMachine("left", (edge(1, first.output, operator=0),), chained, trace, _output(key))
    both = pa.schema([*[f for f in first.output if f.name != "n"], pa.field("v", pa.int64())])
    middle = Fold("middle", (edge(2, first.output, operator=0),), _as_v, {}, both, pa.schema([]))
    right = _windows("right", edge(3, both, operator=2), key)
    edges = (edge(4, left.output, operator=1), edge(5, right.output, operator=3))
    met = {"met": TableWish("value", pa.schema([("trace", pa.string())]))}
    last = Fold("meeting", edges, meeting, met, _output(key), pa.schema([]))
    return Case(Dataflow((first, left, middle, right, last), 1), schema)


CASES: dict[str, Callable[[pa.DataType], Case]] = {
    one.__name__: one for one in (aggregates, exact, machine, objects, unary, binary, chain, rekeyed, diamond)
}
