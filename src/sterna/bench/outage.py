"""Spark's own way beside the migrations: a count, stopped, repartitioned offline and started again.

It is the same count on the same keys, and goes once there and once back and not once a round: that takes
minutes. Where the stop interrupts an epoch, Spark refuses to repartition before that epoch was finished,
which takes another start. So there are two amounts, each the gentler of both ways: ``increase_ms_as_it_ran``,
and ``increase_ms``, which leaves the other start out, as if the stop had come between two epochs. Spark can't
move a quarter: it goes from four state partitions to three, as when a worker leaves, and back. It gets the
same records, at the same rate or at half of its own maximum, whichever is lower.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from sterna.bench import acknowledge, ceiling, harness, offline
from sterna.bench.openloop import Records
from sterna.bench.phases import Phase, rescale
from sterna.bench.place import WORKERS
from sterna.bench.source import Keys
from sterna.bench.subjects import SparkSubject
from sterna.bench.trial import compared, latencies

if TYPE_CHECKING:
    from sterna.bench.laboratory import Laboratory
    from sterna.bench.sizes import State


LEAD_SECONDS = 10.0
"""Records that are due in an epoch that the stop interrupts, or wait for it, belong to the outage."""


def measured(lab: Laboratory, state: State, rate: float) -> dict[str, Any]:
    """As ``measure``, or the reason why there is nothing."""
    if lab.late:
        return {"reason": "there was no time for Spark's way"}
    try:
        return measure(lab, state, rate)
    except (TimeoutError, RuntimeError, acknowledge.Missing, OSError) as error:
        lab.failures.append(f"Spark's way: {error}")
        return {"reason": f"Spark's way failed: {error}"}


def measure(lab: Laboratory, state: State, rate: float) -> dict[str, Any]:
    """The latencies of Spark's way; only a reason where this Spark can't."""
    if not offline.available(lab.spark):
        return {"reason": f"Spark {lab.spark.version} can't repartition the state of a query"}
    folder = str(lab.root / "offline")
    os.makedirs(folder)
    subject = SparkSubject(os.path.join(folder, "checkpoint"), WORKERS)
    records = Records(Keys(state.keys), state.payload)
    course, pressure = lab.sizes.course, lab.sizes.pressure
    first = ceiling.fill(lab.spark, subject, folder, records, say=lab.say)
    found = ceiling.maximum_rate(
        lab.spark,
        subject,
        folder,
        records,
        first=first,
        epoch_seconds=pressure.epoch,
        warm=pressure.warm,
        seconds=pressure.seconds,
    )
    lab.say(f"spark: at most {found.rate:,.0f} records a second")
    phases, ways = [], (("there", WORKERS - 1), ("back", WORKERS))
    for way, workers in ways:
        phases += [
            Phase(f"{way}: before", course.quiet),
            Phase(f"{way}: lead", max(course.lead, min(LEAD_SECONDS, course.quiet))),
            Phase(f"{way}: offline", rescale(workers, course.quiet)),
        ]
    result = harness.run(
        lab.spark,
        subject,
        folder,
        phases,
        rate=min(rate, found.rate / 2),
        records=records,
        first=found.next_record,
        window=course.window,
        settings_folder=str(lab.root),
        say=lab.say,
    )
    named = {phase["name"]: phase for phase in result["phases"]}
    out: dict[str, Any] = {"rounds": 1, "rate": round(result["rate"]), "ceiling": found.to_json()}
    for way in ("there", "back"):
        before = latencies([named[f"{way}: before"]])
        during = latencies([named[f"{way}: lead"], named[f"{way}: offline"]])
        seconds = named[f"{way}: offline"]["seconds"]
        out[way] = {"before": before, "during": during, **compared(before, during), "seconds": seconds}
    for way, workers in ways:
        steps = result["notes"][f"rescale to {workers}"]
        again = sum(steps.get(name, 0.0) for name in ("refused", "finish"))
        out[way]["steps"] = steps
        out[way]["increase_ms_between_epochs"] = round(out[way]["increase_ms"] - 1e3 * again, 1)
    # The gentler of both, so that nothing looks better beside it than it is.
    out["increase_ms"] = min(out[way]["increase_ms_between_epochs"] for way in ("there", "back"))
    out["increase_ms_as_it_ran"] = min(out[way]["increase_ms"] for way in ("there", "back"))
    return out
