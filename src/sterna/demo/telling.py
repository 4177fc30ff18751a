"""What is told of the demo at the end: a report for the page and the table, and figures for programs."""

from __future__ import annotations

from typing import Any, cast

from sterna.bench.report_data import Latencies, Report, Run
from sterna.demo.moves import LONGEST_MOVE_S, Move, Moves
from sterna.demo.restart import Restart
from sterna.demo.setup import Setup
from sterna.readable import milliseconds
from sterna.strategies import describe

BEFORE_S = 3.0
"""How much of the quiet time before a move is shown."""
CUT_OFF = f"It was cut off after {LONGEST_MOVE_S:.0f} s, and what was left of it went at once."
LATENCIES = ("p50_ms", "p99_ms", "max_ms")


def figures(setup: Setup, ours: Moves, theirs: Restart, facts: dict[str, Any]) -> dict[str, Any]:
    """The figures, ready for JSON."""
    return {
        "steady": {name: ours.steady[name] for name in LATENCIES},
        "migrations": [
            {"name": move.name, **_plain(move), **{name: move.figures[name] for name in LATENCIES}}
            for move in ours.moves
        ],
        "spark": _spark(theirs),
        "outputs_match": outputs_match(ours, theirs),
        "records_per_second": ours.rate,
        "keys": setup.keys,
        "state_bytes": ours.state_bytes,
        "bins": setup.bins,
        "workers": [setup.workers, setup.fewer],
        "machine": facts,
    }


def outputs_match(ours: Moves, theirs: Restart) -> bool:
    """Whether every key has the count that the input implies."""
    return ours.wrong == 0 and theirs.wrong == 0


def _plain(move: Move) -> dict[str, Any]:
    outcome, (start, end) = move.outcome, move.span
    return {
        "strategy": move.strategy.replace(" ", "_"),
        "bins": outcome["bins"],
        "bytes": outcome["bytes"],
        "steps": outcome["steps"],
        "ended": outcome["status"] == "done",
        "epochs": outcome["ended_epoch"] - outcome["started_epoch"] + 1,
        "duration_s": round(end - start, 3),
    }


def _spark(theirs: Restart) -> dict[str, Any]:
    if theirs.skipped is not None:
        return {"skipped": theirs.skipped}
    return {
        "strategy": "stop, repartition offline, restart",
        "duration_s": round(theirs.seconds, 3),
        **{name: theirs.figures[name] for name in LATENCIES},
        "steady": {name: theirs.steady[name] for name in LATENCIES},
        "records_per_second": theirs.rate,
        "note": theirs.note,
    }


def report(setup: Setup, ours: Moves, theirs: Restart, facts: dict[str, Any]) -> Report:
    """The report: one run for each move, and one for Spark."""
    runs = [_moved(setup, move, ours.result) for move in ours.moves]
    if theirs.result is not None:
        runs.append(_restarted(setup, theirs, theirs.result, ours.rate))
    return {
        "title": "A quarter of the state moves while the stream runs",
        "machine": {
            "input": f"{ours.rate:,.0f} records a second, open-loop",
            "state": (
                f"{setup.keys:,} keys in {setup.bins} bins; moved by rescaling from {setup.workers} to "
                f"{setup.fewer} workers and back"
            ),
            **facts,
        },
        "steady": cast("Latencies", ours.steady),
        "runs": runs,
        "outputs_match": outputs_match(ours, theirs),
    }


def _moved(setup: Setup, move: Move, result: dict[str, Any]) -> Run:
    start, end = move.span
    zero = start - BEFORE_S
    run = {
        "name": move.name,
        **_plain(move),
        # Its name says it all, unless there is something to set.
        "strategy": describe(move.outcome["strategy"]) if move.strategy == "paced" else move.strategy,
        **{name: move.figures[name] for name in LATENCIES},
        "note": None if move.outcome["status"] == "done" else CUT_OFF,
        "migration": {"start": BEFORE_S, "end": end - zero},
        "moved": [(at - zero, amount) for at, amount in move.moved],
        **_window(result, zero, end + setup.settle),
    }
    return cast("Run", run)


def _restarted(setup: Setup, theirs: Restart, result: dict[str, Any], rate: float) -> Run:
    zero = theirs.began - BEFORE_S
    caught_up = result["begin"] + theirs.figures["second"] + theirs.figures["seconds"]
    note = (
        f"The same {setup.keys:,} keys with RocksDB, from {setup.workers} to {setup.fewer} state partitions. "
        f"{theirs.note}."
    )
    if theirs.rate != rate:
        note += f" It got {theirs.rate:,.0f} records a second, because it does not keep up with more."
    note += f" While nothing moved, its slowest record took {milliseconds(theirs.steady['max_ms'])}."
    run = {
        "name": "Spark: stop, repartition, restart",
        "strategy": "Spark",
        "duration_s": theirs.seconds,
        **{name: theirs.figures[name] for name in LATENCIES},
        "migration": {"start": BEFORE_S, "end": BEFORE_S + theirs.seconds},
        "note": note,
        **_window(result, zero, caught_up + setup.settle),
    }
    return cast("Run", run)


def _window(result: dict[str, Any], zero: float, end: float) -> dict[str, Any]:
    """The part of a result between two moments, in seconds since the first of them."""
    shift = zero - result["begin"]

    def within(items: list[dict[str, Any]] | None) -> list[tuple[float, dict[str, Any]]]:
        placed = [(item["second"] - shift, item) for item in items or []]
        return [(round(at, 3), item) for at, item in placed if 0 <= at <= end - zero]

    return {
        "timeline": [
            {"t": at, "records": slot["records"], **{name: slot[name] for name in LATENCIES}}
            for at, slot in within(result["timeline"])
        ],
        "gc": [(at, pause["ms"]) for at, pause in within(result["pauses"])],
        "memory": [
            {
                "t": at,
                "python_anonymous": round(sample["worker_anonymous_mb"] * 2**20),
                "jvm_resident": round(sample["jvm_resident_mb"] * 2**20),
            }
            for at, sample in within(result["memory"])
        ],
    }
