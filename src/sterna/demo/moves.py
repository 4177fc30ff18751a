"""Sterna's part: the steady stream, then each strategy there and back, in one run of the harness."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

import sterna
from sterna.bench import ceiling, harness
from sterna.bench.feeder import Schedule
from sterna.bench.phases import Phase, Run
from sterna.bench.subjects import SternaSubject
from sterna.demo.outputs import CountsOnly, wrong_outputs
from sterna.demo.setup import Setup
from sterna.demo.watching import Watcher
from sterna.errors import SternaError, UpdateRefused
from sterna.handle import MigrationHandle
from sterna.strategies import Strategy

SHARE = 0.4
"""Of what the machine keeps up with, so much is fed."""
ROOM = 1.25
"""How much longer than nearly all epochs without moves an epoch may take with ``paced``."""
PROBE_EPOCH_S = 1.0
POLL_S = 0.1
LONGEST_MOVE_S = 60.0
"""How long a move may take; one that takes longer is cut off, and what is left of it goes at once."""


@dataclass
class Move:
    """One migration: its name and strategy, what became of it, and how many bytes had moved when."""

    name: str
    strategy: str
    outcome: dict[str, Any]
    moved: list[tuple[float, int]]
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def span(self) -> tuple[float, float]:
        """From the freeze of its first epoch to the commit of its last, in seconds since 1970."""
        return self.outcome["started"], self.outcome["ended"]


@dataclass
class Moves:
    """What came of it all."""

    result: dict[str, Any]
    moves: list[Move]
    rate: float
    state_bytes: int
    wrong: int
    steady: dict[str, Any]


def run(spark: SparkSession, setup: Setup, folder: str, watcher: Watcher) -> Moves:
    """Fills the state, finds a rate, runs the phases and checks every count, in the state and as put out.

    The folder is one below that of the session's settings.
    """
    os.makedirs(folder, exist_ok=True)
    records, checkpoint = setup.records(), os.path.join(folder, "checkpoint")
    options: dict[str, Any] = {"workers": setup.workers, "bins": setup.bins, "share_host_state": False}
    watcher.say("filling the state", f"{setup.keys:,} keys, {setup.payload} bytes each")
    filler = SternaSubject(checkpoint, **options, initial_state={"aggregate": setup.initial(spark)})
    filler.start(records.stream(spark, os.path.join(folder, "input")))
    filler.stop()
    watcher.say("looking how much this machine keeps up with")
    probe = ceiling.maximum_rate(
        spark,
        SternaSubject(checkpoint, **options),
        folder,
        records,
        epoch_seconds=PROBE_EPOCH_S,
        warm=setup.probe,
        seconds=setup.probe,
    )
    rate = watcher.rate = min(setup.rate, 1000 * max(1, SHARE * probe.rate // 1000))
    slow = f"{rate:,.0f} records/s, not {setup.rate:,.0f}: this machine keeps up with {probe.rate:,.0f}"
    watcher.say("getting steady", slow if rate < setup.rate else "")
    moves: list[Move] = []
    outputs = os.path.join(folder, "outputs")
    subject = SternaSubject(checkpoint, **options, sink=CountsOnly(outputs))

    def began(run: Run) -> None:
        watcher.watch(run)
        watcher.query = subject.handle

    result = harness.run(
        spark,
        subject,
        folder,
        _phases(setup, subject, moves, watcher),
        rate=rate,
        records=records,
        first=probe.next_record,
        window=min(3.0, setup.steady),
        say=lambda line: watcher.say(line.removeprefix("sterna: ")),
        watch=began,
        settings_folder=os.path.dirname(folder),
    )
    assert subject.handle is not None
    watcher.watch(None)
    watcher.say("comparing every count with the input")
    schedule = Schedule(result["begin"], rate, probe.next_record)
    steady = _measure(setup, moves, subject, schedule)
    expected = setup.counts(0, result["next_record"])
    state_bytes = int(subject.handle.statistics().bytes.sum())
    wrong = setup.wrong(subject.handle.state(), expected)
    wrong += wrong_outputs(outputs, setup.counts(0, probe.next_record), expected)
    watcher.query = None
    return Moves(result, moves, rate, state_bytes, wrong, steady)


def _phases(setup: Setup, subject: SternaSubject, moves: list[Move], watcher: Watcher) -> list[Phase]:
    first = 0

    def steady(run: Run) -> None:
        # What epochs take while code is still compiled is no measure of quiet ones.
        nonlocal first
        first = max(subject.milliseconds, default=-1) + 1
        run.sleep(setup.steady)

    def paced() -> Strategy:
        until = moves[0].outcome["started_epoch"]
        quiet = [took for epoch, took in subject.milliseconds.items() if first <= epoch < until]
        return sterna.paced(latency=round(ROOM * float(np.percentile(quiet, 99))) / 1e3)

    strategies: dict[str, Callable[[], Strategy]] = {
        "all at once": sterna.all_at_once,
        "fluid": sterna.fluid,
        "matched": sterna.matched,
        "paced": paced,
    }
    found = [Phase("warming up", setup.warm), Phase("steady", steady)]
    for name, make in strategies.items():
        for way, workers in (("there", setup.fewer), ("back", setup.workers)):
            found += [
                Phase(f"{name}, {way}", _move(f"{name}, {way}", name, workers, make, moves, watcher)),
                Phase("settling", setup.settle),
            ]
    return found


def _move(
    name: str,
    strategy: str,
    workers: int,
    make: Callable[[], Strategy],
    moves: list[Move],
    watcher: Watcher,
) -> Callable[[Run], None]:
    """A phase that lasts as long as a migration."""

    def action(run: Run) -> None:
        subject = run.subject
        assert isinstance(subject, SternaSubject)
        assert subject.handle is not None
        handle = watcher.moving = subject.handle.migrate(sterna.rescale(workers), make())
        moved, deadline = [(time.time(), 0)], time.monotonic() + LONGEST_MOVE_S
        while not handle.done and time.monotonic() < deadline:
            run.sleep(POLL_S)
            moved.append((time.time(), handle.progress().get("bytes", 0)))
        outcome = handle.wait(0) if handle.done else _cut_off(handle)
        if outcome["status"] != "done":
            subject.handle.migrate(sterna.rescale(workers)).wait(LONGEST_MOVE_S)
        watcher.moving = None
        moves.append(Move(name, strategy, outcome, moved))

    return action


def _cut_off(handle: MigrationHandle) -> dict[str, Any]:
    """Cancels a migration that takes too long; what became of it until then."""
    with contextlib.suppress(UpdateRefused):  # it ended just now
        handle.cancel()
    with contextlib.suppress(SternaError):
        handle.wait(LONGEST_MOVE_S)
    return handle.progress()


def _measure(setup: Setup, moves: list[Move], subject: SternaSubject, schedule: Schedule) -> dict[str, Any]:
    """The latencies of each migration's records, and of those before the first, while nothing moved.

    Those of a migration are from the first record of its first epoch, which waited while state moved, to
    those due when its last was committed.
    """
    epochs = subject.epochs(lambda files: schedule.first + files * schedule.size)
    by_id = {epoch.id: epoch for epoch in epochs}
    begins = []
    for move in moves:
        first, last = by_id[move.outcome["started_epoch"]], by_id[move.outcome["ended_epoch"]]
        begins.append(schedule.due(first.first))
        move.figures = harness.figures(epochs, schedule, begins[-1], last.at)
    return harness.figures(epochs, schedule, begins[0] - setup.steady, begins[0])
