"""What happened over time in the first round of a case: for the page, and for the figures of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sterna.bench.report_data import Memory, Report, Run, Slot

if TYPE_CHECKING:
    from sterna.bench.laboratory import Case

MOST_POINTS = 300


def over_time(case: Case) -> list[dict[str, Any]]:
    """Memory over the first round: of every few samples the highest."""
    samples = case.trace.get("memory", [])
    every = len(samples) // MOST_POINTS + 1
    out = []
    for at in range(0, len(samples), every):
        some = samples[at : at + every]
        out.append(
            {name: max(one[name] for one in some) for name in some[0] if name != "driver_anonymous_mb"}
        )
    return out


def report_of(case: Case, offline: dict[str, Any]) -> Report:
    """A report of the first round of a case, with a run for each strategy.

    Each run is compared with the time before it, as a machine is not as fast all the time. The report's own
    steady figures are those of the time with the slowest record.
    """
    first = case.rounds[0] if case.rounds else {}
    runs: list[Run] = [
        {**run_of(strategy, found, case.trace), "steady_max_ms": found["before"]["max_ms"]}
        for strategy, found in first.items()
    ]
    steady: dict[str, float] = max(
        (found["before"] for found in first.values()), key=lambda one: one["max_ms"], default={}
    )
    report: Report = {
        "title": "What moving state costs",
        "steady": {
            "p50_ms": steady.get("p50_ms"),
            "p99_ms": steady.get("p99_ms"),
            "max_ms": steady.get("max_ms"),
        },
        "runs": runs,
    }
    for way in ("there", "back"):
        if way in offline:
            during = offline[way]["during"]
            report["runs"].append(
                {
                    "name": f"Spark's offline repartition, {way}",
                    "strategy": "restart",
                    "p50_ms": during["p50_ms"],
                    "p99_ms": during["p99_ms"],
                    "max_ms": during["max_ms"],
                    "steady_max_ms": offline[way]["before"]["max_ms"],
                    "duration_s": offline[way]["seconds"],
                }
            )
    return report


def run_of(strategy: str, found: dict[str, Any], trace: dict[str, Any]) -> Run:
    """A migration, with what happened from shortly before it until shortly after."""
    start = found["second"]
    end = start + found["seconds"]
    begin, until = start - min(start, 20.0), end + 20.0
    timeline: list[Slot] = [
        {
            "t": round(slot["second"] - begin, 3),
            "records": slot["records"],
            "p50_ms": slot["p50_ms"],
            "p99_ms": slot["p99_ms"],
            "max_ms": slot["max_ms"],
        }
        for slot in trace["timeline"]
        if begin <= slot["second"] < until
    ]
    memory: list[Memory] = [
        {
            "t": round(one["second"] - begin, 3),
            "python_anonymous": round(one["worker_anonymous_mb"] * 2**20),
            "jvm_resident": round(one["jvm_resident_mb"] * 2**20),
        }
        for one in trace["memory"]
        if begin <= one["second"] < until
    ]
    return {
        "name": strategy,
        "strategy": strategy,
        "p50_ms": found["during"]["p50_ms"],
        "p99_ms": found["during"]["p99_ms"],
        "max_ms": found["during"]["max_ms"],
        "bins": found["bins"],
        "bytes": found["bytes"],
        "steps": found["steps"],
        "epochs": int(found["epoch_ms"]["during"]["epochs"]),
        "duration_s": found["seconds"],
        "timeline": timeline,
        "migration": {"start": round(start - begin, 3), "end": round(end - begin, 3)},
        "gc": [
            (round(one["second"] - begin, 3), one["ms"])
            for one in trace["pauses"] or []
            if begin <= one["second"] < until
        ],
        "memory": memory,
    }
