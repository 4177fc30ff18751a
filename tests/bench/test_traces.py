"""The page of a benchmark of migrations: what its runs are compared with."""

from __future__ import annotations

from types import SimpleNamespace

from rich.console import Console

from bench.page import Page
from sterna.bench.report import render
from sterna.bench.traces import report_of
from sterna.live import summary_table


def latencies(most):
    return {"p50_ms": most / 4, "p99_ms": most / 2, "max_ms": most}


def migration(before, during, second):
    return {
        "before": latencies(before),
        "during": latencies(during),
        "second": second,
        "seconds": 2.0,
        "bins": 4,
        "bytes": 1_000,
        "steps": 1,
        "epoch_ms": {"during": {"epochs": 3}},
    }


def report():
    first = {"fluid": migration(100.0, 300.0, 30.0), "matched": migration(400.0, 600.0, 90.0)}
    case = SimpleNamespace(rounds=[first], trace={"timeline": [], "memory": [], "pauses": None})
    offline = {"there": {"before": latencies(200.0), "during": latencies(5_000.0), "seconds": 20.0}}
    return report_of(case, offline)


def test_each_run_is_compared_with_the_time_before_it():
    words = Page(render(report())).words()
    for ratio in (" 3.0×", " 1.5×", " 25.0×"):
        assert ratio in words, words
    console = Console(width=120, record=True)
    console.print(summary_table(report(), 120))
    assert "3.0×" in console.export_text()


def test_a_run_without_such_a_time_is_compared_with_the_steady_phase_of_all():
    told = report()
    for run in told["runs"]:
        del run["steady_max_ms"]
    assert " 0.8×" in Page(render(told)).words()
