"""State that moves while the query runs: the output is that of a query whose state stays."""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter, defaultdict

import pyarrow.compute as pc
import pytest

import sterna
from sterna.control import Entry, new_name
from sterna.engine import spark as engine
from sterna.errors import InvalidInput, UpdateRefused
from sterna.remote import Remote

KEYS = 40
SECOND = 1_000_000


def numbers(source):
    return sterna.read(source.stream()).key_by("key").aggregate(n=sterna.count())


def rows_of(epoch):
    return [key for key in range(KEYS) for _ in range((key + epoch) % 3)]


def undisturbed(epochs):
    """For each key the counts that are told, one after the other."""
    counts, told = Counter(), defaultdict(list)
    for epoch in range(epochs):
        counts.update(rows_of(epoch))
        for key in set(rows_of(epoch)):
            told[key].append(counts[key])
    return dict(told)


def told(sink):
    out = defaultdict(list)
    for row in sink.rows():
        out[row["key"]].append(row["n"])
    return dict(out)


def kinds(query, kind):
    return [event for event in query.history() if event["kind"] == kind]


def until_applied(query):
    """Waits for the epochs that come by themselves until a wish has been granted."""
    while not kinds(query, "applied"):
        query.wait_for_epoch(query.status()["epoch"] + 1)
    (applied,) = kinds(query, "applied")
    return applied


@pytest.mark.parametrize(
    ("share", "carried"), [(True, 0), (False, 1 << 20), (False, -1)], ids=["linked", "carried", "extracted"]
)
def test_any_moves_leave_the_output_as_it_is(feed, start, share, carried, monkeypatch):
    monkeypatch.setattr(engine, "CARRIED_BYTES", carried)
    wishes = [
        sterna.rescale(4),
        {0: 3, 5: 0, 15: 1},
        sterna.bins(256),
        {255: 0, 17: 2},
        sterna.rescale(1),
        sterna.bins(16),
        sterna.rescale(3),
    ]
    source = feed("key long")
    sink = sterna.sinks.memory()
    query = start(numbers(source), sink=sink, share_host_state=share)
    shapes = []
    for epoch in range(len(wishes) + 1):
        source.add(*rows_of(epoch))
        query.process_all_available()
        shape = query.status()["operators"]["aggregate"]
        shapes.append((shape["workers"], shape["bins"]))
        if epoch < len(wishes):
            query.migrate(wishes[epoch])
    assert told(sink) == undisturbed(len(wishes) + 1)
    assert shapes == [(2, 16), (4, 16), (4, 16), (4, 256), (4, 256), (1, 256), (1, 16), (3, 16)]
    assert len(kinds(query, "applied")) == len(wishes)
    moved = kinds(query, "moved")
    assert [event["bins"] for event in moved] == [8, 3, 2, 192, 10]
    assert all(event["shipped"] is not share for event in moved)
    # Two of 256 bins may be empty: what is shipped is counted to the byte.
    assert all(event["bytes"] > 0 for event in moved if event["bins"] > 2)
    assert {row["key"]: row["n"] for row in query.state().collect()} == {
        k: v[-1] for k, v in told(sink).items()
    }


def test_routing_tasks_share_what_moves_if_there_are_as_many_as_before(feed, start, checkpoint, monkeypatch):
    jobs = []

    def noted(shared, routing, carried, parts):
        jobs.append((routing.epoch, bool(carried), parts))
        return route_task(shared, routing, carried, parts)

    route_task = engine.RouteTask
    monkeypatch.setattr(engine, "RouteTask", noted)
    monkeypatch.setattr(engine, "PART_BYTES", 1)
    source, sink = feed("key long"), sterna.sinks.memory()
    stream = sterna.read(source.stream(files=2)).key_by("key").aggregate(n=sterna.count())

    def all_there_is():
        start(stream, sink=sink, share_host_state=False, trigger={"availableNow": True}).await_termination(60)

    source.add(*rows_of(0)).add(*rows_of(1))
    all_there_is()
    for epoch, workers in ((2, 4), (3, 1)):
        Remote(checkpoint).apply(Entry(new_name(), sterna.rescale(workers), when={"epoch": epoch}))
    for file in range(2, 7):  # the last epoch has one file, so one routing task
        source.add(*rows_of(file))
    all_there_is()
    assert [job for job in jobs if job[1]] == [(2, True, 2), (3, True, 2), (3, True, 1)]
    assert {key: max(counts) for key, counts in told(sink).items()} == {
        key: counts[-1] for key, counts in undisturbed(7).items()
    }


def test_a_move_on_an_idle_stream_completes(feed, start):
    source = feed("key long").add(*rows_of(0))
    query = start(numbers(source), share_host_state=False)
    query.process_all_available()
    assert query.status()["epoch"] == 0
    query.migrate(sterna.rescale(3))
    query.wait_for_epoch(1)
    assert query.status()["operators"]["aggregate"]["workers"] == 3
    assert {row["key"]: row["n"] for row in query.state().collect()} == dict(Counter(rows_of(0)))


def test_at_an_epoch(feed, start):
    source = feed("key long").add(*rows_of(0))
    query = start(numbers(source))
    query.process_all_available()
    name = query.migrate(sterna.rescale(4), at=4).name
    assert query.status()["operators"]["aggregate"]["workers"] == 2
    applied = until_applied(query)
    assert (applied["entry"]["name"], applied["epoch"]) == (name, 4)
    assert [event["epoch"] for event in kinds(query, "moved")] == [4]


def test_at_a_wall_clock_time(feed, start):
    source = feed("key long").add(*rows_of(0))
    query = start(numbers(source))
    query.process_all_available()
    moment = time.time() + 1
    query.migrate(sterna.rescale(4), at=dt.datetime.fromtimestamp(moment, dt.timezone.utc))
    source.add(*rows_of(1))
    assert until_applied(query)["time"] >= moment
    assert query.status()["operators"]["aggregate"]["workers"] == 4


def test_at_an_event_time(feed, start):
    source = feed("key long, when timestamp")
    base = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
    stream = sterna.read(source.stream()).key_by("key", time="when").aggregate(n=sterna.count())
    source.add((1, base))
    query = start(stream, watermark_delay="1 second")
    query.wait_for_epoch(0)
    query.migrate(sterna.rescale(4), at=sterna.event_time(base + dt.timedelta(seconds=10)))
    source.add((1, base + dt.timedelta(seconds=10)))
    query.process_all_available()
    assert not kinds(query, "applied")
    source.add((1, base + dt.timedelta(seconds=11)))
    until_applied(query)
    assert query.status()["operators"]["aggregate"]["workers"] == 4
    assert query.status()["watermark"] >= int((base.timestamp() + 10) * SECOND)


def test_notifications_move_with_their_bin(feed, start):
    def remind(rows, tables, later):
        if rows.num_rows:
            later.notify_at(pc.add(rows["when"], 5 * SECOND), rows)
        return later.due.select(["key"])

    source = feed("key long, when long").add(*[(key, 0) for key in range(KEYS)])
    sink = sterna.sinks.memory()
    stream = sterna.read(source.stream()).key_by("key", time="when").unary(remind, output="key long")
    query = start(stream, sink=sink, share_host_state=False, watermark_delay=0)
    query.process_all_available()
    query.migrate(sterna.rescale(5))
    query.process_all_available()
    source.add((-1, 10 * SECOND))
    query.process_all_available()
    assert sorted(row["key"] for row in sink.rows()) == list(range(KEYS))
    assert {event["workers"] for event in kinds(query, "moved")} == {5}


def test_one_operator_of_two(feed, start):
    source = feed("key long").add(*rows_of(0))
    first = numbers(source).named("first")
    query = start(first.key_by("n").aggregate(m=sterna.count()).named("second"), share_host_state=False)
    query.process_all_available()
    query.migrate(sterna.rescale(3), operator="second")
    query.process_all_available()
    workers = {name: shape["workers"] for name, shape in query.status()["operators"].items()}
    assert workers == {"first": 2, "second": 3}
    assert {event["operator"] for event in kinds(query, "moved")} == {"second"}


def test_pending_moves_survive_a_restart(feed, start):
    source = feed("key long").add(*rows_of(0))
    query = start(numbers(source))
    query.process_all_available()
    query.migrate(sterna.rescale(4), at=dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds=2))
    query.stop()
    again = start(numbers(source))
    until_applied(again)
    assert again.status()["operators"]["aggregate"]["workers"] == 4


def test_what_cannot_be_is_refused_at_once(feed, start):
    source = feed("key long").add(*rows_of(0))
    query = start(numbers(source))
    query.process_all_available()
    with pytest.raises(UpdateRefused, match="bin 16 does not exist"):
        query.migrate({16: 0})
    with pytest.raises(UpdateRefused, match="worker 2 does not exist"):
        query.migrate({3: 2})
    with pytest.raises(UpdateRefused, match="epoch 0 is already frozen"):
        query.migrate({3: 1}, at=0)
    with pytest.raises(InvalidInput, match="power of two"):
        sterna.bins(12)
    with pytest.raises(InvalidInput, match="-1"):
        sterna.rescale(-1)
    with pytest.raises(InvalidInput, match="operator 'x' does not exist"):
        query.migrate({3: 1}, operator="x")
    with pytest.raises(InvalidInput, match="not a time"):
        query.migrate({3: 1}, at="tomorrow")
    source.add(*rows_of(1))
    query.process_all_available()
    assert query.exception() is None
    assert not query.history()
