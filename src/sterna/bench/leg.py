"""One way of a migration there and back, as phases of a run: a quiet time, the move, and the time until records wait no longer than before it.

Moving a quarter. ``worker``: all bins of the last worker go to the others, in turns. ``halves``: half of the bins of each worker of the first half go to
the workers of the second half, as in §5 of the Megaphone paper; there ``matched`` moves two bins a step, with ``worker`` only one.

``paced`` is asked for 1.25 times the 99th percentile of what epochs took in the quiet time before. A migration that takes longer than it
may is cancelled: its figures are of the time until then, and ``ended`` says so.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import sterna
from sterna import strategies
from sterna.bench.phases import LOOK_SECONDS, Phase, Run, waits
from sterna.bench.subjects import SternaSubject
from sterna.configuration import Configuration
from sterna.errors import SternaError

HEADROOM = 1.25
CANCEL_SECONDS = 120.0
LEAST_EPOCHS = 3
SHAPES = ("worker", "halves")


@dataclass(frozen=True)
class Course:
    """How a run goes.

    Attributes:
        quiet: seconds before a migration that it is compared with.
        lead: seconds between these and the migration: whatever waits for its first epoch was due in them.
        longest: seconds that a migration may take.
        settle: seconds that records may wait longer than usual after it.
        window: seconds in which the latency must not change before the first phase.
    """

    quiet: float = 60.0
    lead: float = 2.0
    longest: float = 900.0
    settle: float = 120.0
    window: float = 10.0


def quarter(configuration: Configuration, shape: str = "worker") -> dict[int, int]:
    """The bins that move and where to; about a quarter of four workers' bins.

    Example:
        >>> quarter(Configuration.initial(16, 4))
        {12: 0, 13: 1, 14: 2, 15: 0}
        >>> quarter(Configuration.initial(16, 4), "halves")
        {2: 2, 3: 2, 6: 3, 7: 3}
    """
    workers = configuration.workers
    if shape == "worker":
        bins = np.flatnonzero(configuration.owners == workers - 1).tolist()
        return {bin_: i % (workers - 1) for i, bin_ in enumerate(bins)}
    if shape != "halves":
        raise ValueError(f"{shape!r} is none of {SHAPES}")
    half = workers // 2
    out = {}
    for worker in range(half):
        bins = np.flatnonzero(configuration.owners == worker).tolist()
        out.update(dict.fromkeys(bins[len(bins) // 2 :], worker + half))
    return out


def strategy_of(name: str, latency_ms: float) -> strategies.Strategy:
    """A strategy by its name; ``paced`` with this latency."""
    if name == "paced":
        return sterna.paced(latency=latency_ms / 1e3)
    return strategies.from_json({"name": name})


class Leg:
    """One migration, and what is known of it afterwards.

    Attributes:
        outcome: what the migration's handle says at the end.
        limit: the latency that ``paced`` was asked for, in milliseconds.
        quiet_epochs: the epochs of the quiet time.
        recovered: seconds until records waited no longer than before; ``None`` if that took too long.
    """

    def __init__(self, name: str, strategy: str, course: Course, home: Leg | None, shape: str) -> None:
        self.name, self.strategy, self.course, self.home, self.shape = name, strategy, course, home, shape
        self.outcome: dict[str, Any] = {}
        self.limit = 0.0
        self.quiet_epochs = range(0)
        self.recovered: float | None = None
        self.origin: dict[int, int] = {}
        self._longest_wait = 0.0

    def phases(self) -> list[Phase]:
        """What happens, in order."""
        return [
            Phase(f"{self.name}: before", self._before),
            Phase(f"{self.name}: lead", self.course.lead),
            Phase(f"{self.name}: {self.strategy}", self._move),
            Phase(f"{self.name}: after", self._after),
        ]

    def _before(self, run: Run) -> None:
        began, query = time.time(), _query(run)
        first = query.status()["epoch"] + 1
        run.sleep(self.course.quiet)
        while query.status()["epoch"] < first + LEAST_EPOCHS:  # on a busy machine a short time may have none
            run.sleep(LOOK_SECONDS)
        self.quiet_epochs = range(first, query.status()["epoch"] + 1)
        took = [took for epoch, took in _subject(run).milliseconds.items() if epoch >= first]
        self.limit = HEADROOM * float(np.percentile(took, 99))
        self._longest_wait = max((wait for ended, wait in waits(run.reports) if ended >= began), default=0.0)

    def _move(self, run: Run) -> None:
        query = _query(run)
        target = self._target(query.configuration())
        handle = query.migrate(target, strategy_of(self.strategy, self.limit), cause="benchmark")
        try:
            self.outcome = handle.wait(self.course.longest)
        except SternaError:
            if handle.status != "running":
                raise
            handle.cancel()
            self.outcome = handle.wait(CANCEL_SECONDS)

    def _target(self, now: Configuration) -> dict[int, int]:
        if self.home is not None:
            return {bin_: owner for bin_, owner in self.home.origin.items() if now.owners[bin_] != owner}
        target = quarter(now, self.shape)
        self.origin = {bin_: int(now.owners[bin_]) for bin_ in target}
        return target

    def _after(self, run: Run) -> None:
        began = time.time()
        with contextlib.suppress(TimeoutError):
            run.until_usual(self._longest_wait, since=began, limit=self.course.settle)
            self.recovered = round(time.time() - began, 1)
        if self.home is not None and (rest := self._target(_query(run).configuration())):
            _query(run).migrate(rest, cause="benchmark").wait(CANCEL_SECONDS)


def with_bins(count: int) -> Phase:
    """A phase that gives the query so many bins; nothing moves."""

    def action(run: Run) -> None:
        if _query(run).configuration().bins != count:
            _query(run).migrate(sterna.bins(count), cause="benchmark").wait(CANCEL_SECONDS)

    return Phase(f"{count} bins", action)


def _subject(run: Run) -> SternaSubject:
    assert isinstance(run.subject, SternaSubject)
    return run.subject


def _query(run: Run) -> sterna.Query:
    handle = _subject(run).handle
    assert handle is not None, "not started"
    return handle
