"""``window`` tells every window with rows once, when it is over, wherever the state is by then."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sterna
from sterna.dataflow import Dataflow
from sterna.operators.base import Edge
from sterna.operators.fold import Fold
from sterna.operators.mapped import Mapped
from sterna.operators.named import Named
from sterna.operators.windows import Windows
from sterna.sources.recipe import Recipe
from twin import small

SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64()), ("t", pa.int64())])
FUNCTIONS = {
    "n": sterna.count(),
    "some": sterna.count("v"),
    "mean": sterna.mean("v"),
    "most": sterna.max("v"),
    "first": sterna.first("v"),
    "last": sterna.last("v"),
    "best": sterna.largest(2, "v"),
}
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", None]), st.none() | st.integers(-3, 9), st.none() | st.integers(0, 8)
    ),
    max_size=6,
)


def windowing(length, slide, after=None):
    keys, edge = (SCHEMA.field("k"),), Edge(0, 0, None, ("k",), "t", SCHEMA)
    fold = Windows(length, slide, keys, "t", Named(FUNCTIONS, SCHEMA, ["k"], "aggregate"))
    operator = Fold("window", (edge,), fold, fold.tables, fold.output, fold.later)
    if after is not None:
        recipe = Recipe(tuple(fold.output.names), fold.output, fold.output).then(after)
        return Dataflow((Mapped(operator, recipe),), 1)
    return Dataflow((operator,), 1)


def table(rows):
    return pa.table(
        [pa.array(column, SCHEMA.field(i).type) for i, column in enumerate(zip(*rows, strict=True))]
        if rows
        else [pa.array([], item.type) for item in SCHEMA],
        schema=SCHEMA,
    )


def expected(epochs, length, slide):
    """What windows hold, row by row: of rows that are on time, in the order in which they are applied."""
    held, newest = {}, None
    for rows in epochs:
        frontier = newest
        for k, v, t in sorted((row for row in rows if row[2] is not None), key=lambda row: row[2]):
            newest = t if newest is None else max(newest, t)
            if frontier is None or t >= frontier:
                for start in range(-(-(t + 1 - length) // slide) * slide, t + 1, slide):
                    held.setdefault((k, start), []).append((t, v))
    told = {}
    for (k, start), found in held.items():
        values = [v for _, v in found if v is not None]
        mean = sum(values) / len(values) if values else None
        most = max(values, default=None)
        told[k, start, start + length] = (len(found), len(values), mean, most, sorted(values)[::-1][:2])
    return told


def answers(twin):
    twin.flush()
    rows = twin.coordinator.sink.table()
    micros = [rows.column(name).cast(pa.int64()).to_pylist() for name in ("window_start", "window_end")]
    out = {}
    for row, start, end in zip(rows.to_pylist(), *micros, strict=True):
        assert (row["k"], start, end) not in out, "told twice"
        out[row["k"], start, end] = tuple(row[name] for name in ("n", "some", "mean", "most", "best"))
    return out


@given(
    epochs=st.lists(ROWS, max_size=6),
    shift=st.lists(st.integers(0, 40), min_size=6, max_size=6),
    sizes=st.tuples(st.integers(1, 12), st.integers(1, 12)).map(lambda two: (max(two), min(two))),
    workers=st.integers(1, 5),
)
def test_every_window_is_told_once(epochs, shift, sizes, workers, tmp_path_factory):
    length, slide = sizes
    moved = [
        [(k, v, None if t is None else t + sum(shift[: number + 1])) for k, v, t in rows]
        for number, rows in enumerate(epochs)
    ]
    folder = tmp_path_factory.mktemp("windows") / "c"
    twin = small.start(windowing(length, slide), folder, bins=8, workers=2, watermark_delay=0)
    for number, rows in enumerate(moved):
        if number == 2:
            twin.migrate(sterna.rescale(workers), sterna.fluid())
        twin.epoch(table(rows))
    assert answers(twin) == expected(moved, length, slide)
    twin.close()


def test_windows_come_when_they_are_over_and_then_leave_the_state(start):
    twin = start(windowing(10, 5), bins=4, workers=2, watermark_delay=0)
    sink = twin.coordinator.sink
    twin.epoch(table([("a", 1, 3), ("a", 2, 7)]))
    twin.epoch(table([("b", 1, 9)]))
    assert [row["n"] for row in sink.rows()] == [1]
    twin.epoch(table([("b", 1, 30)]))
    twin.epoch(table([("b", 1, 31)]))
    told = sorted((row["k"], row["n"], row["first"], row["last"]) for row in sink.rows())
    assert told == [("a", 1, 1, 1), ("a", 1, 2, 2), ("a", 2, 1, 2), ("b", 1, 1, 1), ("b", 1, 1, 1)]
    twin.epoch(table([("b", 1, 200)]))
    twin.epoch(table([("c", 1, 201)]))
    assert "a" not in {row["k"] for row in twin.state("window", "waiting").to_pylist()}


def test_what_leaves_a_worker_may_be_changed_there(start):
    def busy(rows):
        return rows.filter(pa.array([n > 1 for n in rows.column("n").to_pylist()], pa.bool_())).select(
            ["k", "n"]
        )

    twin = start(windowing(10, 10, busy), bins=4, workers=2, watermark_delay=0)
    twin.epoch(table([("a", 1, 3), ("a", 2, 7), ("b", 2, 7)]))
    twin.flush()
    assert twin.coordinator.sink.rows() == [{"k": "a", "n": 2}]


@pytest.mark.parametrize(("length", "slide"), [(60, 1), (7, 3), (10, 10), (12, 8)])
def test_a_window_is_made_of_panes(length, slide):
    windows = windowing(length, slide).operators[0].fold
    assert windows.pane == math.gcd(length, slide)
    for pane in range(-3 * windows.pane, 40 * windows.pane, windows.pane):
        first, last = int(windows._first(pane)), int(windows._last(pane))
        holding = [
            s
            for s in range(-200 * slide, 900 * slide, slide)
            if s <= pane and pane + windows.pane <= s + length
        ]
        assert (first, last) == (holding[0], holding[-1])
