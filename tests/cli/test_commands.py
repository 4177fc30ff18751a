"""Steering a query from another process, through its checkpoint alone.

The query is a twin; Spark has nothing to do with it.
"""

from __future__ import annotations

import json
import threading
import time

import pytest
from typer.testing import CliRunner

from sterna import strategies
from sterna.cli import app
from sterna.migration import SETTLING
from sterna.targets import rescale
from sterna.testing import Clock
from twin import small
from twin.migrating import put

ROWS = small.rows(*range(40))


@pytest.fixture
def twin(tmp_path):
    clock = time.time
    twin = small.start(small.counts(), tmp_path / "checkpoint", bins=16, workers=2, clock=clock)
    for _ in range(4):
        twin.epoch(ROWS)
    yield twin
    twin.close()


@pytest.fixture
def sterna(tmp_path):
    def run(command, *options, code=0):
        result = CliRunner().invoke(app, [command, str(tmp_path / "checkpoint"), *map(str, options)])
        assert result.exit_code == code, result.output
        return result

    return run


def read(result):
    return json.loads(result.stdout)


def test_plan_tells_what_would_move_and_changes_nothing(twin, sterna):
    found = read(sterna("plan", "--workers", 1, "--strategy", "matched", "--format", "json"))
    one = found["operators"]["counts"]
    assert (one["bins"], one["steps"], one["epochs"]) == (8, 8, 8)
    assert one["bytes"] > 0
    assert one["peak_ms"] > 0
    assert one["assumed"]
    spread = read(sterna("plan", "--workers", 1, "--strategy", "fluid", "--gap", 2, "--format", "json"))
    assert spread["operators"]["counts"]["epochs"] == 8 + 7 * 2
    assert "fluid" in sterna("plan", "--workers", 1, "--strategy", "fluid").stdout
    twin.epoch(ROWS)
    assert twin.coordinator.last.configurations["counts"].workers == 2


def test_apply_status_history(twin, sterna):
    named = read(
        sterna("apply", "--workers", 3, "--strategy", "fluid", "--cause", "growth", "--format", "json")
    )
    assert named["status"] == "waiting"
    twin.epoch(ROWS)
    found = read(sterna("status", "--format", "json"))
    assert found["migrations"][0]["name"] == named["name"]
    assert found["operators"]["counts"]["workers"] == 3
    assert sum(found["operators"]["counts"]["bytes_by_worker"]) > 0
    assert named["name"] in sterna("status").stdout
    twin.handle(named["name"]).wait()
    (one,) = read(sterna("history", "--format", "json"))
    assert (one["status"], one["cause"], one["strategy"]["name"]) == ("done", "growth", "fluid")
    assert "growth" in sterna("history").stdout


def test_cancel_pause_resume_rollback(twin, sterna):
    name = sterna("apply", "--workers", 1, "--strategy", "fluid").stdout.split()[0]
    twin.epoch(ROWS)
    sterna("pause", name)
    twin.epoch(ROWS)
    assert read(sterna("status", "--format", "json"))["migrations"][0]["status"] == "paused"
    sterna("resume", name)
    twin.epoch(ROWS)
    assert read(sterna("cancel", name, "--format", "json")) == {"name": name, "asked": "cancel"}
    twin.epoch(ROWS)
    assert "nothing to cancel" in sterna("cancel", name, code=1).stderr
    assert "no migration 'nobody'" in sterna("pause", "nobody", code=1).stderr
    sterna("rollback", name)
    twin.epoch(ROWS)
    assert twin.handle(name).wait()["status"] == "rolled back"


def test_what_goes_back_says_so(twin, sterna):
    name = sterna("apply", "--workers", 1, "--strategy", "fluid").stdout.split()[0]
    for _ in range(3):
        twin.epoch(ROWS)
    sterna("rollback", name)
    twin.epoch(ROWS)
    assert "running, going back" in sterna("status").stdout
    (one,) = read(sterna("status", "--format", "json"))["migrations"]
    assert (one["status"], one["back"]) == ("running", True)
    twin.handle(name).wait()
    assert "going back" not in sterna("history").stdout


def test_nobodys_words_steer_a_terminal(twin, sterna):
    cause = "\x1b[31mred\x1b[2J\r\nfake  [bold]done[/bold]"
    name = sterna("apply", "--workers", 1, "--cause", cause).stdout.split()[0]
    put(twin, name="1\n2", action="cancel", migration="no\x1bbody")
    twin.epoch(ROWS)
    said = sterna("history").stdout
    assert "cause: \\x1b[31mred\\x1b[2J\\r\\nfake  [bold]done[/bold];" in said
    assert "\x1b" not in said
    assert [line.split()[0] for line in said.splitlines() if not line.startswith(" ")] == [name, "1\\n2"]


def test_event_time_of_a_query_that_has_none_is_refused_at_once(twin, sterna):
    said = sterna("apply", "--workers", 1, "--at", "event:2026-12-01T00:00:00Z", code=1).stderr
    assert "the query has no event time" in said


def test_waiting_for_it(twin, sterna):
    stop = threading.Event()

    def epochs():
        while not stop.is_set():
            twin.epoch(ROWS)
            time.sleep(0.01)

    thread = threading.Thread(target=epochs)
    thread.start()
    try:
        outcome = read(
            sterna("apply", "--workers", 1, "--strategy", "batched:2", "--wait", "--format", "json")
        )
    finally:
        stop.set()
        thread.join()
    assert (outcome["status"], outcome["bins"], outcome["steps"]) == ("done", 8, 4)


def test_all_kinds_of_targets(twin, sterna, tmp_path):
    sterna("apply", "--move", "0-3:1", "--move", "15:0", "--operator", "counts")
    twin.epoch(ROWS)
    assert twin.coordinator.last.configurations["counts"].owners.tolist() == [1] * 4 + [0] * 4 + [1] * 7 + [0]
    sterna("apply", "--bins", 32)
    twin.epoch(ROWS)
    assert twin.coordinator.last.configurations["counts"].bins == 32
    sterna("apply", "--balance")
    twin.epoch(ROWS)
    (tmp_path / "target.json").write_text(json.dumps(rescale(1).to_json()))
    sterna("apply", "--target", tmp_path / "target.json", "--at", "2020-01-01T00:00:00Z")
    twin.epoch(ROWS)
    assert twin.coordinator.last.configurations["counts"].workers == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "name one target"),
        (["--workers", 2, "--bins", 4], "name one target"),
        (["--workers", 0], "between 1 and"),
        (["--bins", 3], "power of two"),
        (["--move", "x"], "is not a move"),
        (["--move", "9-3:1"], "no range"),
        (["--move", "0:7"], "worker 7 does not exist"),
        (["--workers", 3, "--strategy", "magic:3"], "no strategy 'magic:3'"),
        (["--workers", 3, "--strategy", "batched"], "batched:16"),
        (["--workers", 3, "--strategy", "paced:soon"], "not a duration"),
        (["--workers", 3, "--operator", "nobody"], "operator 'nobody' does not exist"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(twin, sterna, options, words):
    for command in ("plan", "apply"):
        result = sterna(command, *options, code=1)
        assert words in result.stderr
        assert "Traceback" not in result.output
    assert twin.coordinator.control.names() == []


def test_a_second_migration_is_refused_at_once(twin, sterna):
    sterna("apply", "--workers", 1, "--strategy", "fluid")
    twin.epoch(ROWS)
    assert "is under way" in sterna("apply", "--workers", 3, code=1).stderr
    sterna("apply", "--workers", 3, "--if-busy", "queue")


def test_what_is_queued_says_behind_what(twin, sterna):
    first = sterna("apply", "--workers", 1, "--strategy", "fluid").stdout.split()[0]
    twin.epoch(ROWS)
    second = sterna("apply", "--workers", 3, "--if-busy", "queue").stdout.split()[0]
    third = sterna("apply", "--workers", 2, "--if-busy", "queue").stdout.split()[0]
    later = sterna("apply", "--workers", 4, "--if-busy", "queue", "--at", 1000).stdout.split()[0]
    sterna("pause", first)
    twin.epoch(ROWS)
    behind = {one["name"]: one["behind"] for one in read(sterna("status", "--json"))["pending"]}
    assert behind == {second: [first], third: [first, second], later: []}
    told = sterna("status").stdout
    assert f"waiting: {second}, queued behind {first}\n" in told
    assert f"waiting: {later}, at epoch 1000\n" in told
    assert "at once" not in told


def test_damaged_files_of_the_history_are_told_of(twin, sterna):
    twin.handle(twin.migrate(rescale(1))).wait()
    assert "done" in sterna("history").stdout
    names = twin.store.list("history")
    for name in names:
        twin.store.write(f"history/{name}", b"{")
    twin.drain()
    for _ in range(SETTLING + 1):  # until the manifests no longer tell of it
        twin.epoch(ROWS)
    for name in twin.store.list("history"):
        twin.store.write(f"history/{name}", b"{")
    result, count = sterna("history"), len(twin.store.list("history"))
    assert f"{count} files are damaged" in result.stderr
    assert "no migration yet" not in result.stdout
    result = sterna("history", "--json")
    assert (read(result), result.stderr.split(" ")[0]) == ([], str(count))


def test_no_checkpoint(tmp_path):
    result = CliRunner().invoke(app, ["status", str(tmp_path)])
    assert result.exit_code == 1
    assert "is not the checkpoint of a Sterna query" in result.stderr


def test_a_query_that_has_not_ended_an_epoch(tmp_path):
    twin = small.start(small.counts(), tmp_path / "checkpoint")
    result = CliRunner().invoke(app, ["plan", str(tmp_path / "checkpoint"), "--workers", "3"])
    twin.close()
    assert result.exit_code == 1
    assert "has not ended an epoch yet" in result.stderr


def test_the_status_before_the_first_epoch_says_so(tmp_path, sterna):
    twin = small.start(small.counts(), tmp_path / "checkpoint")
    told, found = sterna("status").stdout, read(sterna("status", "--json"))
    twin.close()
    assert "no epoch has ended yet" in told
    assert "-1" not in told
    assert (found["epoch"], found["seconds_ago"]) == (-1, None)


def test_clocks_that_disagree(tmp_path):
    clock = Clock(time.time() + 4000)
    twin = small.start(small.counts(), tmp_path / "checkpoint", clock=clock)
    twin.epoch(ROWS)
    options = ["apply", str(tmp_path / "checkpoint"), "--workers", "2", "--at", "2030-01-01T00:00:00Z"]
    result = CliRunner().invoke(app, options)
    twin.close()
    assert result.exit_code == 1
    assert "clocks disagree" in result.stderr


def test_paced_as_people_write_it():
    from sterna.spelt import strategy_of

    assert strategy_of("paced:200ms", "as_given", 0) == strategies.to_json(strategies.paced(latency=0.2))
    assert strategy_of("paced:8MB", "hottest", 1) == strategies.to_json(
        strategies.paced(bytes_per_epoch=8_000_000, order="hottest", gap=1)
    )
    assert strategy_of("all-at-once", "as_given", 0) == {"name": "all_at_once"}
