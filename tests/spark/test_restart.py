"""A query that is stopped or fails goes on where it was; its state can be read at several epochs."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest

import sterna
from sterna.engine import crash
from sterna.engine.apply import PATIENCE
from sterna.errors import InvalidInput, StateError
from sterna.state.compaction import DEPTH
from sterna.state.store import Store


def counts(source):
    return sterna.read(source.stream()).key_by("key").aggregate(n=sterna.count())


def state(query, **which):
    return {row["key"]: row["n"] for row in query.state(**which).collect()}


def test_a_restart_goes_on(feed, start):
    source = feed("key string").add("a", "b").add("a")
    sink = sterna.sinks.memory()
    first = start(counts(source), sink=sink, trigger={"availableNow": True})
    assert first.await_termination(100)
    source.add("a", "c")
    second = start(counts(source), sink=sink, trigger={"availableNow": True})
    assert second.await_termination(100)
    assert second.status()["incarnation"] == 2
    assert state(second) == {"a": 3, "b": 1, "c": 1}
    assert sorted(sink.epochs) == [0, 1, 2]
    # Bins and workers are the checkpoint's; those of a later start do not matter.
    third = start(counts(source), bins=64, workers=7, trigger={"availableNow": True})
    assert third.await_termination(100)
    assert third.status()["operators"]["aggregate"]["bins"] == 16


def test_state_at_the_last_and_at_earlier_epochs(feed, start):
    source = feed("key string").add("a", "b").add("a").add("b").add("c")
    query = start(counts(source), trigger={"availableNow": True}, retain=3)
    assert query.await_termination(100)
    assert state(query) == {"a": 2, "b": 2, "c": 1}
    assert state(query, epoch=3) == {"a": 2, "b": 2, "c": 1}
    assert state(query, epoch=1) == {"a": 2, "b": 1}
    with pytest.raises(StateError, match="epoch 0"):
        query.state(epoch=0)
    with pytest.raises(StateError, match="epoch 9"):
        query.state(epoch=9)
    with pytest.raises(InvalidInput, match="no table"):
        query.state(table="x")
    with pytest.raises(InvalidInput, match="no operator"):
        query.state("x")


def test_files_that_nobody_needs_are_deleted_by_a_thread_and_gone_when_the_query_has_stopped(
    feed, start, checkpoint, monkeypatch
):
    deleted, delete = {}, Store.delete

    def noted(store, paths):
        paths = list(paths)
        deleted.update(dict.fromkeys(paths, threading.current_thread().name))
        delete(store, paths)

    monkeypatch.setattr(Store, "delete", noted)
    source = feed("key string")
    for _ in range(PATIENCE * DEPTH + 4):  # So many runs over one hash are merged by the epoch itself.
        source.add("a", "b")
    query = start(counts(source), trigger={"availableNow": True}, retain=2)
    assert query.await_termination(100)
    query.stop()
    runs = {path: thread for path, thread in deleted.items() if path.startswith("runs/")}
    assert runs
    assert set(runs.values()) == {"sterna-removal"}
    assert not any(Path(checkpoint, path).exists() for path in runs)
    assert state(query) == dict.fromkeys("ab", PATIENCE * DEPTH + 4)


def test_state_of_a_query_that_has_not_run_yet(feed, start):
    query = start(counts(feed("key string")))
    assert query.state().collect() == []
    assert query.state().columns == ["key", "n"]


@pytest.mark.parametrize("point", ["after-freeze", "after-job", "after-prepare", "after-commit"])
def test_a_failure_anywhere_loses_nothing(feed, start, point):
    source = feed("key string").add("a", "b", "a").add("a", "c").add("b")
    sink = sterna.sinks.memory()
    stream = counts(source)
    struck = []

    def strike(name, epoch):
        if (name, epoch) == (point, 1) and not struck:
            struck.append(point)
            raise RuntimeError("struck")

    crash.set_hook(strike)
    try:
        query = start(stream, sink=sink, trigger={"availableNow": True}, share_host_state=False)
        query.migrate(sterna.rescale(3), at=1)
        with pytest.raises(RuntimeError, match="struck"):
            query.await_termination(100)
    finally:
        crash.set_hook(None)
    again = start(stream, sink=sink, trigger={"availableNow": True}, share_host_state=False)
    assert again.await_termination(100)
    assert state(again) == dict(Counter("abaacb"))
    told = [sorted((row["key"], row["n"]) for row in sink.epochs[epoch].to_pylist()) for epoch in range(3)]
    assert told == [[("a", 2), ("b", 1)], [("a", 3), ("c", 1)], [("b", 2)]]
    assert [event["epoch"] for event in again.history() if event["kind"] == "moved"] == [1]


def test_stop_in_the_middle_and_start_again(feed, start):
    source = feed("key long")
    for epoch in range(6):
        source.add(*range(epoch, epoch + 5))
    query = start(counts(source))
    query.wait_for_epoch(1)
    query.stop()
    assert not query.is_active
    assert query.exception() is None
    assert query.await_termination(1)
    again = start(counts(source))
    again.process_all_available()
    assert state(again) == dict(Counter(key for epoch in range(6) for key in range(epoch, epoch + 5)))
