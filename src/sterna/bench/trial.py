"""One run of some migrations, one after the other, and their figures.

``before`` is the quiet time; ``during`` the records that were due from shortly before the migration was asked
for to its end, because those may have to wait for its first epoch. ``max_ratio`` is the largest latency of
the one over that of the other, ``increase_ms`` their difference. The largest of many is larger than that of
few, and a migration in small steps lasts minutes: ``equal_increase_ms`` is the same against a quiet time
about as long as the migration, where there was one. ``within_latency`` is the share of the migration's epochs
that took no longer than ``limit_ms``, by the query's own account, which is what ``paced`` goes by: from the
freeze to the last receipt; ``within_trigger`` is the same for the whole of Spark's trigger, publishing and
logs included, against 1.25 times the 99th percentile of that in the quiet time. Memory is what all Python
workers hold together that no file backs (and what the JVM has resident): the highest sample while state
moved, and before it the highest of as many samples in a row, on the average, because the highest of many is
higher than that of few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from sterna.bench import harness
from sterna.bench.latency import Histogram
from sterna.bench.leg import HEADROOM, Course, Leg, with_bins
from sterna.bench.phases import Phase
from sterna.bench.place import Place

MEMORY = ("worker_anonymous_mb", "jvm_resident_mb")


@dataclass(frozen=True)
class Part:
    """Some strategies, all different, with so many bins."""

    bins: int
    strategies: Sequence[str]


def trial(
    spark: SparkSession,
    place: Place,
    parts: Sequence[Part],
    course: Course,
    *,
    rate: float,
    settings_folder: str,
    sample: float = 0.25,
) -> tuple[list[dict[str, dict[str, Any]]], dict[str, Any]]:
    """Runs the strategies of all parts, one after the other.

    Gives the figures of each part, by strategy, and what happened over time.
    """
    legs = [
        [Leg(strategy, course, f"{strategy}, {part.bins} bins") for strategy in part.strategies]
        for part in parts
    ]
    warm = [Phase("warm", course.warm)] if course.warm else []
    phases: list[Phase] = []
    for number, (part, some) in enumerate(zip(parts, legs, strict=True)):
        phases += [with_bins(part.bins), *(warm if number == 0 else [])]
        phases += [phase for leg in some for phase in leg.phases()]
    subject = place.subject()
    result = harness.run(
        spark,
        subject,
        place.folder,
        phases,
        rate=rate,
        records=place.records,
        first=place.first,
        window=course.window,
        settings_folder=settings_folder,
        sample=sample,
    )
    place.first = result["next_record"]
    told = {phase["name"]: phase for phase in result["phases"]}
    found = [
        {leg.strategy: figures(leg, told, result, subject.milliseconds) for leg in some} for some in legs
    ]
    return found, {name: result[name] for name in ("timeline", "memory", "pauses")}


def figures(
    leg: Leg, phases: dict[str, Any], result: dict[str, Any], milliseconds: dict[int, float]
) -> dict[str, Any]:
    """What is reported of one migration; see the module's docstring."""
    quiet = phases[f"{leg.name}: before"]
    moving = [phases[f"{leg.name}: lead"], phases[f"{leg.name}: during"]]
    before, during = latencies([quiet]), latencies(moving)
    further = phases.get(f"{leg.name}: further")
    longer = latencies([further, quiet]) if further else before
    outcome = leg.outcome
    first, last = outcome["started_epoch"], outcome["ended_epoch"]
    epochs = [took for epoch, took in milliseconds.items() if first <= epoch <= last]
    quiet_epochs = [took for epoch, took in milliseconds.items() if epoch in leg.quiet_epochs]
    triggers = [took for epoch, took in result["triggers"] if first <= epoch <= last]
    quiet_triggers = [took for epoch, took in result["triggers"] if epoch in leg.quiet_epochs]
    trigger_limit = HEADROOM * float(np.percentile(quiet_triggers or [0.0], 99))
    return {
        "way": leg.way,
        "before": before,
        "during": during,
        "after": latencies([phases[f"{leg.name}: after"]]),
        **compared(before, during),
        "longer_before": longer,
        "equal_increase_ms": round(during["max_ms"] - longer["max_ms"], 1),
        "second": moving[1]["second"],
        "seconds": round(outcome["ended"] - outcome["started"], 3),
        "ended": outcome["status"] == "done",
        "recovered_seconds": leg.recovered,
        "steps": outcome["steps"],
        "bins": outcome["bins"],
        "bytes": outcome["bytes"],
        "operators": leg.operators,
        "state_bytes": leg.state_bytes,
        "epoch_ms": {"before": durations(quiet_epochs), "during": durations(epochs)},
        "limit_ms": round(leg.limit, 1),
        "within_latency": share_within(epochs, leg.limit),
        "within_trigger": share_within(triggers, trigger_limit),
        **{
            key: value
            for name in MEMORY
            for key, value in zip(
                (f"{name}_before", f"{name}_during"),
                peaks(result["memory"], name, [quiet], moving),
                strict=True,
            )
        },
        "pause_ms": {
            when: longest_pause(result["pauses"], span)
            for when, span in (("before", [quiet]), ("during", moving))
        },
    }


def latencies(phases: list[dict[str, Any]]) -> dict[str, float]:
    """Of the records that were due in some phases."""
    histogram = Histogram()
    for phase in phases:
        histogram.merge(Histogram.from_json(phase["histogram"]))
    return histogram.summary()


def compared(before: dict[str, float], during: dict[str, float]) -> dict[str, float]:
    """The largest latency of one time against that of another."""
    return {
        "max_ratio": round(during["max_ms"] / max(before["max_ms"], 1e-9), 3),
        "p99_ratio": round(during["p99_ms"] / max(before["p99_ms"], 1e-9), 3),
        "increase_ms": round(during["max_ms"] - before["max_ms"], 1),
    }


def durations(milliseconds: list[float]) -> dict[str, float]:
    """How many epochs, and what they took."""
    if not milliseconds:
        return {"epochs": 0}
    p50, p99, most = (round(float(np.percentile(milliseconds, p)), 1) for p in (50, 99, 100))
    return {"epochs": len(milliseconds), "p50_ms": p50, "p99_ms": p99, "max_ms": most}


def within(samples: list[dict[str, Any]], phases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The samples of some phases."""
    spans = [(phase["second"], phase["second"] + phase["seconds"]) for phase in phases]
    return [one for one in samples if any(a <= one["second"] < b for a, b in spans)]


def share_within(milliseconds: list[float], limit: float) -> float:
    """The share of epochs that took no longer."""
    return round(sum(took <= limit for took in milliseconds) / max(1, len(milliseconds)), 4)


def peaks(
    samples: list[dict[str, Any]],
    name: str,
    before: list[dict[str, Any]],
    during: list[dict[str, Any]],
) -> tuple[float | None, float | None]:
    """The highest sample while state moved, and, first, of as many samples in a row before it, on average."""
    quiet = np.array([one[name] for one in within(samples, before)])
    moving = np.array([one[name] for one in within(samples, during)])
    if not len(quiet) or not len(moving):
        return None, None
    window = min(len(quiet), len(moving))
    usual = np.lib.stride_tricks.sliding_window_view(quiet, window).max(axis=1).mean()
    return round(float(usual), 1), round(float(moving.max()), 1)


def longest_pause(pauses: list[dict[str, Any]] | None, phases: list[dict[str, Any]]) -> float | None:
    """The JVM's longest pause in some phases; None if it does not write them down."""
    if pauses is None:
        return None
    return max((one["ms"] for one in within(pauses, phases)), default=0.0)
