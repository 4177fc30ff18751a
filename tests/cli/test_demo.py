from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from rich.console import Console
from typer.testing import CliRunner

from bench import browser as chromium
from bench.page import Page
from sterna import demo
from sterna.cli import app
from sterna.demo import restart
from sterna.demo.outputs import strays
from sterna.demo.setup import QUICK, differences

MOVES = [
    f"{strategy}, {way}"
    for strategy in ("all at once", "fluid", "matched", "paced")
    for way in ("there", "back")
]


@pytest.fixture(scope="module")
def shown(spark, tmp_path_factory):
    """The quick demo, once for all tests: what it printed, and its page."""
    page = tmp_path_factory.mktemp("demo") / "report.html"
    result = CliRunner().invoke(
        app, ["demo", "--quick", "--json", "--report", str(page)], env={"COLUMNS": "200", "TERM": "dumb"}
    )
    assert result.exit_code == 0, result.output
    assert spark.streams.active == []
    return json.loads(result.stdout), page


def test_every_strategy_moves_a_quarter_there_and_back(shown):
    figures, _ = shown
    assert [move["name"] for move in figures["migrations"]] == MOVES
    for move in figures["migrations"]:
        assert move["bins"] == QUICK.bins // 4
        assert move["bytes"] > 0
        assert move["ended"]
        assert 1 <= move["steps"] <= move["epochs"]
        assert move["duration_s"] > 0
        assert 0 < move["p99_ms"] <= move["max_ms"]
    steps = {move["name"]: move["steps"] for move in figures["migrations"]}
    assert steps["all at once, there"] == 1
    assert steps["fluid, there"] == steps["fluid, back"] == QUICK.bins // 4


def test_the_stream_is_steady_first_and_every_count_is_right_at_the_end(shown):
    figures, _ = shown
    assert figures["steady"].keys() == {"p50_ms", "p99_ms", "max_ms"}
    assert 0 < figures["steady"]["p50_ms"] <= figures["steady"]["p99_ms"] <= figures["steady"]["max_ms"]
    assert figures["outputs_match"] is True
    assert "left out" in figures["spark"]["skipped"]


def test_the_page_is_well_formed_and_has_a_timeline_of_each_move(shown):
    _, page = shown
    text = page.read_text(encoding="utf-8")
    parsed = Page(text)
    assert [
        name for name in parsed.text if name in MOVES
    ] == 2 * MOVES  # in the table, and above the timelines
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text


@pytest.mark.browser
@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_looks_right_in_a_browser(shown, tmp_path, width):
    executable = chromium.find()
    if executable is None:
        pytest.skip("no Chromium on this machine: `make test-browser` installs one and runs these tests")
    with chromium.Browser(executable, tmp_path / "profile") as browser:
        browser.open(shown[1], width, "light")
        assert browser.run("document.documentElement.scrollWidth") <= width
        heights = browser.run(
            '[...document.querySelectorAll("figure svg.timeline")].map((e) => '
            "e.getBoundingClientRect().height)"
        )
        assert browser.complaints() == []
    assert len(heights) == len(MOVES)
    assert min(heights) > 150


def test_the_expected_counts_are_those_of_the_records(spark):
    setup = demo.Setup(500, 20, 16, 4, 3, 1000, 1.0, 0.5, 1.0, 1.0, spark=False)
    ranges = spark.createDataFrame([("100,2100",)], "value string")
    counted = dict(setup.records().of(ranges).groupBy("key").count().collect())
    assert setup.counts(100, 2100).tolist() == [1 + counted.get(key, 0) for key in range(500)]


def test_a_single_wrong_key_is_noticed(spark):
    setup = demo.Setup(500, 20, 16, 4, 3, 1000, 1.0, 0.5, 1.0, 1.0, spark=False)
    state, once = setup.initial(spark), np.ones(500, np.int64)
    assert setup.wrong(state, once) == 0
    odd = F.col("key") == 77
    assert setup.wrong(state.withColumn("n", F.when(odd, 2).otherwise(F.col("n"))), once) == 1
    assert setup.wrong(state.withColumn("payload", F.when(~odd, F.col("payload"))), once) == 1
    assert setup.wrong(state.where(~odd), once) == 1
    assert setup.wrong(state.union(state.where(odd)), once) == 1


def test_a_key_that_should_not_exist_is_noticed():
    rows = pa.record_batch({"key": [0, 1, 2], "n": [1, 1, 1], "right": [True, True, True]})
    assert differences([rows], np.ones(2, np.int64)) == 1


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        ([(0, 2), (0, 3), (1, 5)], 0),
        ([(0, 3), (1, 5)], 0),  # an epoch had two records of key 0
        ([(0, 2), (1, 5)], 1),  # its last count is missing
        ([(0, 3), (1, 5), (1, 5)], 1),  # put out twice
        ([(0, 1), (0, 3), (1, 5)], 1),  # counted before
        ([(0, 3), (0, 4), (1, 5)], 1),  # more than there were
        ([(0, 3), (1, 5), (2, 9)], 1),  # had no record
        ([(0, 3), (1, 5), (3, 1), (-1, 1)], 2),  # no such keys
        ([], 2),
    ],
)
def test_a_count_that_should_not_have_come_out_is_noticed(rows, wrong):
    keys, counts = zip(*rows, strict=True) if rows else ((), ())
    batch = pa.record_batch({"key": pa.array(keys, pa.int64()), "n": pa.array(counts, pa.int64())})
    assert strays([batch], np.array([1, 4, 9]), np.array([3, 5, 9])) == wrong


def test_a_wrong_count_makes_the_command_fail(monkeypatch, tmp_path):
    told = {"title": "wrong", "runs": [], "outputs_match": False}
    monkeypatch.setattr(demo, "run", lambda setup, console: (told, {"outputs_match": False}))
    page = tmp_path / "report.html"
    result = CliRunner().invoke(app, ["demo", "--report", str(page)])
    assert result.exit_code == 1
    assert "WRONG" in result.stdout
    assert str(page) in result.stdout.replace("\n", "")
    assert "some wrong" in page.read_text(encoding="utf-8")


def test_a_page_that_can_not_be_written_is_refused_before_anything_runs(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--report", str(tmp_path / "no" / "report.html")])
    assert result.exit_code == 2


def test_spark_that_can_not_rescale_is_skipped_in_one_sentence(spark, monkeypatch, tmp_path):
    monkeypatch.setattr(restart.offline, "available", lambda _: False)
    setup = demo.Setup(500, 20, 16, 4, 3, 1000, 1.0, 0.5, 1.0, 1.0, spark=True)
    skipped = restart.run(spark, setup, str(tmp_path), 1000, None).skipped
    assert skipped is not None
    assert spark.version in skipped


def test_the_view_shows_how_long_the_oldest_record_waits():
    from sterna.bench.acknowledge import Report
    from sterna.demo.watching import Watcher
    from sterna.live import View

    reports = [Report(epoch, 1, 1000.0 + epoch / 5, 1000.2 + epoch / 5) for epoch in range(20)]
    watcher = Watcher(View(Console(force_terminal=False)))
    watcher.watch(SimpleNamespace(reports=reports))
    shot = watcher.snapshot()
    assert shot["epoch"] == 19
    assert shot["latency_now_ms"] > 1e6  # those epochs were long ago
    assert shot["workers"] == []
