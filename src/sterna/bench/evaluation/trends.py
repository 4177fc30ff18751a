"""What becomes of strategies as something grows, and what that means beside the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sterna.bench.evaluation.moves import Move
from sterna.bench.evaluation.words import ALIKE, changed, code, factor, listed


@dataclass(frozen=True)
class Trend:
    """What becomes of a strategy from the smallest size to the greatest, as ratios.

    There is one of its longest latency and of that of the quiet time, of the 99th percentiles of the two, of
    its duration and of its steps; and of the keys that there are. ``least`` is that of the longest latency at
    the size at which it is shortest.
    """

    strategy: str
    ends: str
    latency: float
    quiet: float
    p99: float
    p99_quiet: float
    seconds: float
    steps: float
    keys: float
    least: float
    least_at: str

    @classmethod
    def of(cls, ordered: Sequence[Move], label: Callable[[Move], str]) -> Trend | None:
        """The trend of a strategy's lines, from the smallest size to the greatest; none of a single line."""
        if len(ordered) < 2:
            return None
        first, last = ordered[0], ordered[-1]
        least = min(ordered, key=lambda move: move.during_ms)
        return cls(
            first.strategy,
            f"from {label(first)} to {label(last)}",
            last.during_ms / first.during_ms,
            last.before_ms / first.before_ms,
            last.p99_ms("during") / first.p99_ms("during"),
            last.p99_ms("before") / first.p99_ms("before"),
            last.seconds / first.seconds,
            last.steps / max(1.0, first.steps),
            last.keys / first.keys,
            least.during_ms / first.during_ms,
            label(least),
        )

    @property
    def by_moving(self) -> float:
        """What the size does to the latency of a migration beyond what it does to any epoch."""
        return self.latency / self.quiet

    @property
    def said(self) -> str:
        """In a sentence."""
        return (
            f"{code(self.strategy)}, {self.ends}: the longest latency {changed(self.latency)}, that of the "
            f"quiet time before it {changed(self.quiet)}; the 99th percentile {changed(self.p99)}, that of "
            f"the quiet time {changed(self.p99_quiet)}; the duration {changed(self.seconds)}."
        )


def meaning(experiment: str, trends: Sequence[Trend]) -> str:
    """What the trends of an experiment mean beside the paper's."""
    whole = [trend for trend in trends if trend.strategy == "all_at_once"]
    fine = [trend for trend in trends if trend.strategy != "all_at_once"]
    judge = {"bins": _more_bins, "keys": _more_keys, "proportional": _in_proportion}[experiment]
    return " ".join(judge(whole, fine))


def _more_bins(whole: list[Trend], fine: list[Trend]) -> list[str]:
    falls = [trend for trend in fine if trend.latency < 1 / ALIKE]
    lower = [code(trend.strategy) for trend in falls if trend.by_moving < 1 / ALIKE]
    alike = [trend for trend in falls if trend.by_moving >= 1 / ALIKE]
    longer = [trend for trend in fine if trend.seconds > ALIKE]
    parts = []
    if lower:
        parts.append(f"As in the paper, more bins lower the longest latency of {listed(lower)}.")
    if alike:
        parts.append(
            f"The longest latency of {listed(code(trend.strategy) for trend in alike)} falls "
            f"({listed(factor(trend.latency) for trend in alike)}), and no more than that of the quiet time "
            f"({listed(factor(trend.quiet) for trend in alike)}): more bins are not seen to lower it."
        )
    higher = [trend for trend in fine if trend.latency >= 1 / ALIKE]
    first = [trend for trend in higher if trend.least < 1 / ALIKE]
    if first:
        said = listed(
            f"of {code(trend.strategy)} up to {trend.least_at} ({factor(trend.least)})" for trend in first
        )
        parts.append(f"More bins lower the longest latency {said}, and no further.")
    if higher:
        names = listed(code(trend.strategy) for trend in higher)
        parts.append(
            f"Unlike in the paper, with most bins that of {names} is not lower than with fewest: a step that "
            "moves little is lost among epochs that are slow for other reasons, and a longer migration meets "
            "more of these."
        )
    for trend in whole:
        kept = 1 / ALIKE <= trend.latency <= ALIKE
        parts.append(
            f"{'As' if kept else 'Unlike'} in the paper, the longest latency of all at once "
            f"{changed(trend.latency)}."
        )
    if longer:
        said = listed(
            (
                f"{code(trend.strategy)} takes {factor(trend.seconds)} as long for {factor(trend.steps)} as "
                "many steps"
            )
            for trend in longer
        )
        parts.append(
            f"Unlike in the paper, more bins make migrations longer: {said}. A step is an epoch here, and an "
            "epoch takes hundreds of milliseconds however little it moves; in the paper a step takes as long "
            "as its bins do."
        )
    return parts


def _more_keys(whole: list[Trend], fine: list[Trend]) -> list[str]:
    every = [*whole, *fine]
    grows = [trend for trend in every if trend.latency > ALIKE]
    kept = [trend for trend in grows if trend.latency * ALIKE >= trend.keys]
    less = [trend for trend in grows if trend not in kept]
    stays = [trend for trend in every if trend.latency <= ALIKE]
    parts = []
    if kept:
        parts.append(
            "As in the paper, the longest latency grows with the keys for "
            f"{listed(code(trend.strategy) for trend in kept)}, at least in proportion."
        )
    if less:
        said = listed(f"{code(trend.strategy)} ({factor(trend.latency)})" for trend in less)
        parts.append(
            f"The longest latency grows with the keys, but **unlike in the paper less than in proportion**: "
            f"with {factor(less[0].keys)} the keys, {said}."
        )
    alike = [trend for trend in grows if trend.by_moving <= ALIKE]
    if alike:
        parts.append(
            f"With {listed(code(trend.strategy) for trend in alike)} it grows no more than that of the quiet "
            "time."
        )
    if stays:
        parts.append(
            f"Unlike in the paper, it does not for {listed(code(trend.strategy) for trend in stays)}: the "
            "part of an epoch that grows with the bytes of a step is small beside the part that does not."
        )
    short = [code(trend.strategy) for trend in every if trend.seconds <= ALIKE]
    if short:
        parts.append(
            f"Unlike in the paper, the duration does not grow for {listed(short)}: what epochs take anyway "
            "is most of it."
        )
    slow = [trend for trend in every if ALIKE < trend.seconds < trend.keys / ALIKE]
    if slow:
        said = listed(f"{code(trend.strategy)} ({factor(trend.seconds)})" for trend in slow)
        parts.append(f"The duration grows less than in proportion, too: {said}.")
    slower = [trend for trend in fine if trend.steps <= ALIKE and trend.seconds > ALIKE]
    if slower:
        parts.append(
            f"{listed(code(trend.strategy) for trend in slower)} {'takes' if len(slower) == 1 else 'take'} "
            "longer with as many steps: every step moves more."
        )
    return parts


def _in_proportion(whole: list[Trend], fine: list[Trend]) -> list[str]:
    kept = [code(trend.strategy) for trend in fine if trend.latency <= ALIKE]
    alike = [trend for trend in fine if trend.latency > ALIKE >= trend.by_moving]
    grown = [trend for trend in fine if trend.latency > ALIKE and trend.by_moving > ALIKE]
    parts = []
    if kept:
        parts.append(f"As in the paper, the longest latency of {listed(kept)} does not grow with the state.")
    if alike:
        parts.append(
            f"That of {listed(code(trend.strategy) for trend in alike)} grows, and no more than that of the "
            "quiet time: epochs over a larger state are slower here, whatever moves."
        )
    if grown:
        parts.append(
            f"**Unlike in the paper, that of {listed(code(trend.strategy) for trend in grown)} grows**, also "
            f"beyond what the quiet time does ({listed(factor(trend.by_moving) for trend in grown)}). In the "
            f"99th percentile that is {listed(factor(trend.p99 / trend.p99_quiet) for trend in grown)}."
        )
    if any(trend.seconds > ALIKE for trend in grown):
        parts.append(
            "The longest latency of a longer migration is that of more epochs, some of which are long by "
            "themselves."
        )
    for trend in whole:
        grows = trend.latency > ALIKE
        parts.append(
            f"As in the paper, that of all at once {changed(trend.latency)}: its one epoch moves all of it."
            if grows
            else f"Unlike in the paper, that of all at once {changed(trend.latency)}."
        )
    return parts
