"""``sterna advise``, and what ``sterna history`` tells of controllers.

The query is a twin; Spark has nothing to do with it.
"""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from controllers.streams import hot, rows
from sterna.cli import app
from sterna.controllers import Verdict, advice_only, balancer
from sterna.targets import rescale
from sterna.testing import Clock
from twin import small


@pytest.fixture
def run(start):
    """A skewed query after some epochs.

    It gets 100 rows a second, each of which keeps a worker busy for 0.05 seconds.
    """

    def begin(controllers=(), skew=None):
        clock = Clock()
        twin = start(
            small.counts(),
            bins=16,
            workers=2,
            clock=clock,
            controllers=controllers,
            work=lambda _, n: n * 0.05,
        )
        for _ in range(8):
            clock.move(2)
            twin.epoch(rows(hot(16, 0, 4, 10, 4) if skew is None else skew))
        return twin

    return begin


@pytest.fixture
def sterna(tmp_path):
    def call(command, *options, code=0):
        result = CliRunner().invoke(app, [command, str(tmp_path / "checkpoint"), *map(str, options)])
        assert result.exit_code == code, result.output
        return result

    return call


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("stopped", [False, True])
def test_it_tells_what_they_would_do_and_changes_nothing(run, sterna, tmp_path, stopped):
    twin = run()
    if stopped:
        twin.close()
    before = files(tmp_path)
    found = json.loads(sterna("advise", "--format", "json").stdout)
    assert files(tmp_path) == before
    assert (found["epoch"], found["epochs_seen"]) == (7, 8)
    level, scale = found["controllers"]
    assert (level["controller"], level["verdict"], level["operator"]) == ("balancer", "move", "counts")
    assert level["facts"]["after"] < 1.2
    assert level["operators"]["counts"]["bins"] == len(level["target"]["assignment"])
    assert (scale["controller"], scale["verdict"]) == ("autoscaler", "move")
    # 208 rows in two seconds, of 0.05 seconds each.
    assert scale["target"] == rescale(8).to_json()
    assert scale["operators"]["counts"]["workers"] == [2, 8]
    text = sterna("advise").stdout
    assert "balancer  move: counts: worker 0 has" in text
    assert "2 → 8 workers" in text
    assert "  target: --workers 8\n" in text


def test_it_says_what_a_balancer_of_the_query_would_do(start, sterna):
    twin = start(small.counts(), bins=64, workers=4, controllers=[advice_only(balancer())])
    for _ in range(3):
        twin.epoch(rows(hot(64, 0, 16, 2, 20)))
    (inside,) = twin.coordinator.history.said()
    (outside,) = json.loads(sterna("advise", "--controller", "balancer", "--format", "json").stdout)[
        "controllers"
    ]
    for what in ("target", "strategy", "operator", "facts", "why"):
        assert outside[what] == inside[what], what
    assert len(outside["target"]["assignment"]) <= 6
    (evenest,) = json.loads(
        sterna("advise", "--controller", "balancer", "--tau", "least", "--format", "json").stdout
    )["controllers"]
    assert evenest["facts"]["after"] <= outside["facts"]["after"]
    assert len(evenest["target"]["assignment"]) > len(outside["target"]["assignment"])


def test_what_it_prints_is_what_other_commands_take(run, sterna):
    run()
    text = sterna("advise", "--controller", "balancer").stdout
    (options,) = [line.split()[1:] for line in text.splitlines() if line.startswith("  target: ")]
    assert options[:2] == ["--operator", "counts"]
    (found,) = json.loads(sterna("advise", "--controller", "balancer", "--format", "json").stdout)[
        "controllers"
    ]
    planned = json.loads(sterna("plan", *options, "--format", "json").stdout)
    assert planned["target"] == found["target"]
    assert planned["operators"] == found["operators"]


def test_one_of_them_with_options(run, sterna):
    run(skew=[13] * 16)
    found = json.loads(
        sterna(
            "advise", "--controller", "autoscaler", "--most", 3, "--strategy", "batched:4", "--format", "json"
        ).stdout
    )
    (one,) = found["controllers"]
    assert one["target"] == rescale(3).to_json()
    assert one["strategy"] == {"name": "batched", "size": 4}
    assert "stay: counts is level" in sterna("advise", "--controller", "balancer").stdout


def test_what_was_said_is_in_the_history(run, sterna):
    def broken(view):
        raise ValueError("no")

    def dear(view):
        return Verdict("not worth it", declined=True)

    run([advice_only(balancer(cool_down=0)), broken, dear, advice_only(lambda view: 5)])
    found = json.loads(sterna("history", "--format", "json").stdout)
    assert [(one["name"], one["status"]) for one in found] == [
        ("broken", "off"),
        ("dear", "declined"),
        ("<lambda>", "refused"),
        ("balancer", "advised"),
    ]
    assert found[-1]["target"]["kind"] == "explicit"
    text = sterna("history").stdout
    assert "off: it raised ValueError('no')" in text
    assert "declined: not worth it" in text
    assert "advised: counts: worker 0 has" in text


def test_a_migration_of_a_controller_is_told_once(run, sterna):
    run([balancer()])
    (one,) = json.loads(sterna("history", "--format", "json").stdout)
    assert one["status"] == "done"
    assert one["cause"].startswith("controller: balancer: ")
    assert "cause: controller: balancer" in sterna("history").stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--above", 1], "above must be"),
        (["--above", 1.05], "above=1.05 must be more than 1 + tau=1.1"),
        (["--tau", "most"], "tau must be a number from 0 on, or 'least', not 'most'"),
        (["--most", 0], "most: "),
        (["--utilisation", 2], "utilisation must be"),
        (["--operator", "nobody"], "operator 'nobody' does not exist"),
        (["--pays-back", "soon"], "pays_back: "),
        (["--strategy", "magic"], "no strategy 'magic'"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(run, sterna, options, words):
    run()
    result = sterna("advise", *options, code=1)
    assert words in result.stderr
    assert "Traceback" not in result.output


def test_a_query_that_has_not_ended_an_epoch(start, sterna):
    start(small.counts())
    assert "has not ended an epoch yet" in sterna("advise", code=1).stderr
