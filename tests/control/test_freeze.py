"""Freezing the control stream: what is due is applied, in order, and nothing by half.

What is not due waits, and what can't be is refused.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna.configuration import Configuration
from sterna.control import ControlStream, Entry, EventTime, event_time, new_name, parse_when
from sterna.errors import InvalidInput, UpdateRefused
from sterna.freezing import freeze_entries
from sterna.state.store import Store
from sterna.targets import bins, explicit, rescale

targets = st.one_of(
    st.integers(1, 6).map(rescale),
    st.integers(0, 5).map(lambda bits: bins(1 << bits)),
    st.dictionaries(st.integers(0, 40), st.integers(0, 7), min_size=1, max_size=3).map(explicit),
)
whens = st.one_of(
    st.just({}),
    st.integers(0, 10).map(lambda n: {"epoch": n}),
    st.integers(0, 10).map(lambda n: {"wall": float(n)}),
    st.integers(0, 10).map(lambda n: {"event": n}),
)
operators = st.sampled_from([None, "a", "b", "nobody"])
entries = st.lists(st.tuples(targets, whens, operators), max_size=8).map(
    lambda some: [Entry(f"{i:03d}", t, w, o) for i, (t, w, o) in enumerate(some)]
)
START = {"a": Configuration.initial(8, 3), "b": Configuration.initial(16, 2)}


def fresh_at(some, epoch):
    """Entries come one by one, so to say: the i-th before epoch i."""
    return [entry for i, entry in enumerate(some) if i % 4 == epoch]


@given(entries)
def test_each_entry_has_one_outcome_and_they_make_up_the_configuration(some):
    current, pending, outcomes = dict(START), [], {}
    for epoch in range(12):
        before = dict(current)
        frozen = freeze_entries(
            epoch, current, pending, fresh_at(some, epoch), now=float(epoch), watermark=epoch - 1 or None
        )
        for entry in frozen.applied:
            outcomes.setdefault(entry.name, []).append("applied")
            for name in [entry.operator] if entry.operator else list(before):
                before[name] = entry.target.resolve(before[name])
            assert entry.when.get("epoch", epoch) == epoch
            assert entry.when.get("wall", 0) <= epoch
            assert entry.when.get("event", -1) <= epoch - 1
        for entry, reason in frozen.refused:
            outcomes.setdefault(entry.name, []).append(reason)
        assert before == frozen.configurations
        current, pending = frozen.configurations, frozen.pending
    assert pending == []
    assert {name: len(some) for name, some in outcomes.items()} == {
        entry.name: 1 for epoch in range(12) for entry in fresh_at(some, epoch)
    }


@given(entries, st.randoms())
def test_the_order_of_names_counts_and_not_the_order_of_reading(some, random):
    middle = len(some) // 2
    pending, fresh = some[:middle], some[middle:]
    one = freeze_entries(3, START, pending, fresh, 5.0, 5)
    two = freeze_entries(
        3, START, random.sample(pending, len(pending)), random.sample(fresh, len(fresh)), 5.0, 5
    )
    assert one == two


def test_an_entry_for_two_operators_is_applied_to_both_or_to_none():
    frozen = freeze_entries(0, START, [], [Entry("x", explicit({0: 2}))], 0.0, None)
    assert frozen.configurations == START
    assert "worker 2 does not exist: there are 2 workers" in frozen.refused[0][1]


def test_a_refused_entry_hinders_no_other():
    some = [Entry("1", explicit({99: 0}), operator="a"), Entry("2", rescale(5), operator="a")]
    frozen = freeze_entries(0, START, [], some, 0.0, None)
    assert [entry.name for entry in frozen.applied] == ["2"]
    assert frozen.configurations["a"].workers == 5


def test_an_epoch_that_has_passed_is_refused_and_says_which_is_next():
    frozen = freeze_entries(7, START, [], [Entry("x", rescale(2), {"epoch": 6})], 0.0, None)
    assert frozen.refused[0][1] == "epoch 6 is already frozen; the next one is 7"


def test_a_waiting_entry_remembers_how_its_bins_were_numbered():
    waiting = freeze_entries(
        0, START, [], [Entry("x", explicit({7: 0}), {"epoch": 2}, "a")], 0.0, None
    ).pending
    assert waiting[0].target.bits == 3
    finer = {**START, "a": START["a"].at_bits(4)}
    frozen = freeze_entries(2, finer, waiting, [], 0.0, None)
    assert frozen.configurations["a"].owners.tolist()[-2:] == [0, 0]


@given(targets, whens, operators)
def test_entries_through_json_and_back(target, when, operator):
    entry = Entry("name", target, when, operator, "because")
    assert Entry.from_json(entry.to_json()) == entry


def test_entries_on_disk_in_order_and_damaged_ones_apart(tmp_path):
    stream = ControlStream(Store.open(str(tmp_path)))
    some = [Entry(new_name(float(second)), rescale(second)) for second in (3, 1, 2)]
    for entry in some:
        stream.append(entry)
    stream._store.write("control/zzz.json", b"nonsense")
    stream._store.write("control/readme.txt", b"no entry")
    names = stream.names()
    assert names == [*sorted(entry.name for entry in some), "zzz"]
    read, bad, unfinished = stream.read([*names, "gone"])
    assert unfinished == []
    assert [entry.target.workers for entry in read] == [1, 2, 3]
    assert [name for name, _ in bad] == ["zzz"]
    stream.remove(names)
    stream.remove(names)
    assert stream.names() == []


def test_what_several_writers_append_at_once_is_all_there(tmp_path):
    def write(writer):
        stream = ControlStream(Store.open(str(tmp_path)))
        for workers in range(1, 26):
            stream.append(Entry(new_name(5.0), rescale(workers), cause=f"writer {writer}"))

    writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for one in writers:
        one.start()
    seen = ControlStream(Store.open(str(tmp_path)))
    while any(one.is_alive() for one in writers):
        _, bad, unfinished = seen.read(seen.names(), 6.0)
        assert (bad, unfinished) == ([], [])
    entries, *_ = seen.read(seen.names(), 6.0)
    found = Counter((entry.cause, entry.target.workers) for entry in entries)
    assert found == {(f"writer {number}", workers): 1 for number in range(8) for workers in range(1, 26)}


def test_an_entry_that_can_not_be_read_for_a_moment_is_not_lost(tmp_path):
    stream, entry = ControlStream(Store.open(str(tmp_path))), Entry(new_name(100.0), rescale(2))
    stream.append(entry)
    path = tmp_path / "control" / f"{entry.name}.json"
    content = path.read_bytes()
    path.unlink()
    path.symlink_to(path)  # not even root can read that
    long_after = 100_000.0
    assert stream.read([entry.name], long_after) == ([], [], [entry.name])
    assert not stream.worth_reading(entry.name, long_after + 0.5)
    assert stream.worth_reading(entry.name, long_after + 1.5)
    assert stream.read([entry.name], long_after + 59) == ([], [], [entry.name])
    (_, [(name, reason)], unfinished) = stream.read([entry.name], long_after + 61)
    assert (name, unfinished) == (entry.name, [])
    assert "can't" in reason
    path.unlink()
    path.write_bytes(content)
    assert [one.name for one in stream.read([entry.name], long_after + 62)[0]] == [entry.name]
    assert stream.worth_reading(entry.name, long_after + 62)


def test_an_entry_is_known_by_its_file_whatever_it_calls_itself(tmp_path):
    stream = ControlStream(Store.open(str(tmp_path)))
    stream._store.write_document("control/file.json", Entry("other", rescale(2)).to_json())
    assert [entry.name for entry in stream.read(["file"])[0]] == ["file"]


def test_names_sort_by_time_and_are_unique():
    assert new_name(1.0) < new_name(2.0) < new_name(1e9) < new_name(1.7e9)
    assert len({new_name(5.0) for _ in range(100)}) == 100


def test_times_as_people_write_them():
    noon = datetime(2026, 12, 1, 3, tzinfo=timezone.utc)
    assert parse_when(None) == {}
    assert parse_when(5) == {"epoch": 5}
    assert parse_when(noon) == parse_when("2026-12-01T03:00:00Z") == {"wall": noon.timestamp()}
    assert parse_when("2026-12-01T04:00:00+01:00") == {"wall": noon.timestamp()}
    assert parse_when(EventTime(7)) == {"event": 7}
    assert event_time(noon) == EventTime(int(noon.timestamp() * 1e6))
    assert event_time(datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=3)) == EventTime(3)


@pytest.mark.parametrize(
    "at",
    [True, 1.5, "tomorrow", [], -1, datetime(2026, 12, 1), "2026-12-01T03:00:00"],  # noqa: DTZ001
)
def test_times_that_are_none(at):
    with pytest.raises(InvalidInput):
        parse_when(at)


def test_what_is_surely_before():
    now, three, wall = (
        Entry("1", rescale(1)),
        Entry("2", rescale(1), {"epoch": 3}),
        Entry("3", rescale(1), {"wall": 9.0}),
    )
    assert now.surely_before(three)
    assert now.surely_before(wall)
    assert three.surely_before(replace(three, when={"epoch": 4}))
    assert not three.surely_before(replace(three, when={"epoch": 2}))
    assert not three.surely_before(wall)
    assert not three.surely_before(now)


@pytest.mark.parametrize("data", [{}, {"name": "x"}, {"name": "x", "target": {}, "when": {}}, [], "x", None])
def test_what_is_no_entry_is_refused(data):
    with pytest.raises(UpdateRefused):
        Entry.from_json(data)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stratgy": {"name": "fluid"}}, "'stratgy', which is unknown; it may have name, action"),
        ({"strategy": ""}, "strategy must be like"),
        ({"strategy": 0}, "strategy must be like"),
        ({"strategy": []}, "strategy must be like"),
        ({"strategy": {}}, "strategy must be like"),
        ({"target": {"kind": "rescale", "workers": 2, "planer": "ssm"}}, "'planer', which is unknown"),
    ],
)
def test_what_is_misspelt_is_not_passed_over(change, words):
    with pytest.raises(UpdateRefused, match=words):
        Entry.from_json({**Entry("1", rescale(2)).to_json(), **change})


def test_an_entry_that_looks_damaged_gets_some_seconds(tmp_path):
    store = Store.open(tmp_path)
    stream = ControlStream(store)
    name = new_name(1000.0)
    store.write(f"control/{name}.json", b"{")
    assert stream.read([name], 1004.0)[2] == [name]
    assert [one for one, _ in stream.read([name], 1006.0)[1]] == [name]
    assert [one for one, _ in stream.read([name], 900.0)[1]] == [name]
    stream.append(Entry(name, rescale(2)))
    assert [entry.name for entry in stream.read([name], 1004.0)[0]] == [name]


def test_a_link_to_nowhere_and_one_to_itself_do_no_harm(tmp_path):
    stream = ControlStream(Store.open(str(tmp_path)))
    stream.append(Entry("b", rescale(2)))
    for name, to in (("a", "a.json"), ("c", "nowhere")):
        (tmp_path / "control" / f"{name}.json").symlink_to(to)
    entries, bad, unfinished = stream.read(stream.names(), 1e9)
    assert ([entry.name for entry in entries], bad, unfinished) == (["b"], [], ["a"])
    _, bad, unfinished = stream.read(stream.names(), 1e9 + 61)
    assert ([name for name, _ in bad], unfinished) == (["a"], [])


def test_an_error_does_not_quote_a_whole_large_target():
    target = {"kind": "explicit", "assignment": [list(range(10_000))]}
    with pytest.raises(UpdateRefused) as error:
        Entry.from_json({"name": "n", "when": {}, "target": target})
    assert len(str(error.value)) < 1_000
