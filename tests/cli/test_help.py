from __future__ import annotations

import json
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from sterna.cli import app

WIDE = {"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"}


def sterna(*arguments):
    return CliRunner().invoke(app, arguments, env=WIDE)


def test_version_names_sterna_and_pyspark():
    result = sterna("--version")
    assert result.exit_code == 0
    assert version("sterna") in result.output
    assert version("pyspark") in result.output


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ((), ["demo", "bench", "--version"]),
        (("demo",), ["--format", "--json", "--quick", "--report", "minutes"]),
        (("bench",), ["throughput", "state", "bins"]),
        (("bench", "throughput"), ["--json", "--quick", "--transform-with-state", "groupBy"]),
        (("bench", "state"), ["--json", "--quick", "64M"]),
        (("bench", "bins"), ["--json", "--quick", "2^20"]),
    ],
)
def test_help_says_what_a_command_does(command, words):
    result = sterna(*command, "--help")
    assert result.exit_code == 0
    assert [word for word in words if word not in result.output] == []


def test_no_arguments_show_the_help():
    assert "bench" in sterna().output


@pytest.mark.parametrize(
    "command",
    [("fly",), ("bench", "throughput", "--rounds", "0"), ("bench", "state", "--dir", "/no/such/folder")],
)
def test_a_mistake_in_the_command_exits_with_2(command):
    assert sterna(*command).exit_code == 2


def test_json_is_short_for_the_format():
    short, long = sterna("nexmark", "lines", "--json"), sterna("nexmark", "lines", "--format", "json")
    assert json.loads(short.stdout) == json.loads(long.stdout)
    assert sterna("nexmark", "lines").stdout != short.stdout
    assert sterna("nexmark", "lines", "--", "--json").exit_code == 2
