"""A migration as phases of a run: a quiet time, the move, and the time until latency is what it was.

Latency is what it was when records wait no longer than before the move.

A quarter of the state moves, as in §5 of the Megaphone paper: half of the bins of each worker of the first
half go to the workers of the second half. In a dataflow of several operators it is that of the first one, or
of every one that has state (``moving``). Where they are there already, they go back, so that one run may
follow another.

``paced`` is asked for 1.25 times the 99th percentile of what epochs took in the quiet time before, all of it:
a minute has about two epochs beyond that percentile, which says little of what is steady. A migration that
takes longer than it may is cancelled: its figures are of the time until then, and ``ended`` says so.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import sterna
from sterna import spelt, strategies
from sterna.bench.phases import LONGEST_WAIT_SECONDS, LOOK_SECONDS, Phase, Run, waits
from sterna.bench.subjects import SternaSubject
from sterna.configuration import Configuration
from sterna.dataflow import Dataflow
from sterna.errors import SternaError, UpdateRefused
from sterna.operators.base import LATER

HEADROOM = 1.25
CANCEL_SECONDS = 120.0
LEAST_EPOCHS = 3


@dataclass(frozen=True)
class Course:
    """How a run goes.

    Attributes:
        quiet: seconds before a migration that it is compared with.
        further: for strategies that take longer than that, by name, seconds of quiet still before; with them,
            the quiet time is about as long as the migration, or longer.
        lead: seconds between these and the migration: whatever waits for its first epoch was due in them.
        longest: seconds that a migration may take.
        settle: seconds that records may wait longer than usual after it.
        rest: seconds of the time after it that are reported, and part neither of it nor of the next quiet
            time.
        window: seconds in which the latency must not change before the first phase.
        warm: seconds after that which are no part of any phase: a large state takes its time after a start.
    """

    quiet: float = 60.0
    lead: float = 2.0
    longest: float = 900.0
    settle: float = 120.0
    rest: float = 15.0
    window: float = 10.0
    warm: float = 0.0
    further: Mapping[str, float] = field(default_factory=dict)


def quarter(now: Configuration) -> dict[int, int]:
    """The bins that move and where to: a quarter of all from home, or all that are away from it back.

    Example:
        >>> quarter(Configuration.initial(16, 4))
        {2: 2, 3: 2, 6: 3, 7: 3}
        >>> away = np.array([0, 0, 2, 2, 1, 1, 3, 1, 2, 2, 2, 2, 3, 3, 3, 3], np.int32)
        >>> quarter(Configuration(4, 4, away))
        {2: 0, 3: 0, 6: 1}
    """
    home = Configuration.initial(now.bins, now.workers).owners
    if (now.owners != home).any():
        return {int(bin_): int(home[bin_]) for bin_ in np.flatnonzero(now.owners != home)}
    half = now.workers // 2
    out = {}
    for worker in range(half):
        bins = np.flatnonzero(home == worker).tolist()
        out.update(dict.fromkeys(bins[len(bins) // 2 :], worker + half))
    return out


def strategy_of(text: str, latency_ms: float) -> strategies.Strategy:
    """A strategy as it is spelt on the command line; ``paced`` alone with this latency."""
    if text == "paced":
        return sterna.paced(latency=latency_ms / 1e3)
    return strategies.from_json(spelt.strategy_of(text, "as_given", 0))


def moving(flow: Dataflow, *, every: bool) -> list[str]:
    """The operators whose bins move: the first one, or, if all state is to move, the one that has a table.

    Where several have one, or none has, the bins of all operators move, because a migration is for one
    operator or for all. Those without state then change their configuration, as in a query that has none at
    all.
    """
    names = [operator.name for operator in flow.operators]
    if not every:
        return names[:1]
    keeping = [one.name for one in flow.operators if any(spec.name != LATER for spec in one.tables)]
    return keeping if len(keeping) == 1 else names


class Leg:
    """One migration, and what is known of it afterwards.

    Attributes:
        name: what its phases are called; as its strategy unless given.
        operators: whose bins moved; known once they have.
        state_bytes: about how large their state was then, all of it, with what is not merged away yet.
        outcome: what the migration's handle says at the end.
        way: from home (``there``), or to it (``back``).
        limit: the latency that ``paced`` was asked for, in milliseconds.
        quiet_epochs: the epochs of the quiet time, all of it.
        recovered: seconds until records waited no longer than before; ``None`` if that took too long.
    """

    def __init__(
        self, strategy: str, course: Course, name: str | None = None, *, every: bool = False
    ) -> None:
        self.strategy, self.course, self.name = strategy, course, name or strategy
        self._every = every
        self.operators: list[str] = []
        self.state_bytes = 0
        self.outcome: dict[str, Any] = {}
        self.limit = 0.0
        self.way = ""
        self.quiet_epochs = range(0)
        self.recovered: float | None = None
        self._target: dict[int, int] = {}
        self._first: int | None = None
        self._longest_wait = 0.0

    def phases(self) -> list[Phase]:
        """What happens, in order."""
        further = self.course.further.get(self.strategy, 0.0)
        return [
            *([Phase(f"{self.name}: further", self._further)] if further else []),
            Phase(f"{self.name}: before", self._before),
            Phase(f"{self.name}: lead", self.course.lead),
            Phase(f"{self.name}: during", self._move),
            Phase(f"{self.name}: after", self._after),
        ]

    def _further(self, run: Run) -> None:
        self._first = _query(run).status()["epoch"] + 1
        run.sleep(self.course.further[self.strategy])

    def _before(self, run: Run) -> None:
        began, query = time.time(), _query(run)
        first = query.status()["epoch"] + 1
        run.sleep(self.course.quiet)
        deadline = time.monotonic() + LONGEST_WAIT_SECONDS
        while query.status()["epoch"] < first + LEAST_EPOCHS:  # on a busy machine a short time may have none
            run.sleep(LOOK_SECONDS)
            if time.monotonic() > deadline:
                raise TimeoutError(f"fewer than {LEAST_EPOCHS} epochs in {LONGEST_WAIT_SECONDS:.0f} s")
        first = first if self._first is None else self._first
        self.quiet_epochs = range(first, query.status()["epoch"] + 1)
        took = [took for epoch, took in _subject(run).milliseconds.items() if epoch >= first]
        self.limit = HEADROOM * float(np.percentile(took, 99))
        self._longest_wait = max((wait for ended, wait in waits(run.reports) if ended >= began), default=0.0)

    def _move(self, run: Run) -> None:
        query = _query(run)
        self.operators = moving(query.flow, every=self._every)
        self.state_bytes = sum(int(query.statistics(name).bytes.sum()) for name in self.operators)
        now = query.configuration(self.operators[0])
        self._target = quarter(now)
        self.way = "there" if now == Configuration.initial(now.bins, now.workers) else "back"
        strategy = strategy_of(self.strategy, self.limit)
        alone = self.operators[0] if len(self.operators) == 1 else None
        handle = query.migrate(self._target, strategy, operator=alone, cause="benchmark")
        try:
            self.outcome = handle.wait(self.course.longest)
        except SternaError:
            if handle.status != "running":
                raise
            with contextlib.suppress(UpdateRefused):  # it ended just now
                handle.cancel()
                handle.wait(CANCEL_SECONDS)
            self.outcome = handle.progress()

    def _after(self, run: Run) -> None:
        began = time.time()
        query = _query(run)
        rest = self._left(query)
        for name, bins in rest.items():  # it took too long and was cancelled
            query.migrate(bins, operator=name, cause="benchmark").wait(CANCEL_SECONDS)
        with contextlib.suppress(TimeoutError):
            since = time.time() if rest else began
            run.until_usual(self._longest_wait, since=since, limit=self.course.settle)
            self.recovered = None if rest else round(time.time() - began, 1)
        run.sleep(self.course.rest)

    def _left(self, query: sterna.Query) -> dict[str, dict[int, int]]:
        """The bins that are not where they should be, of the operators that have such."""
        left = {}
        for name in self.operators:
            owners = query.configuration(name).owners
            left[name] = {bin_: worker for bin_, worker in self._target.items() if owners[bin_] != worker}
        return {name: bins for name, bins in left.items() if bins}


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
