"""``sterna bench peers``, at its smallest: Sterna and Spark, and Flink as its package installs it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sterna.bench import offline
from sterna.bench.peers import flink, packed, running
from sterna.bench.peers.lap import Case, Course
from sterna.bench.peers.sides import join_formats
from sterna.cli import app

FLINK = Path(sys.prefix) / "flink"
SHORT = Course(warm=0.5, seconds=1.5, quiet=2.0, lead=0.5, rest=0.2, window=1.0, limit=10.0)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    size = replace(running.QUICK.queries, each=1_000, epochs=2, warm=1)
    quick = replace(
        running.QUICK,
        router=packed.Size(2_000, 1_000, 0.3, 1.5),
        queries=size,
        throughput=Case(2**11, 0),
        few_keys=Case(2**10, 0),
        rescale=(Case(2**10, 20),),
        course=SHORT,
        memory="2g",
    )
    monkeypatch.setattr(running, "QUICK", quick)


def told(*arguments):
    result = CliRunner().invoke(app, ["bench", "peers", "--quick", "--json", *arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    found = json.loads(result.stdout)
    assert found["failures"] == []
    return found


@pytest.mark.parametrize("arguments", [("--quick", "--part", "queries"), ("--part", "router"), ()])
def test_only_queries_of_full_size_are_measured_bit_by_bit(arguments, tmp_path):
    before = tmp_path / "before.json"
    before.write_text("{}")
    result = CliRunner().invoke(app, ["bench", "peers", *arguments, "--keep", str(before)])
    assert result.exit_code == 2
    assert "--keep" in result.output
    assert before.read_text() == "{}"


@pytest.mark.parametrize("memory", ["", "lots", "4", "-4g", "0g", "4g "])
def test_what_is_no_memory_is_refused(memory):
    result = CliRunner().invoke(app, ["bench", "peers", "--quick", "--flink-memory", memory])
    assert result.exit_code == 2
    assert "--flink-memory" in result.output


def test_queries_run_on_both_sides(spark, tmp_path):
    found = told(
        "--part", "router", "--part", "queries", "--query", "q2", "--query", "q3", "--dir", str(tmp_path)
    )
    assert found["router"]["packed_per_second_and_core"] > 0
    assert [line["query"] for line in found["queries"]] == ["q2", "q3"]
    for line in found["queries"]:
        assert line["ratio"] > 0
        assert ("at_least_5_times" in line) == (line["query"] == "q3")
    stateless, joined = found["queries"]
    assert (stateless["sterna_state"], stateless["spark_state"]) == ([], [])
    assert joined["sterna_state_rows"] == joined["spark_state_rows"] > 0
    assert ("spark_join_formats" in joined) == (len(join_formats("q3", spark.version)) > 1)
    assert list(tmp_path.iterdir()) == []
    assert spark.streams.active == []


def test_sterna_and_spark_rescale_and_lose_nothing(spark, tmp_path):
    found = told("--part", "rescale", "--system", "sterna", "--system", "spark", "--dir", str(tmp_path))
    lines = found["rescale"]["results"]
    # Before Spark 4.2 there is no way to rescale a query of Spark's own.
    assert [line["system"] for line in lines] == ["sterna", *(["spark"] if offline.available(spark) else [])]
    assert all(line["wrong_keys"] == 0 for line in lines)
    assert found["rescale"]["ceilings"].keys() == {"sterna", "spark"}
    assert list(tmp_path.iterdir()) == []


def test_how_much_it_keeps_up_with(spark, tmp_path):
    systems = ("--system", "sterna", "--system", "spark")
    found = told("--part", "throughput", *systems, "--dir", str(tmp_path))
    many, few = found["throughput"], found["throughput"]["few_keys"]
    for told_of in (many, few):
        assert told_of["sterna_records_per_second"] > 0
        assert told_of["spark_records_per_second"] > 0
        assert told_of["ratio_to_spark"] > 0
    assert (many["keys"], few["keys"]) == (2**11, 2**10)


def test_flink_counts_and_rescales(spark, tmp_path):
    found = told("--part", "rescale", "--system", "flink", "--flink", str(FLINK), "--dir", str(tmp_path))
    assert found["rescale"]["ceilings"]["flink"] > 0
    (line,) = found["rescale"]["results"]
    assert line["wrong_keys"] == 0
    assert line["during_max_ms"] >= line["before_p50_ms"] > 0
    assert list(tmp_path.iterdir()) == []


def test_what_flink_reads_alone_is_told_beside_its_rate(spark, tmp_path):
    found = told("--part", "throughput", "--system", "flink", "--flink", str(FLINK), "--dir", str(tmp_path))
    many, few = found["throughput"], found["throughput"]["few_keys"]
    assert many["flink_source_records_per_second"] > 0
    for told_of in (many, few):
        assert told_of["flink_records_per_second"] > 0
        assert [one["task_manager"] > 0 for one in told_of["flink_cores"]] == [True]


def test_a_flink_that_can_not_be_installed_costs_only_itself(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(flink, "PACKAGE", "there-is-no-such-package-of-flink==1")
    result = CliRunner().invoke(
        app,
        [
            "bench",
            "peers",
            "--quick",
            "--json",
            "--part",
            "throughput",
            "--system",
            "flink",
            "--dir",
            str(tmp_path),
        ],
    )
    assert result.exit_code == 1, (result.output, result.exception)
    found = json.loads(result.stdout)
    assert len(found["failures"]) == 1
    assert "can't be installed" in found["failures"][0]
    assert "flink_records_per_second" not in found["throughput"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--part", "everything"], "is none of"),
        (["--system", "storm"], "is none of"),
        (["--query", "q9"], "is none of the queries"),
    ],
)
def test_what_there_is_not_is_refused(spark, arguments, says):
    result = CliRunner().invoke(app, ["bench", "peers", "--quick", *arguments])
    assert result.exit_code != 0
    assert says in " ".join(result.output.split())


def test_a_package_that_is_not_there_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(flink, "PACKAGE", "there-is-no-such-package-of-flink==1")
    with pytest.raises(flink.FlinkError, match="can't be installed"):
        flink.installed(tmp_path, lambda _: None)
