"""The experiments of §5.3 of the Megaphone paper, and the goals that Sterna has set itself.

Each is a function of the laboratory; it gives its lines (``results``) and, next to them, what its goals come to.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from sterna.bench import outage
from sterna.bench.afterwards import afterwards
from sterna.bench.laboratory import WAYS, Case, Laboratory, spread
from sterna.bench.sizes import State
from sterna.bench.traces import over_time, report_of

MAX_RATIO, WITHIN, TO_OFFLINE = 1.5, 0.99, 0.01
FEW_BINS = 8.0


def headline(lab: Laboratory) -> dict[str, Any]:
    """A quarter of the state, every strategy, against Spark's offline way."""
    state = lab.sizes.headline
    cases = [lab.case(state, strategy) for strategy in lab.strategies(2**state.power)]
    # First, because it happens only once: whatever the rounds take, it is there.
    offline = outage.measure(lab, state, rate=cases[0].rate)
    results = lab.take_turns(cases, lab.sizes.course)
    by_name = {line["strategy"]: line for line in results}
    goals: dict[str, Any] = {}
    for name in ("matched", "paced"):
        if name in by_name:
            goals[f"{name}_max_ratio"] = by_name[name]["max_ratio"]
            goals[f"{name}_within_{MAX_RATIO}"] = by_name[name]["max_ratio"] <= MAX_RATIO
    if "paced" in by_name:
        paced = by_name["paced"]
        goals["paced_within_latency"] = paced["within_latency"]
        goals["paced_keeps_it_and_ends"] = paced["within_latency"] >= WITHIN and paced["ended"]
    if "matched" in by_name and offline.get("increase_ms"):
        ratio = by_name["matched"]["increase_ms"] / offline["increase_ms"]
        goals["matched_to_offline"] = round(ratio, 5)
        goals["matched_to_offline_kept"] = ratio <= TO_OFFLINE
    return {
        "results": results,
        "offline": offline,
        "goals": goals,
        "ceiling": cases[0].place.ceiling,
        "_report": report_of([case for case in cases if case.rounds], offline),
    }


def bins(lab: Laboratory) -> dict[str, Any]:
    """More and more bins, the same state."""
    state = lab.sizes.binned
    cases = [
        lab.case(state, strategy, power=power)
        for power in lab.sizes.powers
        for strategy in lab.strategies(2**power)
    ]
    results = lab.take_turns(cases, lab.sizes.sweep)
    return {"results": results, "goals": {"growth": growth(results, "bins")}}


def keys(lab: Laboratory) -> dict[str, Any]:
    """More and more keys, the same number of bins."""
    return _states(lab, [(count, lab.sizes.keyed) for count in lab.sizes.keys], "keys")


def proportional(lab: Laboratory) -> dict[str, Any]:
    """More and more keys, and bins in proportion: the latency of fluid and matched does not grow."""
    return _states(lab, lab.sizes.proportional, "keys")


def _states(lab: Laboratory, sizes: Sequence[tuple[int, int]], over: str) -> dict[str, Any]:
    # All sizes are offered the same load, half of what the slowest keeps up with: so only the state differs.
    states = [State(count, 0, power) for count, power in sizes]
    rate = min(lab.place(state).rate for state in states)
    cases = []
    for state in states:
        load = rate / lab.place(state).ceiling["records_per_second"]
        cases += [lab.case(state, strategy, load=load) for strategy in lab.strategies(2**state.power)]
    results = lab.take_turns(cases, lab.sizes.sweep)
    return {"results": results, "goals": {"growth": growth(results, over)}}


def load(lab: Laboratory) -> dict[str, Any]:
    """More and more records a second."""
    state = lab.sizes.binned
    cases = [
        lab.case(state, strategy, load=share, load_share=share)
        for share in lab.sizes.loads
        for strategy in lab.strategies(2**state.power)
    ]
    results = lab.take_turns(cases, lab.sizes.sweep)
    return {"results": results, "goals": {"growth": growth(results, "rate")}}


def memory(lab: Laboratory) -> dict[str, Any]:
    """What the Python workers hold more while state moves, in bins; the JVM's heap is fixed."""
    state = lab.sizes.headline
    cases = [lab.case(state, strategy) for strategy in lab.strategies(2**state.power)]
    results = lab.take_turns(cases, lab.sizes.course)
    goals: dict[str, Any] = {}
    for case, line in zip([case for case in cases if case.rounds], results, strict=True):
        moved = statistics.median(way["bytes"] / max(1, way["bins"]) for way in _ways(case))
        extra = [
            (way["worker_anonymous_mb_during"] - way["worker_anonymous_mb_before"]) * 2**20 / max(1.0, moved)
            for way in _ways(case)
            if way["worker_anonymous_mb_during"] is not None
        ]
        line["bin_bytes"] = round(moved)
        line["extra_bins"] = spread(extra)
        line["over_time"] = over_time(case)
        goals[f"{case.strategy}_extra_bins"] = line["extra_bins"]["median"]
        if case.strategy in ("matched", "paced") and extra:
            goals[f"{case.strategy}_a_few_bins"] = statistics.median(extra) <= FEW_BINS
    return {"results": results, "goals": goals}


def _ways(case: Case) -> list[dict[str, Any]]:
    return [round_[way] for round_ in case.rounds for way in WAYS]


def growth(results: list[dict[str, Any]], over: str) -> dict[str, dict[str, float]]:
    """For each strategy, the largest latency at the greatest size over that at the smallest: during, and before, which the size may change too."""
    out = {}
    for strategy in dict.fromkeys(line["strategy"] for line in results):
        lines = sorted((line for line in results if line["strategy"] == strategy), key=lambda one: one[over])
        if len(lines) > 1:
            out[strategy] = {
                when: round(_largest(lines[-1], when) / max(_largest(lines[0], when), 1e-9), 3)
                for when in ("before", "during")
            }
    return out


def _largest(line: dict[str, Any], when: str) -> float:
    return max(float(line[way][f"{when}_max_ms"]["median"]) for way in WAYS)


EXPERIMENTS: dict[str, Callable[[Laboratory], dict[str, Any]]] = {
    "headline": headline,
    "bins": bins,
    "keys": keys,
    "proportional": proportional,
    "load": load,
    "memory": memory,
    "afterwards": afterwards,
}
