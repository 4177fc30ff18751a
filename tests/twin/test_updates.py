"""Wishes that can't be granted are refused by name, at once or in the history.

The query goes on, and the other wishes are granted, at their time.
"""

from __future__ import annotations

import json

import pytest

from sterna.configuration import Configuration
from sterna.control import EventTime, event_time
from sterna.errors import InvalidInput, UpdateRefused
from sterna.targets import bins, rescale
from sterna.testing import Clock
from twin.small import adding, chain, counts, rows, totals


def configuration(twin, operator=None):
    return twin.coordinator.last.configurations[operator or twin.flow.operators[0].name]


def history(twin, kind):
    return [event for event in twin.coordinator.history.events() if event["kind"] == kind]


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({16: 0}, "bin 16 does not exist: there are 16 bins"),
        ({-1: 0}, "bin -1 does not exist"),
        ({3: 3}, "worker 3 does not exist: there are 3 workers"),
        ({3: -1}, "worker -1 does not exist"),
        ([(1, 0), (1, 2)], "bin 1 is given to two workers, 0 and 2"),
        ([(1, 0, 2)], r"\(1, 0, 2\) is not a pair"),
        ({1.5: 0}, "not a pair"),
        ({"1": 0}, "not a pair"),
        ({}, "names no bin"),
        (7, "7 is not a target"),
        (None, "None is not a target"),
    ],
)
def test_targets_that_name_what_does_not_exist(start, target, said):
    twin = start(counts())
    with pytest.raises(UpdateRefused, match=said):
        twin.migrate(target)
    twin.epoch(rows(1))
    assert configuration(twin) == Configuration.initial(16, 3)
    assert twin.coordinator.history.events() == []


@pytest.mark.parametrize("count", [0, -1, 3, 100, 2**21, 1.0, True, "8", None])
def test_numbers_of_bins_that_are_none(count):
    with pytest.raises(InvalidInput, match="number of bins") as caught:
        bins(count)
    assert str(count) in str(caught.value)


@pytest.mark.parametrize("count", [0, -1, -8, 5000, 2.0, True, "8", None])
def test_numbers_of_workers_that_are_none(count):
    with pytest.raises(InvalidInput, match="number of workers") as caught:
        rescale(count)
    assert str(count) in str(caught.value)


@pytest.mark.parametrize(("options", "said"), [({"bins": 12}, "12"), ({"workers": -2}, "-2")])
def test_a_query_does_not_start_with_them(start, options, said):
    with pytest.raises(InvalidInput, match=said):
        start(counts(), **options)
    start(counts())  # and leaves no lock behind


@pytest.mark.parametrize("at", [-1, True, "soon", "2026-13-01", 1.5])
def test_times_that_are_none(start, at):
    twin = start(counts())
    with pytest.raises(InvalidInput) as caught:
        twin.migrate(rescale(2), at=at)
    assert str(at) in str(caught.value)


def test_an_operator_that_does_not_exist(start):
    twin = start(chain(adding))
    with pytest.raises(
        InvalidInput, match=r"operator 'third' does not exist; there are \['first', 'second'\]"
    ):
        twin.migrate(rescale(2), operator="third")


def test_an_epoch_that_is_frozen(start):
    twin = start(counts())
    twin.epoch(rows(1))
    twin.epoch(rows(1))
    for epoch in (0, 1):
        with pytest.raises(
            UpdateRefused,
            match=f"epoch {epoch} is already frozen; the earliest epoch that can still change is 2",
        ):
            twin.migrate(rescale(2), at=epoch)
    twin.migrate(rescale(2), at=2)
    twin.epoch(rows(1))
    assert configuration(twin).workers == 2


def test_an_update_that_comes_while_its_epoch_runs_is_refused(start):
    refused = []

    def fold(key, record, state):
        for epoch in (0, 1):
            try:
                twin.migrate(rescale(2 + epoch), at=epoch)
            except UpdateRefused as error:
                refused.append(str(error))
        return adding(key, record, state)

    twin = start(chain(fold), repeat=0.0)
    twin.epoch(rows(1))
    assert len(refused) == 1
    assert "epoch 0 is already frozen" in refused[0]
    assert configuration(twin).workers == 3
    twin.epoch()
    assert configuration(twin).workers == 3  # to 3 workers, which is what there is
    assert len(history(twin, "applied")) == 1


ENTRY = {
    "name": "x",
    "target": {"kind": "rescale", "workers": 2},
    "when": {},
    "operator": None,
    "cause": "test",
}


@pytest.mark.parametrize(
    "change",
    [
        {"target": {"kind": "rescale", "workers": -2}},
        {"target": {"kind": "rescale"}},
        {"target": {"kind": "bins", "bins": 12}},
        {"target": {"kind": "explicit", "assignment": [[1]]}},
        {"target": {"kind": "explicit", "assignment": [[99, 0]]}},
        {"target": {"kind": "explicit", "assignment": [[0, 99]]}},
        {"target": {"kind": "explicit", "assignment": [[2**80, 0]]}},
        {"target": {"kind": "explicit", "assignment": [[0.5, 0]]}},
        {"target": {"kind": "explicit", "assignment": 5}},
        {"target": {"kind": "magic"}},
        {"target": "rescale"},
        {"target": None},
        {"when": {"epoch": 0}},
        {"when": {"epoch": -1}},
        {"when": {"epoch": float("nan")}},
        {"when": {"epoch": 2.5}},
        {"when": {"epoch": "2"}},
        {"when": {"epoch": 2, "wall": 3}},
        {"when": {"never": 2}},
        {"when": "now"},
        {"when": None},
        {"operator": "other"},
        {"operator": ["counts"]},
        {"operator": 5},
        {"cause": {"why": "because"}},
    ],
    ids=str,
)
def test_a_malformed_entry_is_refused_in_the_history_and_the_query_goes_on(start, change):
    twin = start(counts())
    twin.epoch(rows(1, 2))
    twin.store.write_document("control/000-bad.json", {**ENTRY, **change})
    twin.store.write_document("control/001-good.json", {**ENTRY, "target": {"kind": "bins", "bins": 64}})
    twin.epoch(rows(1, 2))
    (event,) = history(twin, "refused")
    assert event["entry"]["name"] == "000-bad"
    assert event["reason"]
    assert configuration(twin) == Configuration.initial(16, 3).at_bits(6)
    assert totals(twin) == {1: 2, 2: 2}
    assert twin.coordinator.control.names() == []
    assert not twin.coordinator.wants_epoch()


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"\x00\xff\n\xfe", b'{"xxh3":"0"}\n{}', b'{"xxh3":5}', json.dumps(ENTRY).encode()]
)
def test_a_damaged_entry_is_refused_in_the_history_and_the_query_goes_on(start, data):
    twin = start(counts())
    twin.store.write("control/000-bad.json", data)
    twin.epoch(rows(1))
    (event,) = history(twin, "refused")
    assert "control/000-bad.json" in event["reason"]
    assert "damaged" in event["reason"]
    assert twin.coordinator.control.names() == []


def test_an_entry_cut_short_is_refused(start):
    twin = start(counts())
    twin.migrate(rescale(2))
    (name,) = twin.coordinator.control.names()
    whole = twin.store.read(f"control/{name}.json")
    twin.store.write(f"control/{name}.json", whole[:-7])
    twin.epoch(rows(1))
    (event,) = history(twin, "refused")
    assert event["entry"]["name"] == name
    assert configuration(twin).workers == 3


def test_wall_clock_event_time_and_epochs(start):
    clock = Clock(100.0)
    twin = start(counts(), clock=clock, watermark_delay=0)
    twin.migrate(rescale(4), at="1970-01-01T00:01:50Z")
    twin.migrate(rescale(5), at=3)
    twin.migrate(rescale(6), at=event_time("1970-01-01T00:00:00.000100Z"))
    seen = []
    for time in (10, 20, 30, 40, 100, 110):
        twin.epoch(rows(1, time=time))
        seen.append(configuration(twin).workers)
        clock.move(5 if time < 30 else 0)
    # At 110 seconds, which is the third epoch; at epoch 3; once the frontier has passed 100 microseconds.
    assert seen == [3, 3, 4, 5, 5, 6]
    assert [event["epoch"] for event in history(twin, "applied")] == [2, 3, 5]


def test_an_entry_for_event_time_comes_true_on_an_idle_stream(start):
    twin = start(counts(), watermark_delay=0)
    twin.migrate(rescale(5), at=EventTime(50))
    twin.epoch(rows(1, time=60))
    assert configuration(twin).workers == 3
    assert twin.drain() == 1
    assert configuration(twin).workers == 5


def test_an_entry_for_event_time_comes_true_when_the_last_silent_source_is_given_up(start):
    clock = Clock()
    twin = start(counts(), watermark_delay=0, idle_timeout=5.0, clock=clock)
    twin.epoch(rows(1, time=60))
    twin.migrate(rescale(5), at=EventTime(70))
    assert twin.drain() == 1
    assert twin.coordinator.last.pending
    twin.flush()
    assert configuration(twin).workers == 5


def test_pending_updates_are_rewritten_when_the_number_of_bins_changes(start):
    twin = start(counts(), bins=4, workers=4)
    twin.migrate({3: 0}, at=2)
    twin.migrate({2: 1}, at=4)
    twin.migrate(bins(16))
    twin.epoch(rows(*range(30)))
    assert configuration(twin).owners.tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
    twin.epoch(rows(*range(30)))
    twin.epoch(rows(*range(30)))
    assert configuration(twin).owners.tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [0] * 4
    twin.migrate(bins(2))
    twin.epoch(rows(*range(30)))
    assert configuration(twin).owners.tolist() == [0, 2]
    twin.epoch(rows(*range(30)))
    assert configuration(twin).owners.tolist() == [0, 1]
    assert totals(twin) == dict.fromkeys(range(30), 5)


def test_a_wish_is_judged_by_what_is_there_when_it_is_due(start):
    twin = start(counts())
    twin.migrate(rescale(2), at=10)
    twin.migrate({0: 2})  # there are three workers until epoch 10
    with pytest.raises(UpdateRefused, match="worker 5 does not exist"):
        twin.migrate({0: 5})
    twin.migrate(rescale(8))
    twin.migrate({0: 5})  # there will be eight
    twin.epoch(rows(1))
    assert len(history(twin, "applied")) == 3
    assert configuration(twin).owners[0] == 5


def test_operators_move_apart(start):
    twin = start(chain(adding))
    twin.migrate(rescale(5), operator="first")
    twin.migrate(bins(4), operator="second")
    twin.epoch(rows(*range(20)))
    assert (configuration(twin, "first").workers, configuration(twin, "first").bins) == (5, 16)
    assert (configuration(twin, "second").workers, configuration(twin, "second").bins) == (3, 4)
    moved = history(twin, "moved")
    assert {event["operator"] for event in moved} == {"first", "second"}
    assert all(
        event["bins"] > 0 and event["workers"] == configuration(twin, event["operator"]).workers
        for event in moved
    )
