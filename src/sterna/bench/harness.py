"""The open-loop harness: input at a set rate, named phases, and the latencies of the records due in each.

Method. A feeder drops records at a set rate from a moment on and never waits for anybody (``openloop``). The
query starts, and once its latency no longer changes, the phases run one after another: each is a number of
seconds, or a callable such as a migration and what it waits for. A record's latency is the end of its epoch's
trigger minus the moment at which the record was *due* (``acknowledge``): records that could not be taken,
because the query was busy or stopped, count with all of their waiting. A record belongs to the phase in which
it was due. Afterwards the feeder ends, and the query runs until it has acknowledged everything.

Memory and the JVM's pauses are observed from outside (``observer``). While phases run, the driver does
nothing but ask some times a second for the newest epoch.

Whatever happens, feeder, observer and query are stopped, and an exception of the query is raised.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import SparkSession

from sterna.bench import acknowledge, pauses
from sterna.bench.acknowledge import Epoch
from sterna.bench.latency import Histogram, Timeline
from sterna.bench.observer import Observer
from sterna.bench.openloop import Input, Schedule
from sterna.bench.phases import Phase, Run
from sterna.bench.rig import Say
from sterna.bench.subjects import Subject

LEAD_SECONDS = 1.0
"""How far ahead the begin is set, so that the feeder is running by then."""


def settings(folder: str) -> dict[str, str]:
    """What a session that is started for the harness should have: the JVM's pauses in a file."""
    return pauses.settings(gc_log(folder))


def gc_log(folder: str) -> str:
    """Where a session with these settings writes the JVM's pauses."""
    return os.path.join(folder, "gc.log")


def run(
    spark: SparkSession,
    subject: Subject,
    folder: str,
    phases: Sequence[Phase],
    *,
    rate: float,
    records: Input,
    first: int = 0,
    every: float = 0.025,
    window: float = 5.0,
    say: Say = lambda _: None,
    watch: Callable[[Run], None] = lambda _: None,
    settings_folder: str | None = None,
    sample: float = 0.25,
) -> dict[str, Any]:
    """Runs the phases; see the module's docstring.

    Args:
        spark: a session, best one started with ``settings(folder)``.
        subject: what runs; a checkpoint that exists is gone on from.
        folder: for the input (``input/``), the samples and the JVM's log.
        phases: what happens, in order, once the query is steady.
        rate: records a second.
        records: what a record is, and how it comes.
        first: the number of the first record, where this is not the first run on its checkpoint.
        every: seconds of records in a file.
        window: seconds in which the latency must not change before the first phase.
        say: takes a line about what is going on.
        watch: is told of the run once the query has started, for a view of it.
        settings_folder: the folder of the session's ``settings``, where it is another one.
        sample: seconds between two samples of memory.

    Returns:
        Figures ready for JSON: ``begin``, when the first record was due; of each phase, a timeline, memory,
        pauses; and ``next_record``, where another run may begin.
    """
    source = os.path.join(folder, "input")
    schedule = Schedule(time.time() + LEAD_SECONDS, rate, first, every)
    moments: list[float] = []
    with Observer(
        os.path.join(folder, f"memory-{first}.jsonl"), gc_log(settings_folder or folder), sample
    ) as observer:
        with records.fed(spark, source, schedule) as feeder:
            try:
                subject.start(feeder.stream)
                under_way = Run(subject, lambda: feeder.alive)
                watch(under_way)
                under_way.until_steady(window)
                for phase in phases:
                    say(f"{subject.name}: {phase.name}")
                    moments.append(time.time())
                    phase.run(under_way)
                moments.append(time.time())
                end = feeder.stop()
                subject.drain()
            finally:
                subject.stop()
        observer.stop()
    epochs = subject.epochs(lambda files: first + files * schedule.size)
    if (epochs[-1].end if epochs else first) != end:
        raise acknowledge.Missing(
            f"{end:,} records were fed, {epochs[-1].end if epochs else first:,} acknowledged"
        )
    return {
        "system": subject.name,
        "rate": rate,
        "begin": schedule.begin,
        "next_record": end,
        "phases": [
            {"name": phase.name, **figures(epochs, schedule, moments[i], moments[i + 1])}
            for i, phase in enumerate(phases)
        ],
        "notes": under_way.notes,
        "triggers": [
            [report.epoch, round((report.ended - report.began) * 1e3, 1)]
            for report in acknowledge.reports(subject.query)
        ],
        "timeline": timeline(epochs, schedule).to_json(),
        "memory": observer.memory(schedule.begin),
        "pauses": observer.pauses(schedule.begin),
    }


def figures(epochs: Sequence[Epoch], schedule: Schedule, start: float, end: float) -> dict[str, Any]:
    """Of the records due in a phase: how many, their latencies, and the epochs that ended in it."""
    first, last = schedule.record_at(start), schedule.record_at(end)
    histogram = Histogram()
    for epoch in epochs:
        a, b = max(epoch.first, first), min(epoch.end, last)
        if a < b:
            histogram.record_span(epoch.at - schedule.due(b - 1), epoch.at - schedule.due(a), b - a)
    return {
        "second": round(start - schedule.begin, 3),
        "seconds": round(end - start, 3),
        "epochs": sum(start <= epoch.at < end for epoch in epochs),
        **histogram.summary(),
        "histogram": histogram.to_json(),
    }


def timeline(epochs: Sequence[Epoch], schedule: Schedule) -> Timeline:
    """The latencies of all records by when they were due."""
    line = Timeline(schedule.begin)
    for epoch in epochs:
        line.record(schedule.due(epoch.first), schedule.due(epoch.end), epoch.end - epoch.first, epoch.at)
    return line
