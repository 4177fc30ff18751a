"""A lap: one system counts by key at a set rate and goes from two workers to four.

The module says what a lap is, and what is told of it.

A lap begins with a state that holds every key once. Records come at a set rate whatever the system does;
after a quiet time the number of workers is changed, and the lap ends when latency is what it was. Records
that were due up to ``LEAD_SECONDS`` before the change count to it: they may wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sterna.bench.latency import SLOT_SECONDS, Histogram
from sterna.bench.openloop import Records
from sterna.bench.source import Turns

BEFORE, AFTER = 2, 4
BACK_WITHIN = 1.1
LEAD_SECONDS = 5.0
ROW_BYTES = 24
"""What a key takes beside its payload, about."""


@dataclass(frozen=True)
class Case:
    """How many keys (a power of two), and how many bytes of payload each."""

    keys: int
    payload: int

    @property
    def turns(self) -> Turns:
        """Which key a record has."""
        return Turns(self.keys)

    @property
    def records(self) -> Records:
        """What a record is."""
        return Records(self.turns, self.payload)

    @property
    def megabytes(self) -> int:
        """About how large the state is."""
        return self.keys * (self.payload + ROW_BYTES) // 2**20


@dataclass(frozen=True)
class Course:
    """How long everything takes, in seconds.

    Attributes:
        warm: of a maximum rate that do not count.
        seconds: of a maximum rate that do.
        quiet: before the change of workers.
        lead: between these and the change.
        rest: after latency is what it was.
        window: in which latency must not change at first.
        limit: after which a lap ends, whether latency is what it was or not.
    """

    warm: float = 20.0
    seconds: float = 30.0
    quiet: float = 20.0
    lead: float = LEAD_SECONDS
    rest: float = 5.0
    window: float = 10.0
    limit: float = 600.0


@dataclass(frozen=True)
class Lap:
    """What was seen; moments are seconds of the timeline.

    Attributes:
        system: whose it is.
        before: the latencies of the quiet time.
        during: those from the lead on until latency was what it was.
        quiet: when the quiet time began and ended.
        asked: when the change was asked for.
        completed: seconds from then until the new workers had everything.
        wrong: keys whose count is wrong in the end.
        timeline: see ``latency.Timeline``.
        steps: what ``completed`` is made of, where it is known; of Spark's, ``refused`` and ``finish`` are
            there because the stop came in mid-epoch.
    """

    system: str
    before: Histogram
    during: Histogram
    quiet: tuple[float, float]
    asked: float
    completed: float
    wrong: int
    timeline: list[dict[str, float]]
    steps: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The figures, ready for JSON."""
        before, during = self.before.summary(), self.during.summary()
        return {
            "system": self.system,
            "before": before,
            "during": during,
            "completed_seconds": round(self.completed, 2),
            "back_seconds": back(self.timeline, self.quiet, self.asked),
            "increase_ms": round(during["max_ms"] - before["max_ms"], 1),
            "wrong_keys": self.wrong,
            "asked": round(self.asked, 2),
            **({"steps": self.steps} if self.steps else {}),
            "timeline": [
                [slot["second"], slot["p50_ms"], slot["max_ms"]]
                for slot in self.timeline
                if slot["second"] >= self.quiet[0]
            ],
        }


def back(timeline: Sequence[dict[str, float]], quiet: tuple[float, float], asked: float) -> float | None:
    """Seconds from the change until latency is what it was; ``None`` if that was not seen.

    It is what it was when every record that is due waits no longer than 1.1 times the longest wait of the
    quiet time.

    Example:
        >>> slots = [{"second": i / 4, "max_ms": ms} for i, ms in enumerate([100, 105, 900, 400, 112, 108])]
        >>> back(slots, (0.0, 0.5), 0.5), back(slots[:4], (0.0, 0.5), 0.5)
        (0.5, None)
    """
    usual = max((slot["max_ms"] for slot in timeline if quiet[0] <= slot["second"] < quiet[1]), default=0.0)
    late = [
        slot["second"] + SLOT_SECONDS
        for slot in timeline
        if slot["second"] >= quiet[1] and slot["max_ms"] > BACK_WITHIN * usual
    ]
    if late and late[-1] > timeline[-1]["second"]:
        return None
    return round(max(0.0, max(late, default=asked) - asked), 2)
