"""What all migration experiments share: the session, the places that are filled so far, and taking turns.

In every round all cases run once, in an order that is reversed every other round, and so do the strategies of
a case: a machine that becomes slower or faster does not favour any of them. Cases on one state at one rate
share a run.
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from rich.markup import escape

from sterna.bench.leg import Course
from sterna.bench.place import WORKERS, Place, filled
from sterna.bench.rig import Say
from sterna.bench.sizes import Sizes, State
from sterna.bench.trial import MEMORY, Part, trial

SPREADS = (
    "max_ratio",
    "p99_ratio",
    "increase_ms",
    "equal_increase_ms",
    "seconds",
    "within_latency",
    "within_trigger",
)


@dataclass
class Case:
    """Some strategies on one state at one load, and their rounds so far.

    Attributes:
        rounds: the figures of each round, by strategy.
        trace: what happened over time in the first round.
    """

    place: Place
    strategies: list[str]
    bins: int
    rate: float
    labels: dict[str, Any]
    rounds: list[dict[str, dict[str, Any]]] = field(default_factory=list)
    trace: dict[str, Any] = field(default_factory=dict)


@dataclass
class Laboratory:
    """Where experiments happen; no run begins after ``until``, by the monotonic clock.

    Attributes:
        asked: the names of all experiments.
        together: what was found of those that were measured together with another one.
    """

    spark: SparkSession
    root: Path
    sizes: Sizes
    rounds: int
    say: Say
    until: float = math.inf
    asked: tuple[str, ...] = ()
    together: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    places: dict[tuple[int, int], Place] = field(default_factory=dict)
    measured: bool = False

    def place(self, state: State) -> Place:
        """The place with so many keys.

        It is filled when it is first asked for, with whatever number of bins that names.
        """
        key = (state.keys, state.payload)
        if key not in self.places:
            folder = str(self.root / f"state-{state.keys}-{state.payload}")
            size = (state.keys, state.payload, 2**state.power)
            self.places[key] = filled(self.spark, folder, *size, self.sizes.pressure, self.say)
        return self.places[key]

    def case(self, state: State, *, power: int | None = None, load: float = 0.5, **labels: Any) -> Case:
        """All strategies on a state at a share of the maximum rate."""
        place, bins = self.place(state), 2 ** (state.power if power is None else power)
        rate = max(1.0, place.ceiling["records_per_second"] * load)
        named = {"keys": state.keys, "bins": bins, "rate": round(rate), **labels}
        return Case(place, self.strategies(bins), bins, rate, named)

    def strategies(self, bins: int) -> list[str]:
        """The strategies to compare; ``fluid`` where it ends within minutes."""
        fluid = ["fluid"] if bins // WORKERS <= self.sizes.fluid_bins else []
        return [*self.sizes.strategies, *fluid]

    def hurry(self) -> bool:
        """Begins no other run, if something was measured already; whether it was."""
        if self.measured:
            self.until = -math.inf
            self.say("the run under way is the last; interrupt again to end at once, without a result")
        return self.measured

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() > self.until

    def take_turns(self, cases: list[Case], course: Course, sample: float = 0.25) -> list[dict[str, Any]]:
        """Runs all cases, round by round; gives a line for each strategy of each.

        Those on one state at one rate are one run: a query takes its time after a start. A run that fails is
        told of, and costs only itself.
        """
        runs: dict[tuple[str, float], list[Case]] = {}
        for case in cases:
            runs.setdefault((case.place.folder, case.rate), []).append(case)
        for number in range(self.rounds):
            for some in runs.values() if number % 2 == 0 else reversed(runs.values()):
                if self.late:
                    self.say("the time is up")
                    return lines(cases)
                self._run(some if number % 2 == 0 else some[::-1], number, course, sample)
        return lines(cases)

    def _run(self, cases: list[Case], number: int, course: Course, sample: float) -> None:
        """A round of some cases."""
        names = [", ".join(f"{key} {value:,}" for key, value in case.labels.items()) for case in cases]
        what = "; ".join(names)
        self.say(f"round {number + 1} of {self.rounds}: {what}")
        try:
            found, trace = trial(
                self.spark,
                cases[0].place,
                [Part(one.bins, one.strategies[:: 1 if number % 2 == 0 else -1]) for one in cases],
                course,
                rate=cases[0].rate,
                settings_folder=str(self.root),
                sample=sample,
            )
        except Exception as error:  # noqa: BLE001 - as take_turns says
            self.failures.append(f"round {number + 1}, {what}: {error}")
            self.say(f"[red]failed:[/red] {escape(str(error))}")
            return
        self.measured = True
        for case, name, one in zip(cases, names, found, strict=True):
            case.trace = case.trace or trace
            case.rounds.append(one)
            for strategy, way in one.items():
                self.say(f"  {name}, {strategy}: {_brief(way)}")


def lines(cases: list[Case]) -> list[dict[str, Any]]:
    """A line for each strategy of each case that was measured at least once."""
    return [line(case, strategy) for case in cases if case.rounds for strategy in case.strategies]


def line(case: Case, strategy: str) -> dict[str, Any]:
    """The medians of a strategy, with their spread, and its rounds."""
    rounds = [one[strategy] for one in case.rounds]
    bin_bytes = statistics.median(one["bytes"] / max(1, one["bins"]) for one in rounds)
    extra = {
        name: [one[f"{name}_during"] - one[f"{name}_before"] for one in rounds if one[f"{name}_during"]]
        for name in MEMORY
    }
    return {
        "strategy": strategy,
        **case.labels,
        "before_max_ms": spread([one["before"]["max_ms"] for one in rounds]),
        "during_max_ms": spread([one["during"]["max_ms"] for one in rounds]),
        **{name: spread([one[name] for one in rounds]) for name in SPREADS},
        **{name.replace("_mb", "_extra_mb"): spread(values) for name, values in extra.items()},
        "bin_bytes": round(bin_bytes),
        "extra_bins": spread([mb * 2**20 / max(1.0, bin_bytes) for mb in extra["worker_anonymous_mb"]]),
        "ended": all(one["ended"] for one in rounds),
        "rounds_measured": len(rounds),
        "after_max_ms": spread([one["after"]["max_ms"] for one in rounds]),
        "steps": statistics.median(one["steps"] for one in rounds),
        "bytes": statistics.median(one["bytes"] for one in rounds),
        "rounds": rounds,
    }


def spread(values: list[float]) -> dict[str, float | None]:
    """The median, and the least and the greatest."""
    if not values:
        return {"median": None, "least": None, "greatest": None}
    middle = statistics.median(values)
    return {"median": round(middle, 4), "least": round(min(values), 4), "greatest": round(max(values), 4)}


def _brief(way: dict[str, Any]) -> str:
    return (
        f"max {way['before']['max_ms']:,.0f} → {way['during']['max_ms']:,.0f} ms ({way['max_ratio']:.2f}×), "
        f"{way['steps']} steps in {way['seconds']:.0f} s, {way['within_latency']:.1%} within "
        f"{way['limit_ms']:.0f} ms{'' if way['ended'] else ', not ended'}"
    )
