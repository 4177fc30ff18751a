"""``sterna nexmark``, at its smallest."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from sterna.bench.leg import Course
from sterna.cli import app
from sterna.nexmark import running


def test_run_moves_state_there_and_back(spark, monkeypatch, tmp_path):
    short = Course(quiet=0.8, lead=0.2, longest=30.0, settle=2.0, rest=0.1, window=0.2)
    monkeypatch.setattr(running, "QUICK", short)
    work, page = tmp_path / "work", tmp_path / "q4.html"
    work.mkdir()
    arguments = ["q4", "--rate", "2000", "--strategy", "matched", "--bins", "16", "--quick", "--json"]
    result = CliRunner().invoke(
        app, ["nexmark", "run", *arguments, "--dir", str(work), "--report", str(page)]
    )
    assert result.exit_code == 0, (result.output, result.exception)
    told = json.loads(result.stdout)
    assert [one["name"] for one in told["migrations"]] == ["matched there", "matched and back"]
    assert all(one["ended"] and one["bins"] == 4 for one in told["migrations"])
    assert told["steady"]["records"] > 0
    assert "NEXMark q4" in page.read_text(encoding="utf-8")
    assert list(work.iterdir()) == []
    assert spark.streams.active == []


def test_write_says_what_it_wrote(tmp_path):
    folder = str(tmp_path / "events")
    result = CliRunner().invoke(app, ["nexmark", "write", folder, "--events", "1000", "--each", "500"])
    assert result.exit_code == 0
    assert "6 files written" in result.stdout
    again = CliRunner().invoke(app, ["nexmark", "write", folder, "--events", "1000", "--each", "400"])
    assert again.exit_code == 1
    assert "holds other events" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["run", "q9"], "there is no query 'q9'"), (["run", "q4", "--strategy", "quickly"], "is none of")],
)
def test_what_there_is_not_is_refused(arguments, says):
    result = CliRunner().invoke(app, ["nexmark", *arguments])
    assert result.exit_code != 0
    assert says in " ".join(result.output.split())
