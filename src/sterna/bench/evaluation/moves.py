"""The lines of ``sterna bench migrate``: what a strategy did to one state at one load, in all rounds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sterna.bench.evaluation.entries import Entry
from sterna.bench.evaluation.plots import Mark
from sterna.bench.evaluation.words import code, factor, share, spread
from sterna.readable import count, duration, milliseconds

ORDER = ("all_at_once", "fluid", "batched", "matched", "paced")
HEADS = ("strategy", "steps", "took", "longest before", "longest during", "ratio", "epochs within the limit")


@dataclass(frozen=True)
class Move:
    """A line: medians over its rounds. Latencies are the longest of any record, in milliseconds."""

    strategy: str
    keys: int
    bins: int
    rate: float
    before_ms: float
    during_ms: float
    ratio: float
    seconds: float
    steps: float
    ended: bool
    entry: Entry

    @property
    def increase_ms(self) -> float:
        """By how much the longest latency grew, in the median round."""
        return self.entry.number("increase_ms", "median")

    def p99_ms(self, when: str) -> float:
        """The 99th percentile of the latencies ``before`` or ``during`` it, in the median round."""
        return statistics.median(one.positive(when, "p99_ms") for one in self.entry.each("rounds"))

    @property
    def step_ms(self) -> float:
        """How long a step takes, its epoch and the wait for it."""
        return 1e3 * self.seconds / max(1.0, self.steps)

    def mark(self, shape: int) -> Mark:
        """The longest latency against the duration."""
        low, high = (self.entry.number("during_max_ms", which) for which in ("least", "greatest"))
        return Mark(1e3 * self.seconds, self.during_ms, shape, (low, high))


def moves(experiment: Entry) -> list[Move]:
    """The lines of an experiment."""
    return [_move(line) for line in experiment.each("results")]


def _move(line: Entry) -> Move:
    return Move(
        line.text("strategy"),
        int(line.positive("keys")),
        int(line.positive("bins")),
        line.positive("rate"),
        line.positive("before_max_ms", "median"),
        line.positive("during_max_ms", "median"),
        line.positive("max_ratio", "median"),
        line.positive("seconds", "median"),
        line.number("steps"),
        line.flag("ended"),
        line,
    )


def strategies(every: Iterable[Move]) -> list[str]:
    """The strategies that occur, in their usual order."""
    found = dict.fromkeys(move.strategy for move in every)
    return [*(name for name in ORDER if name in found), *(name for name in found if name not in ORDER)]


def of(every: Sequence[Move], strategy: str) -> list[Move]:
    """The lines of a strategy."""
    return [move for move in every if move.strategy == strategy]


def cells(move: Move) -> list[str]:
    """A row of a table with the columns ``HEADS``."""
    entry = move.entry
    took = spread(entry, "seconds", duration)
    return [
        code(move.strategy),
        count(move.steps),
        took if move.ended else f"{took}, cancelled",
        milliseconds(move.before_ms),
        spread(entry, "during_max_ms", milliseconds),
        spread(entry, "max_ratio", factor),
        share(entry.maybe("within_latency", "median")),
    ]


def rounds(every: Iterable[Move]) -> str:
    """How many rounds the lines are of."""
    numbers = sorted({len(move.entry.each("rounds")) for move in every})
    if not numbers:
        return "no round"
    if numbers[0] == numbers[-1]:
        return "one round" if numbers[0] == 1 else f"{numbers[0]} rounds"
    return f"{numbers[0]} to {numbers[-1]} rounds"


def unfinished(every: Iterable[Move]) -> str:
    """A sentence about migrations that took longer than they may, if there are any."""
    names = sorted({code(move.strategy) for move in every if not move.ended})
    if not names:
        return ""
    return (
        f"Of {' and '.join(names)}, some migrations took longer than they may and were cancelled: their "
        "figures are of the time until then."
    )
