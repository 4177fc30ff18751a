from __future__ import annotations

import os
import threading
from contextlib import nullcontext

import numpy as np
import pyarrow as pa
import pytest

from sterna.state import RunCache, Store, Table, TableSpec, background
from sterna.state.background import BackgroundThread, digest, offered, prepare, seat
from sterna.state.compaction import deepest

ID = pa.schema([("id", pa.int64())])
SPEC = TableSpec("t", "value", ID, pa.schema([("n", pa.int64())]))
HASHES = np.sort(np.random.default_rng(5).integers(0, 2**64, 1000, dtype=np.uint64))


@pytest.fixture
def layers(cache, namer):
    refs = []
    for age in range(8):
        table = Table(SPEC, [], cache)
        table.put_sorted(HASHES, [pa.array(np.arange(1000))], [pa.array(np.full(1000, age))])
        refs += table.flush(cache.writer(namer, age=age, timed=False))
    return refs


def content(refs, cache):
    return Table(SPEC, refs, cache).scan().to_pydict()


def test_an_offer_means_the_same_as_what_it_replaces(cache, layers):
    prepare(SPEC, layers, cache, 10_000, "runs/t-offer", None)
    offer = offered(cache.store, "runs/t-offer")
    assert deepest(layers) == 8
    assert deepest(offer) < 6
    assert content(offer, cache) == content(layers, cache)


def test_no_offer_where_there_is_nothing_to_merge(cache, layers):
    prepare(SPEC, layers[:2], cache, 10_000, "runs/t-offer", None)
    assert offered(cache.store, "runs/t-offer") is None


def test_a_damaged_offer_is_none(cache, layers):
    prepare(SPEC, layers, cache, 10_000, "runs/t-offer", None)
    data = cache.store.read("runs/t-offer.json")
    cache.store.write("runs/t-offer.json", data[:-3])
    assert offered(cache.store, "runs/t-offer") is None


def test_a_store_that_fails_makes_no_offer(tmp_path, layers):
    cache = RunCache(Store.open(tmp_path / "elsewhere"))
    prepare(SPEC, layers, cache, 10_000, "runs/t-offer", None)
    assert offered(cache.store, "runs/t-offer") is None


def test_a_name_tells_what_is_replaced(layers):
    assert digest(layers) == digest(layers[::-1])
    assert digest(layers) != digest(layers[:-1])
    assert digest(layers) != digest([layers[0].cut(5, 2**63), *layers[1:]])


def test_the_thread_does_what_it_is_given_and_tells_when():
    later = BackgroundThread()
    begin, done = threading.Event(), []

    def work():
        begin.wait(10)
        done.append("slow")

    later.submit("slow", work)
    later.submit("next", lambda: done.append("next"))
    later.settle("next")  # not begun yet: then it isn't worth waiting for
    assert done == []
    begin.set()
    later.settle("slow")
    later.settle("nobody")
    assert done == ["slow"]


def test_what_fails_in_the_thread_is_its_own_affair():
    later = BackgroundThread()

    def fails():
        raise ValueError("no")

    later.submit("bad", fails)
    later.settle("bad")
    done = threading.Event()
    later.submit("good", done.set)
    assert done.wait(10)


class Merge:
    """Work of one piece: whether it has begun, whether it may go on, and whether it is done."""

    def __init__(self, later):
        self.later, self.begun, self.done = later, threading.Event(), threading.Event()
        self.went_on = None

    def __call__(self):
        self.begun.set()
        with self.later.turn() as self.went_on:
            self.done.set()


def patient(monkeypatch, seconds):
    """A thread that waits so long for its turn, and a merge for it."""
    monkeypatch.setattr(background, "PATIENCE", seconds)
    later = BackgroundThread()
    return later, Merge(later)


def test_a_merge_waits_while_a_task_of_its_process_runs(monkeypatch):
    later, merge = patient(monkeypatch, 60.0)
    with later.task():
        later.submit("merge", merge)
        assert not merge.done.wait(0.1)
    assert merge.done.wait(10)


def test_it_waits_no_longer_than_it_has_patience_for(monkeypatch):
    later, merge = patient(monkeypatch, 0.01)
    with later.task():
        later.submit("merge", merge)
        assert merge.done.wait(10)


def test_a_task_waits_only_for_the_piece_under_way(monkeypatch):
    later, second = patient(monkeypatch, 60.0)
    first, go = threading.Event(), threading.Event()

    def work():
        with later.turn() as went_on:
            assert went_on
            first.set()
            go.wait(10)
        second()

    later.submit("merge", work)
    assert first.wait(10)
    with later.task():
        waiting = threading.Thread(target=later.settle, args=("merge",), daemon=True)
        waiting.start()
        go.set()
        waiting.join(10)
        assert not waiting.is_alive()
    assert second.went_on is False


def test_a_merge_that_has_not_had_its_turn_gets_none_once_a_task_waits_for_it(monkeypatch):
    later, merge = patient(monkeypatch, 60.0)
    with later.task():
        later.submit("merge", merge)
        assert merge.begun.wait(10)
        later.settle("merge")
    assert merge.went_on is False


def test_the_next_merge_is_not_concerned(monkeypatch):
    later, first = patient(monkeypatch, 0.01)
    with later.task():
        later.submit("first", first)
        later.settle("first")
    second = Merge(later)
    later.submit("second", second)
    assert second.done.wait(10)
    assert second.went_on is True


def test_in_a_hurry_there_is_no_waiting(monkeypatch):
    later, _ = patient(monkeypatch, 60.0)
    with later.task(), seat(lambda: False), later.turn(hurry=True) as went_on:
        assert went_on


def test_what_was_merged_when_a_task_came_is_offered(cache, layers):
    turns = iter([True, False])
    prepare(
        SPEC, layers, cache, 10_000, "runs/t-offer", None, piece=4_000, turn=lambda: nullcontext(next(turns))
    )
    offer = offered(cache.store, "runs/t-offer")
    assert next(turns, "none") == "none"  # it was asked twice
    assert content(offer, cache) == content(layers, cache)
    assert any(ref.level == 1 for ref in offer)
    assert deepest(offer) == 8  # where it was not merged


def test_nothing_is_offered_where_nothing_was_merged_when_a_task_came(cache, layers):
    prepare(SPEC, layers, cache, 10_000, "runs/t-offer", None, turn=lambda: nullcontext(False))
    assert offered(cache.store, "runs/t-offer") is None


def test_there_are_fewer_seats_than_cores(monkeypatch, tmp_path):
    monkeypatch.setattr(background.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(background, "cores", lambda: 3)
    with seat(lambda: False), seat(lambda: False):
        assert background._free_seat() is None
        with seat(lambda: True):  # in a hurry: without
            pass
    free = background._free_seat()
    assert free is not None
    os.close(free)


def test_where_no_file_can_be_locked_there_is_nothing_to_wait_for(monkeypatch, tmp_path):
    monkeypatch.setattr(background.tempfile, "gettempdir", lambda: str(tmp_path / "nowhere"))
    with seat(lambda: False):
        pass
