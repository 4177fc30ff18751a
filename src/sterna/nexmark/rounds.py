"""A query with one strategy: a run in which its state moves there and back.

It goes from an empty state through the warm-up, a quiet time, the move there, a quiet time, the move back.

Every strategy has a run of its own on a new checkpoint, and does the same at the same seconds of it, so that
all see the same state: the warm-up ends at a fixed second, and the second quiet time begins no earlier than
in the first of the runs (``Moments``). The end of the warm-up is an open-loop check of the rate: ``TooFast``
is raised if records waited longer than they may. So is it after the first quiet time, if they did in more
than one epoch of ten: a rate that is kept up with for some seconds may not be for minutes.
"""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sterna.bench import harness
from sterna.bench.leg import Course, Leg
from sterna.bench.phases import Phase, Run, waits
from sterna.bench.rig import Say
from sterna.bench.trial import figures
from sterna.nexmark.feeding import Auctions, NexmarkSubject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAYS = ("there", "and back")
MOSTLY = 90
"""In how many epochs of a hundred no record may wait longer than it may for a rate to be kept up with."""


class TooFast(Exception):
    """Records waited longer than they may: so many seconds."""

    def __init__(self, longest: float) -> None:
        super().__init__(f"records waited {longest:.2f} s")
        self.longest = longest


class Moments:
    """The seconds of a run at which something begins: as the first run has it, no run begins it earlier."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    def wait(self, name: str, second: float) -> float:
        """How many seconds are left until then, for a run that is at this second.

        Example:
            >>> moments = Moments()
            >>> moments.wait("back", 200.0), moments.wait("back", 140.0), moments.wait("back", 210.0)
            (0.0, 60.0, 0.0)
        """
        return max(0.0, self._seconds.setdefault(name, second) - second)


@dataclass
class Round:
    """One run of a query with a strategy.

    Attributes:
        strategy: its name.
        course: how long the parts take.
        warm_up: seconds before the first quiet time, from the beginning of the run.
        check: the last of these, in which the rate is checked.
        limit: how many seconds records may wait then; not looked at if there is none.
        moments: those of all runs.
        checked: how many seconds records waited at the most in the check.
    """

    strategy: str
    course: Course
    warm_up: float
    check: float
    limit: float | None
    moments: Moments
    checked: float = math.inf
    legs: list[Leg] = field(default_factory=list)
    migrations: list[dict[str, Any]] = field(default_factory=list)
    result: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.legs = [Leg(self.strategy, self.course, f"{self.strategy} {way}", every=True) for way in WAYS]
        self._began = 0.0
        self._warm = False

    def run(
        self,
        spark: SparkSession,
        subject: NexmarkSubject,
        folder: str,
        events: Auctions,
        rate: float,
        say: Say,
    ) -> None:
        """Runs it, in a folder that holds the session's settings.

        Raises ``TooFast`` as soon as that is known.
        """
        self._began = time.time()
        try:
            self.result = harness.run(
                spark,
                subject,
                os.path.join(folder, f"run-{Path(subject.checkpoint).name}"),
                self._phases(),
                rate=rate,
                records=events,
                window=self.course.window,
                say=say,
                settings_folder=folder,
            )
        except TimeoutError as error:
            if self.limit is None or self._warm:
                raise
            raise TooFast(math.inf) from error  # latency never stood still
        finally:
            shutil.rmtree(subject.checkpoint, ignore_errors=True)
        phases = {phase["name"]: phase for phase in self.result["phases"]}
        self.migrations = [
            {
                "name": leg.name,
                "strategy": leg.strategy,
                **figures(leg, phases, self.result, subject.milliseconds),
            }
            for leg in self.legs
        ]

    def _phases(self) -> list[Phase]:
        there, back = self.legs
        before, *moving = there.phases()
        return [
            Phase(f"{self.strategy}: warm-up", self._warm_up),
            before,
            Phase(f"{self.strategy}: look back", self._look_back),
            *moving,
            Phase(f"{self.strategy}: until the others' moment", self._until("back")),
            *back.phases(),
        ]

    def _warm_up(self, run: Run) -> None:
        self._warm = True
        run.sleep(max(self.check, self.warm_up - (time.time() - self._began)))
        since = time.time() - self.check
        self.checked = max((wait for ended, wait in waits(run.reports) if ended >= since), default=math.inf)
        if self.limit is not None and self.checked > self.limit:
            raise TooFast(self.checked)

    def _look_back(self, run: Run) -> None:
        """After the first quiet time."""
        since = time.time() - self.course.quiet
        quiet = [wait for ended, wait in waits(run.reports) if ended >= since]
        usual = float(np.percentile(quiet, MOSTLY)) if quiet else math.inf
        if self.limit is not None and usual > self.limit:
            raise TooFast(usual)

    def _until(self, name: str) -> Callable[[Run], None]:
        def action(run: Run) -> None:
            run.sleep(self.moments.wait(name, time.time() - self._began))

        return action

    @property
    def quiet(self) -> list[dict[str, Any]]:
        """The phases in which nothing moved."""
        names = {f"{leg.name}: before" for leg in self.legs}
        return [phase for phase in self.result["phases"] if phase["name"] in names]
