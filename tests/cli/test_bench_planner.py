from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from sterna.bench import response
from sterna.bench.planner_traces import made_up, of_folder
from sterna.bench.response import Way
from sterna.cli import app
from sterna.errors import InvalidInput


def planner(*arguments, code=0):
    result = CliRunner().invoke(app, ["bench", "planner", *map(str, arguments)], env={"COLUMNS": "200"})
    assert result.exit_code == code, (result.output, result.exception)
    return result


def test_planners_are_compared_on_a_made_up_trace(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(response, "WAYS", [Way("Storm", "all_at_once"), Way("single step", "matched")])
    result = json.loads(planner("--quick", "--json", "--dir", tmp_path).stdout)
    assert list(tmp_path.iterdir()) == []
    found = {
        (line["application"], line["planner"], line["strategy"])
        for line in result["experiments"].pop("response")
    }
    ways = {("Storm", "all_at_once"), ("single step", "matched")}
    assert found == {(one, *way) for one in ("words", "patterns") for way in ways}
    assert [trace["name"] for trace in result["traces"]] == ["made up, seed 0"]
    assert result["experiments"].keys() == {"state", "gamma", "tau", "bins", "time"}
    for line in result["experiments"]["state"]:
        found = line["planners"]
        for one in found.values():
            assert 0 <= one["moved_percent"] <= 100
        assert found["ssm"]["tau_max"] <= line["tau"] + 1e-3
        assert found["mtm"]["tau_max"] <= line["tau"] + 1e-3
        assert found["mtm"]["precompute_seconds"] >= 0
    assert result["goals"]["mtm_to_ssm"] <= 1
    assert result["goals"]["ssm_to_storm"] <= 0.5


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
