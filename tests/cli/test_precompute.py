"""``sterna plan precompute``, beside ``sterna plan``."""

from __future__ import annotations

import json
import time

import pytest
from typer.testing import CliRunner

from sterna.cli import app
from sterna.planning import commands
from sterna.planning.mtm import mtm
from sterna.planning.values import Values
from sterna.targets import rescale
from twin import small


def sterna(*arguments, code=0):
    result = CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})
    assert result.exit_code == code, (result.output, result.exception)
    return result


@pytest.fixture
def history(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text(
        "time,workers\n" + "".join(f"{at},{count}\n" for at, count in enumerate([2, 3, 4, 3, 2, 3]))
    )
    return path


def test_values_are_made_from_a_history_and_found_again(spark, tmp_path, history):
    state = tmp_path / "state.csv"
    state.write_text("load,size\n" + "".join(f"1,{size}\n" for size in range(1, 9)))
    file = tmp_path / "values.npz"
    result = json.loads(
        sterna(
            "plan",
            "precompute",
            file,
            "--history",
            history,
            "--state",
            state,
            "--tau",
            0.5,
            "--gamma",
            0.9,
            "--json",
        ).stdout
    )
    assert (result["bins"], result["workers"], result["exact"]) == (8, [2, 3, 4], True)
    values = Values.load(file)
    assert (values.inputs.tau, values.inputs.gamma) == (0.5, 0.9)
    assert values.inputs.matrix.following(3) == {2: 0.5, 4: 0.5}
    assert len(mtm([0] * 4 + [1] * 4, range(1, 9), [1] * 8, 3, values).assignment) == 8
    assert (
        "exact" in sterna("plan", "precompute", file, "--history", history, "--bins", 8, "--tau", 0.5).stdout
    )


def test_a_query_tells_of_its_bins_and_its_past(spark, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    twin = small.start(small.counts(), checkpoint, bins=16, workers=2, clock=time.time)
    try:
        twin.epoch(small.rows(*range(40)))
        for count in (3, 2):
            twin.migrate(rescale(count))
            for _ in range(3):
                twin.epoch(small.rows(*range(40)))
    finally:
        twin.close()
    options = ["--checkpoint", checkpoint, "--tau", 1, "--json"]
    result = json.loads(sterna("plan", "precompute", tmp_path / "values.npz", "--bins", 8, *options).stdout)
    assert (result["bins"], result["workers"]) == (8, [2, 3])
    refused = sterna("plan", "precompute", tmp_path / "values.npz", *options, code=1)
    assert "16 bins can't be put into 64 groups" in refused.stderr
    # The command that has only the first word is still there.
    assert json.loads(sterna("plan", checkpoint, "--workers", 3, "--format", "json").stdout)["operators"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "--history or --checkpoint"),
        (["--workers", "two"], "'two' are no worker counts; write 8-16, or 2,4,8"),
        (["--workers", "3-2"], "'3-2' goes down; write 2-3"),
        (["--workers", "2-9999999999"], "there are at most 4096 workers"),
        (["--workers", "2-3"], "has 4 workers, which is none of the counts 2, 3"),
        (["--bins", 8, "--tau", 0.01], "the least tau is"),
        (["--bins", 2, "--tau", 5], "the worker count 4 is more than the 2 bins"),
        (["--bins", 8, "--tau", 1, "--gamma", 1], "gamma is 1.0"),
    ],
)
def test_what_is_wrong_is_said_before_spark_starts(tmp_path, history, options, words):
    if options:
        options = ["--history", history, *options]
    result = sterna("plan", "precompute", tmp_path / "values.npz", *options, code=1)
    assert words in " ".join(result.stderr.split())
    assert "Traceback" not in result.output
    assert not (tmp_path / "values.npz").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("size\n1\n", "no column 'load'"),
        ("size,load\n1,x\n", "line 2: the load of bin 0 is 'x': it must be a number from 0 on"),
        ("size,load\n1,1\n\n1,\n", "line 4: the load of bin 1 is ''"),
        ("size,load\n1,1\n1\n", "line 3: 1 entries, and the header has 2"),
        ("size,load\n", "must have a header and at least one line"),
        ("size,load\n1,-1\n", "the load of bin 0 is '-1'"),
    ],
)
def test_a_wrong_file_of_bins_is_refused(tmp_path, history, text, words):
    (tmp_path / "state.csv").write_text(text)
    result = sterna(
        "plan",
        "precompute",
        tmp_path / "v.npz",
        "--history",
        history,
        "--state",
        tmp_path / "state.csv",
        code=1,
    )
    assert words in " ".join(result.stderr.split())


def test_help_tells_the_two_commands_apart():
    told = sterna("plan", "precompute", "--help").output
    assert "--gamma" in told
    assert "some hundreds for each worker count" in " ".join(told.split())
    assert "--gamma" not in sterna("plan", "--help").output
    assert "precompute" in sterna("--help").output
    assert sterna("plan", code=2)


def test_a_file_of_bins_may_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "state.csv").write_text("size,load\n4,1\n\n5,2\n", encoding="utf-8-sig")
    assert commands._bins_of_file(tmp_path / "state.csv") == ([4, 5], [1, 2])
