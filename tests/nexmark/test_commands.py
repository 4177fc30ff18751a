"""What ``sterna nexmark`` refuses before it does anything, in a sentence."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from sterna.cli import app


def refused(*arguments):
    result = CliRunner().invoke(app, ["nexmark", *(str(argument) for argument in arguments)])
    assert result.exit_code == 1, result.exception
    assert isinstance(result.exception, SystemExit)
    return " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("option", "value"),
    [("in-flight", 10**18), ("rate", 1e-12), ("dilation", 1e300), ("disorder", 10**20), ("events", 10**17)],
)
def test_events_that_can_not_be_are_not_written(tmp_path, option, value):
    assert f"--{option} is {value}" in refused("write", tmp_path / "events", f"--{option}", value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("option", "value"), [("in-flight", 10**18), ("dilation", 1e300)])
def test_events_that_can_not_be_are_not_run(option, value):
    assert f"--{option} is {value}" in refused("run", "q1", f"--{option}", value)


def test_a_folder_that_can_not_be_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    told = refused("write", tmp_path / "file" / "x", "--events", 100)
    assert "can't write events to" in told
    assert "Not a directory" in told


def test_part_of_a_file_is_told_from_other_events(tmp_path):
    assert (
        CliRunner()
        .invoke(app, ["nexmark", "write", str(tmp_path), "--events", "150", "--each", "100"])
        .exit_code
        == 0
    )
    more = refused("write", tmp_path, "--events", 300, "--each", 100)
    assert "is for the first 150 of these events" in more
    assert "Ask for 150 events" in more
    assert "other events" in refused("write", tmp_path, "--events", 300, "--each", 100, "--seed", 1)


def test_whole_files_are_not_followed_by_a_part(tmp_path):
    assert (
        CliRunner()
        .invoke(app, ["nexmark", "write", str(tmp_path), "--events", "200", "--each", "100"])
        .exit_code
        == 0
    )
    assert "Ask for a multiple of 100" in refused("write", tmp_path, "--events", 250, "--each", 100)
