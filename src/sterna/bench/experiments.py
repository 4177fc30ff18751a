"""The experiments of §5.3 of the Megaphone paper, and the goals that Sterna has set itself.

Each is a function of the laboratory; it gives its lines (``results``) and, next to them, what its goals come
to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sterna.bench import outage
from sterna.bench.afterwards import afterwards
from sterna.bench.laboratory import SPREADS, Laboratory
from sterna.bench.laboratory import lines as lines_of
from sterna.bench.sizes import State
from sterna.bench.traces import over_time, report_of

MAX_RATIO, WITHIN, TO_OFFLINE = 1.5, 0.99, 0.01
FEW_BINS = 8.0
DRAWN = ("name", "strategy", "timeline", "migration")
"""What a picture of a run is made of."""


def headline(lab: Laboratory) -> dict[str, Any]:
    """A quarter of the state, every strategy, against Spark's offline way."""
    case = lab.case(lab.sizes.headline)
    # First, because it happens only once: whatever the rounds take, it is there.
    offline = outage.measured(lab, lab.sizes.headline, rate=case.rate)
    results = lab.take_turns([case], lab.sizes.course)
    medians = {line["strategy"]: {name: line[name]["median"] for name in SPREADS} for line in results}
    goals: dict[str, Any] = {}
    for name in ("matched", "paced"):
        if name in medians:
            goals[f"{name}_max_ratio"] = medians[name]["max_ratio"]
            goals[f"{name}_within_{MAX_RATIO}"] = medians[name]["max_ratio"] <= MAX_RATIO
    if "paced" in medians:
        share = medians["paced"]["within_latency"]
        ended = all(line["ended"] for line in results if line["strategy"] == "paced")
        goals["paced_within_latency"] = share
        goals["paced_keeps_it_and_ends"] = share >= WITHIN and ended
    if "matched" in medians and offline.get("increase_ms"):
        for name, ours, theirs in (
            ("matched_to_offline_as_it_ran", "increase_ms", "increase_ms_as_it_ran"),
            ("matched_to_offline", "increase_ms", "increase_ms"),
            ("matched_to_offline_equal", "equal_increase_ms", "increase_ms"),
        ):
            ratio = medians["matched"][ours] / offline[theirs]
            goals[name] = round(ratio, 5)
            goals[f"{name}_kept"] = ratio <= TO_OFFLINE
    report = report_of(case, offline)
    return {
        "results": results,
        "offline": offline,
        "goals": goals,
        "ceiling": case.place.ceiling,
        "over_time": over_time(case),
        "runs": [
            {name: value for name, value in run.items() if name in DRAWN}
            for run in report["runs"]
            if "timeline" in run
        ],
        "_report": report,
    }


def bins(lab: Laboratory) -> dict[str, Any]:
    """More and more bins, the same state."""
    cases = [lab.case(lab.sizes.binned, power=power) for power in lab.sizes.powers]
    results = lab.take_turns(cases, lab.sizes.sweep)
    return {"results": results, "goals": {"growth": growth(results, "bins")}}


def keys(lab: Laboratory) -> dict[str, Any]:
    """More and more keys, the same number of bins."""
    return _states(lab, "keys")


def proportional(lab: Laboratory) -> dict[str, Any]:
    """More and more keys, and bins in proportion: the latency of fluid and matched does not grow."""
    return _states(lab, "proportional")


def _states(lab: Laboratory, name: str) -> dict[str, Any]:
    """One of the two experiments over states that grow.

    All states are offered the same load, half of what the slowest keeps up with, so that only the state
    differs. Where both are asked for, they are measured together, because what they do to a state of one size
    can share a run.
    """
    if name not in lab.together:
        sizes = {
            "keys": [State(count, 0, lab.sizes.keyed) for count in lab.sizes.keys],
            "proportional": [State(count, 0, power) for count, power in lab.sizes.proportional],
        }
        sizes = {key: states for key, states in sizes.items() if key in {name, *lab.asked}}
        # Both have the same keys, and the size in the middle has as many bins in both: it is one case.
        every = list(dict.fromkeys(state for states in sizes.values() for state in states))
        rate = min(lab.place(state).rate for state in every)
        cases = {
            state: lab.case(state, load=rate / lab.place(state).ceiling["records_per_second"])
            for state in every
        }
        lab.take_turns(list(cases.values()), lab.sizes.sweep)
        for key, states in sizes.items():
            results = lines_of([cases[state] for state in states])
            lab.together[key] = {"results": results, "goals": {"growth": growth(results, "keys")}}
    return lab.together[name]


def load(lab: Laboratory) -> dict[str, Any]:
    """More and more records a second."""
    cases = [lab.case(lab.sizes.binned, load=share, load_share=share) for share in lab.sizes.loads]
    results = lab.take_turns(cases, lab.sizes.sweep)
    return {"results": results, "goals": {"growth": growth(results, "rate")}}


def memory(lab: Laboratory) -> dict[str, Any]:
    """What the Python workers hold more while state moves, in bins.

    The bins are few and large, so that it can be seen. The JVM's heap is fixed.
    """
    cases = [lab.case(state) for state in lab.sizes.memories]
    results = lab.take_turns(cases, lab.sizes.sweep, sample=0.05)
    goals: dict[str, Any] = {}
    for line in results:
        extra, name = line["extra_bins"]["median"], f"{line['strategy']}_{line['bins']}"
        goals[f"{name}_extra_bins"] = extra
        if line["strategy"] in ("matched", "paced") and extra is not None:
            goals[f"{name}_a_few_bins"] = extra <= FEW_BINS
    return {
        "results": results,
        "goals": goals,
        "over_time": {str(case.labels["keys"]): over_time(case) for case in cases if case.rounds},
    }


def growth(results: list[dict[str, Any]], over: str) -> dict[str, dict[str, float]]:
    """For each strategy, the largest latency at the greatest size over that at the smallest.

    There is one ratio for the time during migrations, and one for that before, which the size may change too.
    ``by_moving`` is the one over the other: what the size does to a migration beyond what it does to any
    epoch.
    """
    out = {}
    for strategy in dict.fromkeys(line["strategy"] for line in results):
        lines = sorted((line for line in results if line["strategy"] == strategy), key=lambda one: one[over])
        if len(lines) > 1:
            before, during = (
                round(_largest(lines[-1], when) / max(_largest(lines[0], when), 1e-9), 3)
                for when in ("before", "during")
            )
            out[strategy] = {
                "from": lines[0][over],
                "to": lines[-1][over],
                "before": before,
                "during": during,
                "by_moving": round(during / max(before, 1e-9), 3),
            }
    return out


def _largest(line: dict[str, Any], when: str) -> float:
    return float(line[f"{when}_max_ms"]["median"])


EXPERIMENTS: dict[str, Callable[[Laboratory], dict[str, Any]]] = {
    "headline": headline,
    "bins": bins,
    "keys": keys,
    "proportional": proportional,
    "load": load,
    "memory": memory,
    "afterwards": afterwards,
}
