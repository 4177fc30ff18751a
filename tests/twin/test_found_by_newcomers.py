"""What people found who tried to break migrations."""

from __future__ import annotations

import json
import sys
import time

import pytest
from typer.testing import CliRunner

from sterna import strategies
from sterna.cli import app
from sterna.control import DIRECTORY, Entry, event_time, new_name
from sterna.errors import InvalidInput, UpdateRefused
from sterna.state.store import Store
from sterna.targets import rescale
from twin.migrating import ROWS
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
    ],
)
def test_an_option_that_means_nothing_is_refused(twin, words, said):
    assert said in run("plan", twin.store.uri, "--workers", 3, *words, code=1)


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
