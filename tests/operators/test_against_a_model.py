"""Aggregates and the per-record operator against a few lines of plain Python, over any stream, with moves."""

from __future__ import annotations

import math
import tempfile
from collections import defaultdict

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sterna.dataflow import Dataflow
from sterna.engine.coordinator import Options
from sterna.operators.state_machine import StateMachine
from sterna.sinks import memory
from sterna.targets import rescale
from sterna.testing import Twin
from twin.flows import aggregates, edge, source_schema
from twin.harness import SHM
from twin.strategies import partitions

QUIET = {"max_examples": 20, "deadline": None, "suppress_health_check": list(HealthCheck)}
streams = st.integers(1, 5).flatmap(lambda n: st.tuples(*[partitions("double", epoch) for epoch in range(n)]))


def name(key):
    """Keys are equal as in Spark: NaN to NaN, 0.0 to -0.0."""
    if key is None:
        return None
    return "nan" if math.isnan(key) else key + 0.0


def ordered(tables):
    """The rows of an epoch in the order in which they are applied: time, then partition, then place."""
    rows = [row for table in tables for row in table.to_pylist()]
    return sorted(rows, key=lambda row: row["ts"].timestamp() if row["ts"] else -math.inf)


def run(flow, epochs):
    """The output of each epoch, with a move before each."""
    sink = memory()
    with tempfile.TemporaryDirectory(dir=SHM) as directory:
        twin = Twin(flow, directory, sink, Options(bins=8, workers=2))
        for number, tables in enumerate(epochs):
            twin.migrate(rescale(1 + number % 4))
            twin.epoch(tables)
        twin.close()
    return [sink.epochs[number].to_pylist() for number in range(len(epochs))]


def same(one, two):
    return one == two or (
        isinstance(one, float) and isinstance(two, float) and math.isnan(one) and math.isnan(two)
    )


@given(streams)
@settings(**QUIET)
def test_aggregates(stream):
    epochs = [[part.table() for part in parts] for parts in stream]
    found = run(aggregates(pa.float64()).flow, epochs)
    seen = defaultdict(list)
    for tables, output in zip(epochs, found, strict=True):
        changed = {}
        for row in ordered(tables):
            seen[name(row["k"])].append(row)
            changed[name(row["k"])] = row["k"]
        assert sorted(map(str, (name(row["k"]) for row in output))) == sorted(map(str, changed))
        for row in output:
            rows = seen[name(row["k"])]
            v = [one["v"] for one in rows if one["v"] is not None]
            x = [one["x"] for one in rows if one["x"] is not None]
            assert (row["n"], row["nv"], row["sv"]) == (len(rows), len(v), sum(v) if v else None)
            assert (row["one"], row["end"]) == (rows[0]["s"], rows[-1]["s"])
            assert row["top"] == sorted(v, reverse=True)[:2]
            numbers = [one for one in x if not math.isnan(one)]
            assert same(row["hi"], float("nan") if len(numbers) < len(x) else max(x, default=None))
            assert same(row["lo"], min(numbers) if numbers else (float("nan") if x else None))
            close = same(row["sx"], sum(x)) or (
                x and math.isclose(row["sx"], sum(x), rel_tol=1e-12, abs_tol=4)
            )
            assert close or (not x and row["sx"] is None)
            assert same(row["avg"], row["sx"] / len(x) if x else None)


def trace(key, record, state):
    """The state is how many records there were and the last value.

    A value that repeats the last drops the state.
    """
    if state is not None and state["last"] == record["v"]:
        return None, [(key, -1, record["v"])]
    count = 1 if state is None else state["count"] + 1
    return {"count": count, "last": record["v"]}, [(key, count, record["v"])] * (count % 3)


@given(streams)
@settings(**QUIET)
def test_the_per_record_operator(stream):
    epochs = [[part.table() for part in parts] for parts in stream]
    out = pa.schema([("k", pa.float64()), ("count", pa.int64()), ("v", pa.int64())])
    state = pa.schema([("count", pa.int64()), ("last", pa.int64())])
    flow = Dataflow((StateMachine("trace", (edge(0, source_schema(pa.float64())),), trace, state, out),), 1)
    found = run(flow, epochs)
    states: dict = {}
    for tables, output in zip(epochs, found, strict=True):
        expected = defaultdict(list)
        for row in ordered(tables):
            key = name(row["k"])
            states[key], produced = trace(row["k"], row, states.get(key))
            expected[key] += [(count, v) for _, count, v in produced]
        actual = defaultdict(list)
        for row in output:
            actual[name(row["k"])].append((row["count"], row["v"]))
        assert actual == {key: rows for key, rows in expected.items() if rows}
