from __future__ import annotations

import io
import itertools
import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from sterna.bench import planner as benchmark
from sterna.bench import response
from sterna.bench.latency import Histogram
from sterna.bench.planner_traces import made_up, of_folder
from sterna.bench.response import Way
from sterna.cli import app
from sterna.errors import InvalidInput

FIGURES = Path(__file__).parents[2] / "docs" / "figures" / "planner.json"
OTHERS = {"storm", "consistent", "consistent_bounded", "redist", "ssm", "ssm_as_even_as_consistent"}


def planner(*arguments, code=0):
    result = CliRunner().invoke(app, ["bench", "planner", *map(str, arguments)], env={"COLUMNS": "200"})
    assert result.exit_code == code, (result.output, result.exception)
    return result


def moved_by_storm(counts, bins):
    """What moves if every worker gets as many bins, one after the other.

    In multiples of all state, bins being alike.
    """
    return sum(
        sum(at * before // bins != at * after // bins for at in range(bins)) / bins
        for before, after in itertools.pairwise(counts)
    )


@pytest.fixture(scope="module")
def found(spark, tmp_path_factory):
    """The figures of all experiments, small."""
    folder = tmp_path_factory.mktemp("planner")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(response, "WAYS", [Way("Storm", "all_at_once"), Way("single step", "matched")])
        result = json.loads(planner("--quick", "--json", "--dir", folder).stdout)
    assert list(folder.iterdir()) == []
    return result


def test_every_experiment_is_made_on_a_made_up_trace(found):
    ways = {("Storm", "all_at_once"), ("single step", "matched")}
    told = {
        (line["application"], line["planner"], line["strategy"]) for line in found["experiments"]["response"]
    }
    assert told == {(one, *way) for one in ("words", "patterns") for way in ways}
    assert [trace["name"] for trace in found["traces"]] == ["made up, seed 0"]
    assert found["experiments"].keys() == {"state", "gamma", "tau", "bins", "time", "response"}


def test_storm_moves_what_storm_moves(found):
    counts = made_up(benchmark.QUICK.days, *benchmark.QUICK.workers, seed=0).counts
    (alike,) = (line for line in found["experiments"]["state"] if line["state"] == "alike")
    storm, migrations = alike["planners"]["storm"], found["traces"][0]["migrations"]
    assert storm["moved_in_all"] == pytest.approx(moved_by_storm(counts, alike["bins"]), abs=1e-3)
    assert migrations == sum(before != after for before, after in itertools.pairwise(counts))
    assert storm["moved_percent"] == pytest.approx(100 * storm["moved_in_all"] / migrations, abs=1e-3)


def test_planners_keep_the_balance_that_was_asked_for(found):
    for line in itertools.chain(*(found["experiments"][name] for name in ("state", "tau", "bins"))):
        for name in {"ssm", "mtm", "consistent_bounded"} & line["planners"].keys():
            assert line["planners"][name]["tau_max"] <= line["tau"] + 1e-3, name


def test_all_planners_are_compared_for_all_balances_and_numbers_of_bins(found):
    for name in ("state", "tau"):
        assert all(line["planners"].keys() == OTHERS | {"mtm"} for line in found["experiments"][name])
    assert {line["state"] for line in found["experiments"]["tau"]} == {"alike", "Zipf 0.5"}
    by_bins = {line["bins"]: line["planners"].keys() for line in found["experiments"]["bins"]}
    assert by_bins == {16: OTHERS | {"mtm"}, 32: OTHERS}


def test_goals_are_met_for_skewed_state_too(found):
    worst = max(
        line["planners"]["ssm"]["moved_in_all"] / line["planners"]["storm"]["moved_in_all"]
        for name in ("state", "tau", "bins")
        for line in found["experiments"][name]
    )
    assert found["goals"]["ssm_to_storm"] == pytest.approx(worst, abs=1e-4)
    assert found["goals"]["ssm_to_storm"] <= 0.5
    assert found["goals"]["mtm_to_ssm"] <= 1


def test_discounts_are_compared_at_two_balances(found):
    by_state = {}
    for one in found["experiments"]["gamma"]:
        by_state.setdefault(one["state"], []).append((one["tau"], one["gamma"]))
    assert len(by_state) == 2
    for seen in by_state.values():
        assert len({tau for tau, _ in seen}) == 2
        assert len(set(seen)) == len(seen)


def test_texts_that_are_due_shortly_before_a_move_count_as_its_own():
    def waited(seconds):
        histogram = Histogram()
        histogram.record(seconds, 10)
        return {"histogram": histogram.to_json()}

    turn = response.Turn(Way("Storm", "all_at_once"), response.SMOKE, 0)
    names = [phase.name for phase in turn.phases()]
    assert [name.split(": ")[-1] for name in names] == ["before", "lead", "during", "back"]
    told = turn.figures(dict(zip(names, map(waited, (0.1, 3.0, 1.0, 9.0)), strict=True)))
    assert told["before"]["max_ms"] == 100
    assert told["during"]["max_ms"] == 3000
    assert told["during"]["mean_ms"] == pytest.approx(2000, rel=0.02)


def line(state, **moved):
    return {"state": state, "planners": {name: {"moved_in_all": part} for name, part in moved.items()}}


def test_a_goal_is_the_worst_of_all_lines():
    made = {
        "state": [line("alike", ssm=1, storm=10, mtm=1), line("Zipf 1", ssm=6, storm=10)],
        "bins": [line("Zipf 1", ssm=2, consistent_bounded=4)],
        "gamma": [line("alike", ssm=10, mtm=11)],
        "time": [{"ssm_ms_p50": 1}],
    }
    assert benchmark._goals(made) == {
        "ssm_to_storm": 0.6,
        "ssm_to_bounded_consistent": 0.5,
        "mtm_to_ssm": 1.1,
    }


def test_figures_made_before_are_still_shown(found):
    for result in (json.loads(FIGURES.read_text()), found):
        console = Console(file=io.StringIO(), width=200)
        benchmark.show(result, console)
        told = console.file.getvalue()
        assert "By number of bins" in told
        assert f"{result['experiments']['bins'][-1]['planners']['storm']['moved_percent']:.2f}" in told


def test_traces_come_from_a_folder(spark, tmp_path):
    counts = made_up(4, 100, 900, seed=3).counts
    lines = [f"{hour * 3600},{count}" for hour, count in enumerate(counts)]
    (tmp_path / "site.csv").write_text("\n".join(["time,visits", *lines]))
    result = planner("--quick", "--traces", tmp_path, "--experiment", "bins")
    assert "site" in result.stdout
    assert of_folder(str(tmp_path), 2, 5)[0].counts == pytest.approx(made_up(4, 2, 5, seed=3).counts, abs=1)


def test_what_is_wrong_with_traces_is_said(tmp_path):
    assert "no CSV file" in planner("--traces", tmp_path, code=1).stderr
    (tmp_path / "flat.csv").write_text("time,load\n0,1\n3600,1\n7200,1\n")
    with pytest.raises(InvalidInput, match="never changes"):
        of_folder(str(tmp_path), 2, 5)
    assert "none of state, gamma" in planner("--experiment", "luck", code=2).output
