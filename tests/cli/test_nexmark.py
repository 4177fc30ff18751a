"""``sterna nexmark``, at its smallest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sterna.bench.leg import Course
from sterna.cli import app
from sterna.nexmark import running
from sterna.nexmark.highest import Search


def test_run_moves_state_there_and_back(spark, monkeypatch, tmp_path):
    short = Course(quiet=0.8, lead=0.2, longest=30.0, settle=2.0, rest=0.1, window=0.2)
    monkeypatch.setattr(running, "QUICK", short)
    work, page = tmp_path / "work", tmp_path / "q4.html"
    work.mkdir()
    arguments = [
        "q4",
        "--rate",
        "2000",
        "--bins",
        "16",
        "--in-flight",
        "300",
        "--warm-up",
        "0.5",
        "--quick",
        "--json",
    ]
    for strategy in ("all_at_once", "matched"):
        arguments += ["--strategy", strategy]
    result = CliRunner().invoke(
        app, ["nexmark", "run", *arguments, "--dir", str(work), "--report", str(page)]
    )
    assert result.exit_code == 0, (result.output, result.exception)
    told = json.loads(result.stdout)
    names = [f"{name} {way}" for name in ("all_at_once", "matched") for way in ("there", "and back")]
    assert [one["name"] for one in told["migrations"]] == names
    assert [one["way"] for one in told["migrations"]] == ["there", "back"] * 2
    # A quarter of the bins of both operators, the open auctions and the averages.
    assert told["operators"] == ["binary", "aggregate"]
    assert all(one["ended"] and one["bins"] == 2 * 4 for one in told["migrations"])
    assert all(one["state_bytes"] > 0 for one in told["migrations"])
    assert told["runs"].keys() == {"all_at_once", "matched"}
    assert (told["in_flight"], told["searched"], told["search"]) == (300, False, None)
    assert told["steady"]["records"] > 0
    assert "NEXMark q4" in page.read_text(encoding="utf-8")
    assert list(work.iterdir()) == []
    assert spark.streams.active == []


def test_bins_that_can_not_be_are_refused_before_anything_is_started():
    result = CliRunner().invoke(app, ["nexmark", "run", "q4", "--bins", "100"])
    assert result.exit_code == 1
    assert "power of two" in result.stderr


def test_without_a_rate_one_is_searched_also_if_it_is_to_be_quick(spark, monkeypatch, tmp_path):
    monkeypatch.setattr(
        running, "QUICK", Course(quiet=0.8, lead=0.2, longest=30.0, settle=2.0, rest=0.1, window=0.2)
    )
    monkeypatch.setattr(
        running, "QUICK_SEARCH", Search(first=5_000.0, short=1, tries=1, warm=0.3, seconds=1.5)
    )
    arguments = ["q2", "--strategy", "batched:3", "--bins", "16", "--warm-up", "0.2", "--quick", "--json"]
    result = CliRunner().invoke(app, ["nexmark", "run", *arguments, "--dir", str(tmp_path)])
    assert result.exit_code == 0, (result.output, result.exception)
    told = json.loads(result.stdout)
    assert told["searched"]
    # A quarter, after a try that took too long.
    assert 5_000 % told["search"]["tries"][0]["events_per_epoch"] == 0
    assert 0 < told["rate"] <= told["search"]["found"]
    assert told["search"]["reductions"] == len(told["search"]["refused"])
    assert [one["steps"] for one in told["migrations"]] == [2, 2]  # four of sixteen bins
    assert list(tmp_path.iterdir()) == []


def test_write_says_what_it_wrote(tmp_path):
    folder = str(tmp_path / "events")
    result = CliRunner().invoke(app, ["nexmark", "write", folder, "--events", "1000", "--each", "500"])
    assert result.exit_code == 0
    assert "6 files written" in result.stdout
    more = CliRunner().invoke(
        app, ["nexmark", "write", folder, "--events", "1500", "--each", "500", "--json"]
    )
    told = json.loads(more.stdout)
    assert (told["events"], told["folder"]) == (1500, folder)
    assert len(told["files"]) == 3
    assert all(Path(file).is_file() for file in told["files"])
    again = CliRunner().invoke(app, ["nexmark", "write", folder, "--events", "1000", "--each", "400"])
    assert again.exit_code == 1
    assert "holds other events" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "q9"], "there is no query 'q9'"),
        (["run", "q4", "--strategy", "quickly"], "no strategy 'quickly'"),
    ],
)
def test_what_there_is_not_is_refused(arguments, says):
    result = CliRunner().invoke(app, ["nexmark", *arguments])
    assert result.exit_code != 0
    assert says in " ".join(result.output.split())
