"""What people found who tried to break migrations."""

from __future__ import annotations

import itertools
import json
import sys
import time
from datetime import datetime, timezone

import numpy as np
import pytest
from typer.testing import CliRunner

from sterna import strategies
from sterna.cli import app
from sterna.control import DIRECTORY, Entry, event_time, new_name
from sterna.errors import InvalidInput, StateError, UpdateRefused
from sterna.state.store import Store
from sterna.targets import Target, rescale
from twin.migrating import ROWS, moving, owners, put
from twin.small import counts


def run(*words, code=0, **options):
    result = CliRunner().invoke(app, [str(word) for word in words], **options)
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize("value", [10**400, True, 0, "1"])
@pytest.mark.parametrize("name", ["latency", "bytes_per_epoch"])
def test_a_pace_is_a_number_of_some_size(twin, name, value):
    with pytest.raises(InvalidInput, match="positive number"):
        strategies.from_json({"name": "paced", name: value})
    entry = Entry(new_name(), rescale(1)).to_json() | {"strategy": {"name": "paced", name: value}}
    twin.store.write_document(f"{DIRECTORY}/{entry['name']}.json", entry)
    twin.epoch(ROWS)
    assert "positive number" in run("history", twin.store.uri)


def test_a_strategy_of_ones_own_takes_no_options():
    strategies.register("plain")(lambda current, target, statistics: iter([]))
    with pytest.raises(InvalidInput, match="takes no options"):
        strategies.from_json({"name": "plain", "latency": "x"})
    assert strategies.describe({"name": "plain", "latency": "[/bold]"}) == "plain(latency=[/bold])"


def test_a_strategy_that_ends_the_program_ends_the_migration(twin):
    calls = []

    @strategies.register("leaving")
    def leaving(current, target, statistics):
        calls.append(1)
        yield [(15, 0)]
        if len(calls) > 2:
            sys.exit(9)
        yield [(bin_, 0) for bin_ in range(8, 15)]

    handle = twin.handle(twin.migrate(rescale(1), leaving))
    twin.epoch(ROWS)
    twin.epoch(ROWS)
    with pytest.raises(UpdateRefused, match="SystemExit"):
        handle.wait()


def test_a_query_without_an_epoch_can_be_asked(start):
    twin = start(counts(), bins=16, workers=2, clock=time.time)
    uri = twin.store.uri
    name = run("apply", uri, "--workers", 3).split()[0]
    assert json.loads(run("status", uri, "--format", "json"))["unseen"] == [name]
    assert run("history", uri).strip() == "no migration yet"
    assert "has not ended an epoch yet" in run("plan", uri, "--workers", 3, code=1)
    assert twin.coordinator.wants_epoch()
    twin.epoch(ROWS)
    assert twin.coordinator.last.configurations["counts"].workers == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--strategy", "fluid:3"], "takes nothing after a colon"),
        (["--strategy", "all-at-once", "--gap", "9"], "no gap between steps"),
        (["--strategy", "paced:5ib"], "not a duration"),
        (["--strategy", "paced:200"], "write paced:200ms, or paced:8MB"),
        (["--strategy", "paced:8M"], "write paced:200ms, or paced:8MB"),
    ],
)
def test_an_option_that_means_nothing_is_refused(twin, words, said):
    answer = " ".join(run("plan", twin.store.uri, "--workers", 3, *words, code=1).split())
    assert said in answer
    assert "not text" not in answer


def test_a_target_that_is_json_but_no_target(twin, tmp_path):
    file = tmp_path / "target.json"
    file.write_text('{"kind": "foo"}')
    said = run("plan", twin.store.uri, "--target", file, code=1)
    assert "unknown kind of target" in said
    assert "not JSON" not in said
    file.write_bytes(b"\xff\xfe")
    assert "not JSON" in run("plan", twin.store.uri, "--target", file, code=1)


def test_where_a_checkpoint_cannot_be(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InvalidInput, match="is a file, and a checkpoint is a directory"):
        Store.open(file)
    assert "Unrecognized filesystem type" in run("status", "foo://bar", code=1)


def test_an_event_time_that_never_comes(twin):
    with pytest.raises(UpdateRefused, match="no event time"):
        twin.migrate(rescale(3), at=event_time("2030-01-01T00:00:00Z"))


def test_what_is_rolled_back_is_not_rolled_back_again(twin):
    handle = twin.handle(twin.migrate(rescale(1)))
    twin.epoch(ROWS)
    handle.rollback()
    assert handle.wait()["status"] == "rolled back"
    with pytest.raises(UpdateRefused, match="has been rolled back already"):
        handle.rollback()


def test_bytes_go_to_one_that_moved_something(twin):
    first, second = twin.handle(twin.migrate(rescale(1))), twin.handle(twin.migrate(rescale(1)))
    twin.epoch(ROWS)
    assert first.progress()["bytes"] > 0
    assert (second.progress()["bytes"], second.progress()["reason"]) == (0, "nothing had to move")


def test_plain_json_without_its_checksum(twin):
    twin.store.write(f"{DIRECTORY}/000-plain.json", b'{"target": {}}\n')
    twin.store.write_document(f"{DIRECTORY}/001-short.json", {"name": "x", "target": rescale(3).to_json()})
    twin.epoch(ROWS)
    reasons = {one["name"]: one["reason"] for one in twin.coordinator.history.migrations().values()}
    assert "first line is not the checksum" in reasons["000-plain"]
    assert reasons["001-short"] == "an entry needs 'when'"


def test_text_with_brackets_is_printed_as_it_is(twin):
    for cause in ("[autoscaler] more load", "[/prod]"):
        run("apply", twin.store.uri, "--workers", 2, "--cause", cause)
        twin.epoch(ROWS)
    said = run("history", twin.store.uri)
    assert "[autoscaler] more load" in said
    assert "[/prod]" in said


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ([(15, 2**40)], "worker 1099511627776, which does not exist"),
        ([(2**70, 0)], "which does not exist: there are 16 bins"),
        ([(-1, 0)], "moves bin -1, which does not exist"),
        ([(15, 0), (3, 999)], "worker 999, which does not exist"),
        ([(15.7, 0)], "pairs (bin, worker) of whole numbers"),
        ([(15, 0), (15, 1)], "gives bin 15 to workers 0 and 1"),
        (7, "a step is a list of pairs"),
    ],
)
def test_steps_that_make_no_sense_are_refused_wherever_they_come_from(twin, step, words):
    @strategies.register("senseless")
    def senseless(current, target, statistics):
        yield step

    with pytest.raises(UpdateRefused) as refused:
        twin.migrate(rescale(1), senseless)
    assert words in str(refused.value)
    elsewhere = put(twin, strategy={"name": "senseless"}, target=rescale(1).to_json())
    assert words in elsewhere.progress()["reason"]
    twin.epoch(ROWS)
    assert owners(twin) == [0] * 8 + [1] * 8


def test_a_bin_that_is_named_twice_counts_once(twin):
    @strategies.register("twice")
    def twice(current, target, statistics):
        for bin_ in np.flatnonzero(current.owners != target.owners):
            yield [(bin_, target.owners[bin_])] * 2

    @strategies.register("half")
    def half(current, target, statistics):
        yield [(bin_, 0) for bin_ in range(8, 12)] * 2

    with pytest.raises(UpdateRefused, match="ends with 4 bins still to be moved"):
        twin.migrate(rescale(1), half)
    assert moving(twin, twice).wait()["bins"] == 8


def test_one_entry_that_nobody_foresaw_is_refused_and_the_others_are_taken(twin, monkeypatch):
    real = Target.resolve

    def resolve(self, *arguments):
        if self.workers == 5:
            raise ZeroDivisionError("oops")
        return real(self, *arguments)

    monkeypatch.setattr(Target, "resolve", resolve)
    bad = put(twin, target=rescale(5).to_json())
    assert bad.progress()["reason"] == "ZeroDivisionError('oops')"
    assert put(twin, target=rescale(1).to_json()).wait()["status"] == "done"


def test_an_epoch_far_away_is_brought_by_data_alone(twin):
    near = twin.handle(twin.migrate(rescale(1), at=60))
    twin.epoch(ROWS)
    assert twin.coordinator.wants_epoch()
    near.cancel()
    twin.epoch(ROWS)
    twin.migrate(rescale(1), at=1000)
    twin.epoch(ROWS)
    assert not twin.coordinator.wants_epoch()
    with pytest.raises(UpdateRefused, match="a time is written as"):
        twin.migrate(rescale(1), at=20261201)


def test_a_clock_that_is_set_back_refuses_nothing_that_was_accepted(start):
    clock = itertools.count(1e9)
    twin = start(counts(), bins=16, workers=2, clock=lambda: next(clock))
    twin.epoch(ROWS)
    handle = twin.handle(twin.migrate(rescale(1), at=datetime.fromtimestamp(1e9 + 500, timezone.utc)))
    twin.epoch(ROWS)
    clock = itertools.count(1e9 - 1000)
    twin.epoch(ROWS)
    assert handle.status == "waiting"
    clock = itertools.count(1e9 + 600)
    twin.epoch(ROWS)
    assert handle.status == "done"


def test_a_way_back_that_was_cancelled_can_be_taken_again(twin):
    handle = moving(twin, strategies.fluid())
    twin.epoch(ROWS)
    handle.rollback()
    twin.epoch(ROWS)
    handle.cancel()
    twin.epoch(ROWS)
    assert handle.status == "cancelled"
    handle.rollback()
    assert handle.wait()["status"] == "rolled back"
    assert owners(twin) == [0] * 8 + [1] * 8


def test_what_took_over_another_leads_back_to_where_that_began(twin):
    first = moving(twin, strategies.fluid())
    twin.epoch(ROWS)
    second = twin.handle(twin.migrate(rescale(3), strategies.fluid(), if_busy="merge"))
    twin.epoch(ROWS)
    assert first.status == "merged"
    second.rollback()
    assert second.wait()["status"] == "rolled back"
    assert owners(twin) == [0] * 8 + [1] * 8


def test_what_never_began_can_not_be_rolled_back(twin):
    refused = put(twin, target={"kind": "explicit", "assignment": [[1, 99]]})
    with pytest.raises(UpdateRefused, match="never began"):
        refused.rollback()


def test_an_entry_that_can_not_be_deleted_does_no_harm(twin, monkeypatch):
    real = Store.delete

    def delete(self, paths):
        paths = list(paths)
        if any(path.startswith(DIRECTORY) for path in paths):
            raise StateError("can't delete")
        real(self, paths)

    monkeypatch.setattr(Store, "delete", delete)
    assert twin.handle(twin.migrate(rescale(1))).wait()["status"] == "done"
    back = twin.handle(twin.migrate(rescale(2)))
    assert back.wait()["status"] == "done"
    for _ in range(3):
        twin.epoch(ROWS)
    assert set(owners(twin)) == {0, 1}


def test_a_long_wish_is_not_carried_along_with_every_epoch(start):
    twin = start(counts(), bins=4096, workers=2)
    twin.epoch(ROWS)
    handle = moving(twin, strategies.batched(1000), dict.fromkeys(range(2048), 1))
    wish = handle.progress()["target"]
    assert (len(wish["assignment"]), wish["more"]) == (1000, 1048)
    with pytest.raises(UpdateRefused, match="letters"):
        twin.migrate(rescale(1), cause="x" * 20_000)


@pytest.mark.parametrize("wrong", [strategies.fluid, 5])
def test_what_is_no_strategy(twin, wrong):
    with pytest.raises(InvalidInput, match=r"write sterna\."):
        twin.migrate(rescale(1), wrong)


def test_numbers_of_numpy_are_numbers(twin):
    handle = twin.handle(twin.migrate(rescale(1), strategies.batched(np.int64(4)), at=np.int64(2)))
    assert handle.wait()["steps"] == 2


def test_the_command_line_tells_when_and_from_where_to_where(twin):
    run("apply", twin.store.uri, "--workers", 1, "--at", "2099-01-01T00:00:00Z")
    twin.epoch(ROWS)
    assert "at 2099-01-01 00:00:00Z" in run("status", twin.store.uri)
    assert "none of Sterna's strategies" in run(
        "plan", twin.store.uri, "--workers", 1, "--strategy", "slow_own", code=1
    )
    assert "write paced:200ms" in run("apply", twin.store.uri, "--workers", 1, "--strategy", "paced", code=1)
    moving(twin, strategies.fluid()).wait()
    assert "counts: 8/8 of 16 bins → 16 of 16 bins" in run("history", twin.store.uri)
