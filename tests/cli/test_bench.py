from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from sterna.bench import bins, migrate, offline, quiet, state, throughput
from sterna.bench.source import Keys
from sterna.cli import app


@pytest.fixture
def bench(spark, monkeypatch, tmp_path):
    """Run a benchmark at its smallest size through the command line; gives its JSON."""
    for module in (throughput, state, bins, quiet, migrate):
        monkeypatch.setattr(module, "QUICK", module.SMOKE)

    def run(*arguments):
        result = CliRunner().invoke(app, ["bench", *arguments, "--quick", "--json", "--dir", str(tmp_path)])
        assert result.exit_code == 0, (result.output, result.exception)
        assert list(tmp_path.iterdir()) == [], "a benchmark leaves nothing behind"
        assert spark.streams.active == []
        return json.loads(result.stdout)

    return run


def test_throughput_reports_both_sides(bench):
    result = bench("throughput")
    (line,) = result["results"]
    assert (line["rows_per_epoch"], line["keys"]) == (1_000, 2_000)
    for system in ("sterna", "spark"):
        assert line[f"{system}_epoch_ms_p50"] > 0
        assert line[f"{system}_rows_per_second"] > 0
        assert len(line[f"{system}_rounds"]) == 1
    ratio = line["sterna_rows_per_second"] / line["spark_rows_per_second"]
    assert line["ratio"] == pytest.approx(ratio, abs=1e-3)
    assert {"processor", "cores", "versions", "load_average"} <= result["machine"].keys()


def test_state_reports_each_size_against_the_smallest(bench):
    result = bench("state")
    assert [line["keys"] for line in result["results"]] == [1_000, 2_000]
    for line in result["results"]:
        assert line["epoch_ms_p50"] > 0
        assert line["control_epoch_ms_p50"] > 0
        assert line["checkpoint_mb"] > 0
    assert result["epoch_ratio"] == result["results"][-1]["epoch_ratio"]


def test_latency_while_nothing_moves_is_told_by_bins_and_for_spark(bench):
    result = bench("quiet")
    assert [line.get("bins") for line in result["results"]] == [2**3, 2**12, None]
    assert result["rate"] == pytest.approx(min(result["maximum"].values()) / 2, abs=1)
    for line in result["results"]:
        assert line["records"] == pytest.approx(result["rate"] * result["seconds"], rel=0.2)
        percentiles = [line[name] for name in ("p50_ms", "p90_ms", "p99_ms", "p9999_ms", "max_ms")]
        assert 0 < percentiles[0] <= percentiles[-1]
        assert percentiles == sorted(percentiles)
        assert (line["beyond"][0][1], line["beyond"][-1]) == (1.0, [pytest.approx(line["max_ms"], 0.01), 0.0])


def test_bins_are_compared_with_the_reference(bench):
    result = bench("bins")
    assert [line["bins"] for line in result["results"]] == [2**4, 2**12]
    assert result["results"][1]["ratio"] == 1


@pytest.mark.parametrize("experiments", [("memory",), ("bins", "load"), ("keys", "proportional")])
def test_migrations_are_compared_with_the_time_before_them(bench, experiments):
    result = bench("migrate", *(word for name in experiments for word in ("--experiment", name)))
    assert tuple(result["experiments"]) == experiments
    for found in result["experiments"].values():
        for line in found["results"]:
            (round_,) = line["rounds"]
            assert round_["bins"] == line["bins"] // 4
            assert round_["steps"] > 0
            assert round_["ended"]
            assert round_["max_ratio"] == pytest.approx(
                round_["during"]["max_ms"] / round_["before"]["max_ms"], rel=0.01
            )
            assert 0 <= round_["within_latency"] <= 1


def test_the_headline_of_migrations_has_its_goals_and_a_page(bench, tmp_path_factory, monkeypatch):
    monkeypatch.setattr(
        offline, "available", lambda _: False
    )  # Spark's way takes a minute; it is tested elsewhere
    page = tmp_path_factory.mktemp("page") / "report.html"
    result = bench("migrate", "--experiment", "headline", "--report", str(page))
    found = result["experiments"]["headline"]
    (line,) = found["results"]
    assert found["goals"]["matched_max_ratio"] == line["max_ratio"]["median"]
    (round_,) = line["rounds"]
    assert round_["longer_before"]["records"] > round_["before"]["records"]
    longer = round_["during"]["max_ms"] - round_["longer_before"]["max_ms"]
    assert line["equal_increase_ms"]["median"] == pytest.approx(longer, abs=0.2)
    assert ">matched</h" in page.read_text()


@pytest.mark.slow
def test_rows_a_second_before_and_after_a_migration(bench):
    result = bench("migrate", "--experiment", "afterwards")
    (line,) = result["experiments"]["afterwards"]["results"]
    assert len(line["before"]) == len(line["after"]) == 2
    assert line["interval"][0] <= line["change"] <= line["interval"][1]


def test_an_unknown_experiment_is_refused():
    result = CliRunner().invoke(app, ["bench", "migrate", "--experiment", "all of them"])
    assert result.exit_code == 2
    assert "none of headline" in result.output


def test_filling_visits_each_key_once_also_while_growing(spark):
    small = Keys(100)
    grown = small.grown(250, position=1_000)
    values = spark.range(1_400).withColumnRenamed("id", "value")
    rows = values.select("value", grown.expression(values.value).alias("key")).collect()
    key = {row.value: row.key for row in rows}
    assert grown.filled_at == 1_150
    assert [key[value] for value in range(1_000, 1_150)] == list(range(100, 250))
    assert max(key[value] for value in range(1_000)) < 100
    assert 100 <= max(key[value] for value in range(1_150, 1_400)) < 250
    first = values.select("value", small.expression(values.value).alias("key")).limit(100).collect()
    assert sorted(row.key for row in first) == list(range(100))
