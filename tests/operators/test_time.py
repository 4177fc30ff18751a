"""Event time: when notifications fire, when rows expire, what is late; to the microsecond."""

from __future__ import annotations

import datetime as dt
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from sterna.dataflow import Dataflow
from sterna.errors import FoldError
from sterna.operators.base import Edge
from sterna.operators.fold import Fold, TableWish
from sterna.sinks import memory
from sterna.testing import Clock
from twin.small import SCHEMA, SOURCE, rows, start, unary

SEEN = pa.schema([("k", pa.int64()), ("at", pa.int64()), ("v", pa.int64())])


def remind(table, tables, later, shift=10):
    """Each row is handed back some time after its own."""
    if table.num_rows:
        later.notify_at(pa.array(np.asarray(table["t"]) + shift), table)
    return later.due.select(["k", "at", "v"])


@pytest.fixture
def begin(tmp_path):
    twins = []

    def begin(fold=remind, tables=None, output=SEEN, **options):
        sink = memory()
        flow = fold if isinstance(fold, Dataflow) else unary(fold, tables or {}, output)
        twins.append(start(flow, tmp_path, sink=sink, **{"watermark_delay": 0, **options}))
        return twins[-1], sink

    yield begin
    for twin in twins:
        twin.close()


def fired(sink):
    return {
        epoch: [tuple(row.values()) for row in table.to_pylist()]
        for epoch, table in sink.epochs.items()
        if table.num_rows
    }


def test_a_notification_fires_in_the_epoch_whose_frontier_reaches_its_time(begin):
    twin, sink = begin()
    twin.epoch(rows((1, 7), time=100))  # due at 110
    twin.epoch(rows(2, time=109))  # frontier 100
    twin.epoch(rows(2, time=110))  # frontier 109
    assert fired(sink) == {}
    twin.epoch(rows(2, time=110))  # frontier 110
    assert fired(sink) == {3: [(1, 110, 7)]}
    twin.epoch(rows(2, time=111))
    assert fired(sink) == {3: [(1, 110, 7)]}  # once
    assert twin.drain() == 0


def test_an_idle_stream_is_woken_for_what_is_due_and_only_then(begin):
    twin, sink = begin()
    twin.epoch(rows(1, time=100))
    assert twin.drain() == 0  # due at 110, and the frontier can only get to 100
    twin.epoch(rows(2, time=200))
    assert twin.drain() == 1
    assert [row[:2] for some in fired(sink).values() for row in some] == [(1, 110)]
    assert twin.flush() == 1
    assert [row[:2] for some in fired(sink).values() for row in some] == [(1, 110), (2, 210)]


def test_notifications_come_back_in_the_order_of_their_times(begin):
    twin, sink = begin(workers=1)
    twin.epoch([rows(5, time=103), rows(4, time=101), rows(3, time=102)])
    twin.epoch(rows(1, time=500))
    twin.drain()
    assert [row[:2] for row in fired(sink)[2]] == [(4, 111), (3, 112), (5, 113)]


def test_a_time_that_has_passed_is_due_when_the_frontier_moves_again(begin):
    twin, sink = begin(partial(remind, shift=-1000))
    twin.epoch(rows(1, time=100))
    twin.epoch(rows(2, time=100))  # the frontier is 100, and 2 asks for -900
    assert [row[:2] for row in fired(sink)[1]] == [(1, -900)]
    twin.epoch(rows(3, time=101))
    assert set(fired(sink)) == {1}
    twin.epoch(rows(4, time=102))
    assert sorted(row[:2] for row in fired(sink)[3]) == [(2, -900), (3, -899)]


def test_a_null_time_comes_back_as_null_and_tells_nothing_of_time(begin):
    twin, sink = begin(lambda t, tables, later: later.notify_at("t", t) or later.due.select(["k", "at", "v"]))
    null = pa.table([pa.array([1]), pa.array([5]), pa.array([None], pa.int64())], schema=SCHEMA)
    twin.epoch(null)
    assert twin.coordinator.last.progress[0].newest is None
    twin.epoch(rows(2, time=100))
    twin.drain()
    assert fired(sink) == {2: [(1, None, 5), (2, 100, 1)]}
    twin.epoch(null)
    assert twin.coordinator.last.facts["late"] == 1  # once there is a frontier, it is before it


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.int64(), pa.date32()])
def test_times_of_any_type(begin, kind):
    schema = pa.schema([("k", pa.int64()), ("t", kind)])
    out = pa.schema([("k", pa.int64()), ("t", kind), ("at", kind)])

    def fold(table, tables, later):
        if table.num_rows:
            tables.kept.append(table)
            later.notify_at("t", table)
        kept = tables.kept.get(later.due)
        return pa.table({"k": kept["k"], "t": kept["t"], "at": later.due["at"].take(kept["_position"])})

    flow = Dataflow(
        (
            Fold(
                "fold",
                (Edge(0, 0, None, ("k",), "t", schema),),
                fold,
                {"kept": TableWish("rows", pa.schema([]))},
                out,
                pa.schema([]),
            ),
        ),
        1,
    )
    twin, sink = begin(flow)
    day = 86_400_000_000
    values = [dt.date(1970, 1, 3), dt.date(1970, 1, 9)] if kind == pa.date32() else [2 * day, 8 * day]
    for key, value in enumerate(values):
        twin.epoch(pa.table([pa.array([key]), pa.array([value], kind)], schema=schema))
    twin.drain()
    (row,) = [row for row in sink.rows() if row["k"] == 0]
    expected = pa.array([values[0]], kind)[0].as_py()
    assert row == {"k": 0, "t": expected, "at": expected}


def test_rows_expire_once_they_are_older_than_they_are_kept(begin):
    seen = {}

    def fold(table, tables, later):
        found = tables.kept.get(pa.table({"k": [1]}))
        seen[tables.epoch] = sorted(found["t"].to_pylist())
        tables.kept.append(table)

    tables = {"kept": TableWish("rows", pa.schema([]), None, 10)}
    twin, _ = begin(fold, tables, pa.schema([("k", pa.int64())]), workers=1)
    for time in (100, 105, 111, 115, 116, 200):
        twin.epoch(rows(1, time=time))
    # After an epoch at frontier 111 rows before 101 are gone, after 115 those before 105.
    assert seen == {
        0: [],
        1: [100],
        2: [100, 105],
        3: [100, 105, 111],
        4: [105, 111, 115],
        5: [105, 111, 115, 116],
    }
    # The last epoch was frozen at 116, and its state is read as of then.
    assert twin.state("fold", "kept").num_rows == 4
    twin.flush()
    twin.epoch([])
    assert twin.state("fold", "kept").num_rows == 0


def test_what_is_due_finds_the_rows_that_were_there_at_its_time(begin):
    """However far the frontier jumps in one epoch: a window's rows are not kept longer than the window."""
    found = []

    def fold(table, tables, later):
        found.extend(tables.kept.get(later.due.select(["k"]))["t"].to_pylist())
        tables.kept.append(table)
        if tables.epoch == 0:
            later.notify_at(110, table)

    tables = {"kept": TableWish("rows", pa.schema([]), None, 10)}
    twin, _ = begin(fold, tables, pa.schema([("k", pa.int64())]), workers=1)
    twin.epoch(rows(1, time=100))
    twin.epoch(rows(2, time=5_000))
    twin.epoch(rows(2, time=5_000))
    assert found == [100]


def test_what_is_before_the_frontier_is_late_and_what_is_at_it_is_not(begin):
    late = memory()
    twin, _ = begin(watermark_delay=5, late=late)
    twin.epoch(rows(1, time=105))
    twin.epoch([rows(2, time=100), rows((3, 33), time=99)])
    assert [twin.coordinator.last.facts[name] for name in ("rows", "late", "late_total")] == [2, 1, 1]
    assert late.rows() == [{"k": 3, "v": 33, "t": 99}]
    assert sorted(row["k"] for row in twin.state("fold", "later").to_pylist()) == [1, 2]


def test_without_a_delay_time_stands_still(begin):
    twin, sink = begin(watermark_delay=None)
    for time in (100, 1000, 10):
        twin.epoch(rows(1, time=time))
    assert twin.coordinator.last.watermarks == [None]
    assert twin.coordinator.last.facts["late_total"] == 0
    assert twin.flush() == 1
    assert len(sink.rows()) == 3


def test_two_sources_and_the_slower_one_decides_until_it_is_silent(begin):
    clock = Clock()
    edges = (SOURCE, Edge(1, 1, None, ("k",), "t", SCHEMA))
    flow = Dataflow((Fold("both", edges, lambda a, b, tables, later: None, {}, SEEN, pa.schema([])),), 2)
    twin, _ = begin(flow, idle_timeout=10.0, clock=clock)
    twin.epoch(rows(1, time=100), [])
    twin.epoch([], rows(1, time=50))
    twin.epoch([], [])
    assert twin.coordinator.last.watermarks[0] == 50
    clock.move(8)
    twin.epoch(rows(1, time=200), [])
    clock.move(8)
    twin.epoch([], [])
    assert twin.coordinator.last.watermarks[0] == 200


def test_a_chain_lags_an_epoch_for_each_operator_and_still_gets_there(begin):
    first = Fold("first", (SOURCE,), partial(_hand_on, shift=10), {}, SCHEMA, pa.schema([("v", pa.int64())]))
    second = Fold(
        "second",
        (Edge(1, None, 0, ("k",), "t", SCHEMA),),
        partial(remind, shift=0),
        {},
        SEEN,
        pa.schema([("v", pa.int64())]),
    )
    twin, sink = begin(Dataflow((first, second), 1))
    twin.epoch(rows((1, 5), time=100))
    twin.epoch(rows((2, 6), time=110))
    # The first hands 1 on when the frontier reaches 110; the second gets it with that time and hands it back
    # an epoch later.
    assert twin.drain() == 2
    assert fired(sink) == {3: [(1, 110, 5)]}
    twin.flush()
    assert [row[:2] for some in fired(sink).values() for row in some] == [(1, 110), (2, 120)]


def _hand_on(table, tables, later, shift):
    if table.num_rows:
        later.notify_at(pa.array(np.asarray(table["t"]) + shift), table)
    return later.due.rename_columns({"at": "t"}).select(["k", "v", "t"])


def test_a_stream_without_time_has_no_notifications(begin):
    edge = Edge(0, 0, None, ("k",), None, SCHEMA)
    flow = Dataflow(
        (Fold("fold", (edge,), lambda t, tables, later: later.notify_at("t", t), {}, SEEN, pa.schema([])),), 1
    )
    twin, _ = begin(flow)
    with pytest.raises(FoldError, match="has no event time"):
        twin.epoch(rows(1))


def test_one_time_for_all(begin):
    def fold(table, tables, later):
        if table.num_rows:
            later.notify_at(150, table)
        return later.due.select(["k", "at", "v"])

    twin, sink = begin(fold, workers=1)
    twin.epoch(rows(1, 2, time=100))
    twin.epoch(rows(3, time=150))
    twin.drain()
    assert sorted(row[:2] for row in fired(sink)[2]) == [(1, 150), (2, 150), (3, 150)]
