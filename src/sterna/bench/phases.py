"""What happens in a run: named phases, and what they may wait for.

Contract. Waiting asks Spark some times a second for the newest epoch and does nothing else. A query that has
failed raises here, whoever waits. No wait is longer than its limit.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sterna.bench import acknowledge
from sterna.bench.acknowledge import Report
from sterna.bench.subjects import Subject

LOOK_SECONDS = 0.1
LONGEST_WAIT_SECONDS = 600.0
LEAST_EPOCHS = 6


class Run:
    """A run under way, as a phase sees it."""

    def __init__(self, subject: Subject, fed: Callable[[], bool] = lambda: True) -> None:
        self.subject, self._fed = subject, fed
        self.reports: list[Report] = []
        self.notes: dict[str, Any] = {}

    def look(self) -> Report | None:
        """The newest epoch; raises what made the query fail, if something did."""
        query = self.subject.query
        if not self._fed():
            raise RuntimeError("the feeder has died")
        if not query.isActive:
            raise query.exception() or RuntimeError(f"{self.subject.name} stopped by itself")
        report = acknowledge.latest(query)
        if report is not None and (not self.reports or report.epoch > self.reports[-1].epoch):
            self.reports.append(report)
        return report

    def sleep(self, seconds: float) -> None:
        """Lets the query run."""
        self._until(lambda _: False, seconds)

    def until_steady(self, window: float = 5.0, limit: float = LONGEST_WAIT_SECONDS) -> None:
        """Waits until the latency of the epochs of the last ``window`` seconds no longer changes."""
        if not self._until(lambda _: steady(self.reports, time.time(), window), limit):
            raise TimeoutError(
                f"{self.subject.name} was not steady after {limit:.0f} s: its input may come too fast"
            )

    def until_usual(self, longest: float, since: float, limit: float = LONGEST_WAIT_SECONDS) -> None:
        """Waits until three epochs in a row had records wait no longer than so many seconds.

        All of them must have begun after ``since``.
        """

        def usual(_: Report | None) -> bool:
            newest = waits([report for report in self.reports if report.began >= since])[-3:]
            return len(newest) == 3 and all(wait <= longest for _, wait in newest)

        if not self._until(usual, limit):
            raise TimeoutError(
                f"records of {self.subject.name} still wait longer than {longest:.1f} s after {limit:.0f} s"
            )

    def _until(self, done: Callable[[Report | None], bool], limit: float) -> bool:
        deadline = time.monotonic() + limit
        while True:
            if done(self.look()):
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(LOOK_SECONDS, left))


@dataclass(frozen=True)
class Phase:
    """A named part of a run: so many seconds, or a callable that ends when the phase ends."""

    name: str
    action: float | Callable[[Run], None]

    def run(self, run: Run) -> None:
        """Does it."""
        if callable(self.action):
            self.action(run)
        else:
            run.sleep(self.action)


def rescale(workers: int, window: float = 5.0, limit: float = LONGEST_WAIT_SECONDS) -> Callable[[Run], None]:
    """A phase that changes the number of workers and lasts until records wait no longer than before it.

    Before it means in the ``window`` seconds before it. How long each step took, and the whole, is noted.
    """

    def action(run: Run) -> None:
        began = time.time()
        before = [wait for ended, wait in waits(run.reports) if ended >= began - window]
        if not before:
            raise ValueError(f"no epoch ended in the {window} s before the rescale: nothing to compare with")
        steps = run.subject.rescale(workers)
        noted = {name: round(seconds, 3) for name, seconds in steps.items()}
        run.notes[f"rescale to {workers}"] = noted
        run.until_usual(max(before), since=began, limit=limit)
        noted["whole"] = round(time.time() - began, 3)

    return action


def waits(reports: Sequence[Report]) -> list[tuple[float, float]]:
    """When each epoch ended, and how long its oldest record had waited: since the epoch before had begun."""
    return [
        (other.ended, other.ended - one.began)
        for one, other in itertools.pairwise(reports)
        if other.epoch == one.epoch + 1
    ]


def steady(reports: Sequence[Report], now: float, window: float, tolerance: float = 0.25) -> bool:
    """Whether recent epochs waited, in the newer half, about as long as in the older half.

    Recent are those of the last ``window`` seconds, but at least six.
    """
    found = waits(reports)
    recent = [wait for ended, wait in found if ended >= now - window]
    recent = recent if len(recent) > LEAST_EPOCHS else [wait for _, wait in found[-LEAST_EPOCHS:]]
    if len(recent) < LEAST_EPOCHS or reports[0].began > now - window:
        return False
    half = len(recent) // 2
    older, newer = statistics.median(recent[:half]), statistics.median(recent[-half:])
    return abs(newer - older) <= tolerance * older
