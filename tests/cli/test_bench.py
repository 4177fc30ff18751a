from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from sterna.bench import bins, state, throughput
from sterna.bench.source import Keys
from sterna.cli import app


@pytest.fixture
def bench(spark, monkeypatch, tmp_path):
    """Run a benchmark at its smallest size through the command line; gives its JSON."""
    for module in (throughput, state, bins):
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


def test_bins_are_compared_with_the_reference(bench):
    result = bench("bins")
    assert [line["bins"] for line in result["results"]] == [2**4, 2**12]
    assert result["results"][1]["ratio"] == 1


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
