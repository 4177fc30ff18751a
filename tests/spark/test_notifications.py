"""Event time on Spark: notifications, late rows, idle sources, the end of a stream."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sterna

SECOND = 1_000_000


def remind(rows, tables, later):
    """Hands each row back five seconds after its time."""
    if rows.num_rows:
        later.notify_at(pc.add(rows["when"], 5 * SECOND), rows)
    return later.due.select(["key", "when"])


def reminders(source):
    return (
        sterna.read(source.stream()).key_by("key", time="when").unary(remind, output="key string, when long")
    )


def whens(sink):
    return {
        epoch: sorted(row["when"] // SECOND for row in table.to_pylist())
        for epoch, table in sink.epochs.items()
    }


def test_notifications_fire_when_the_watermark_passes(feed, start):
    source = feed("key string, when long")
    for when in (0, 3, 6, 12):
        source.add((f"k{when}", when * SECOND))
    sink = sterna.sinks.memory()
    query = start(reminders(source), sink=sink, watermark_delay="1 second", trigger={"availableNow": True})
    assert query.await_termination(100)
    # 6 s pushes the watermark to 5 s in the epoch after it; 12 s pushes it to 11 s, in an epoch without rows.
    assert whens(sink) == {0: [], 1: [], 2: [], 3: [0], 4: [3, 6]}
    assert [row["key"] for row in query.state(table="later").collect()] == ["k12"]


@pytest.mark.parametrize(("at_end", "told"), [("keep", [0]), ("flush", [0, 6])])
def test_the_end_of_a_stream(feed, run, at_end, told):
    source = feed("key string, when long").add(("a", 0)).add(("a", 6 * SECOND))
    rows = run(reminders(source), watermark_delay=0, at_end=at_end)
    assert [row["when"] // SECOND for row in rows] == told


def test_kept_notifications_fire_after_a_restart(feed, run):
    source = feed("key string, when long").add(("a", 0), ("b", 6 * SECOND))
    assert [row["key"] for row in run(reminders(source), watermark_delay=0)] == ["a"]
    source.add(("c", 20 * SECOND))
    assert [row["key"] for row in run(reminders(source), watermark_delay=0)] == ["b"]


def test_windows_close_on_an_idle_stream(feed, start):
    source = feed("key string, when long").add(("a", 0)).add(("b", 9 * SECOND))
    sink = sterna.sinks.memory()
    query = start(reminders(source), sink=sink, watermark_delay=0)
    query.process_all_available()
    assert [row["key"] for row in sink.rows()] == ["a"]


def test_event_time_as_a_timestamp(feed, run):
    import datetime as dt

    def moment(seconds):
        return dt.datetime(2026, 1, 1, 0, 0, seconds, tzinfo=dt.timezone.utc)

    def fold(rows, tables, later):
        if rows.num_rows:
            later.notify_at(pc.add(rows["at"], pa.scalar(dt.timedelta(seconds=5), pa.duration("us"))), rows)
        return pa.table({"key": later.due["key"], "at": later.due["_at"]})

    source = feed("key string, at timestamp").add(("a", moment(0))).add(("b", moment(30)))
    stream = (
        sterna.read(source.stream()).key_by("key", time="at").unary(fold, output="key string, at timestamp")
    )
    assert run(stream, watermark_delay=0) == [{"key": "a", "at": moment(5)}]


def counting(source):
    return sterna.read(source.stream()).key_by("key", time="when").aggregate(n=sterna.count())


def late_feed(feed):
    source = feed("key string, when long")
    source.add(("a", 10 * SECOND)).add(("a", 1 * SECOND), ("a", 8 * SECOND), ("b", 2 * SECOND)).add(
        ("a", 9 * SECOND)
    )
    return source


def test_late_rows_are_counted_and_dropped(feed, start):
    sink = sterna.sinks.memory()
    query = start(
        counting(late_feed(feed)), sink=sink, watermark_delay="2 seconds", trigger={"availableNow": True}
    )
    assert query.await_termination(100)
    assert [(row["key"], row["n"]) for row in sink.rows()] == [("a", 1), ("a", 2), ("a", 3)]
    assert query.status()["late"] == 2


def test_late_rows_go_to_a_second_output(feed, start):
    late = sterna.sinks.memory()
    query = start(
        counting(late_feed(feed)), late=late, watermark_delay="2 seconds", trigger={"availableNow": True}
    )
    assert query.await_termination(100)
    assert sorted((row["key"], row["when"] // SECOND) for row in late.rows()) == [("a", 1), ("b", 2)]
    assert late.epochs[1].num_rows == 2


def pairs(left, right, tables, later):
    for rows in (left, right):
        if rows.num_rows:
            later.notify_at(pc.add(rows["when"], SECOND), rows.select(["key"]))
    return later.due.select(["key"])


def joined(left, right):
    return (
        sterna.read(left.stream())
        .key_by("key", time="when")
        .binary(sterna.read(right.stream()).key_by("key", time="when"), pairs, output="key string")
    )


def test_the_slowest_source_holds_time_back(feed, run):
    left = feed("key string, when long").add(("a", 0)).add(("b", 50 * SECOND))
    right = feed("key string, when long").add(("c", 0)).add(("d", 2 * SECOND))
    assert sorted(row["key"] for row in run(joined(left, right), watermark_delay=0)) == ["a", "c"]


def test_an_idle_source_lets_time_go_on(feed, start):
    left = feed("key string, when long").add(("a", 0)).add(("b", 50 * SECOND))
    right = feed("key string, when long")
    sink = sterna.sinks.memory()
    query = start(joined(left, right), sink=sink, watermark_delay=0, idle_timeout="100 ms")
    query.process_all_available()
    while not sink.rows():
        query.wait_for_epoch(query.status()["epoch"] + 1)
    assert [row["key"] for row in sink.rows()] == ["a"]
