"""How long do answers take while state moves as each planner says?

This follows Figures 11 and 16 of the paper on optimal operator-state migration, on the live engine.

Method. Texts come at a set rate, whatever becomes of those before them (``harness``), and words are counted,
or frequent patterns found. After a quiet time a planner is asked for a plan for more workers, from the sizes
and rows that the query knows of its bins, and the query moves there. Reported are the latencies of the texts
that were due from shortly before then on, because those may have to wait for the move, for so many seconds:
their mean, as in the paper, and the longest. Then the query goes back to where it began, and once texts wait
no longer than before, the next planner takes its turn; every other round in the opposite order. State is
shipped between workers and never handed over by reference.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import sterna
from sterna import planning, strategies
from sterna.bench import acknowledge, harness
from sterna.bench.latency import Histogram
from sterna.bench.openloop import Records
from sterna.bench.phases import LEAST_EPOCHS, Phase, Run, waits
from sterna.bench.rig import Say
from sterna.bench.subjects import SternaSubject
from sterna.examples.patterns import maximal_patterns
from sterna.examples.texts import Shape, texts
from sterna.examples.words import words
from sterna.planning import baselines

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MOVE_SECONDS, SETTLE_SECONDS = 600.0, 30.0
Planner = Callable[..., planning.Plan]


@dataclass(frozen=True)
class Size:
    """How large the experiment is.

    Attributes:
        rate: texts a second.
        vocabulary: how many words there are.
        workers: how many there are, and will be.
        bins: how many.
        tau: the balance that is asked for.
        windows: of the frequent patterns, in seconds.
        support: how many texts of a window have a frequent pattern.
        quiet: seconds before a migration that it is compared with.
        lead: seconds between these and the migration.
        seconds: from its begin on, that are reported together with these.
        rounds: how often all ways take turns.
    """

    rate: float
    vocabulary: int
    workers: tuple[int, int]
    bins: int
    tau: float
    windows: tuple[int, ...]
    support: int
    quiet: float
    lead: float
    seconds: float
    rounds: int


FULL = Size(1_000.0, 1_000_000, (4, 5), 64, 0.2, (10, 40), 50, 10.0, 2.0, 10.0, 3)
SMOKE = Size(50.0, 200, (2, 3), 16, 0.2, (1,), 5, 0.5, 0.2, 0.5, 1)


@dataclass(frozen=True)
class Way:
    """A planner, and a strategy."""

    planner: str
    strategy: str

    @property
    def name(self) -> str:
        """How it is called in figures."""
        return f"{self.planner}, {self.strategy}"

    def plan(self, query: sterna.Query, operator: str, workers: int, tau: float) -> planning.Plan:
        """What the planner says, with the balance asked for, or the most even that it has."""
        known, here = query.statistics(operator), query.configuration(operator)
        arrays = here.owners.astype(np.int64), known.bytes, known.load()
        try:
            return PLANNERS[self.planner](*arrays, workers, tau)
        except planning.Unbalanceable as error:
            return PLANNERS[self.planner](*arrays, workers, error.least)


PLANNERS: dict[str, Planner] = {
    "single step": partial(planning.ssm, leaving="last"),
    "general": partial(planning.general, seconds=0, leaving="last"),
    "hashing, bounded": partial(baselines.consistent, bounded=True),
    "Storm": baselines.storm,
}
WAYS = [
    *(Way(planner, "all_at_once") for planner in PLANNERS),
    Way("single step", "matched"),
]


@dataclass(frozen=True)
class Numbers:
    """Every record is its own key."""

    count: int = 0
    filled_at: int = 0

    def expression(self, value: Column) -> Column:
        """The number."""
        return value


class TextSubject(SternaSubject):
    """An application on texts; without a window, it is word count."""

    def __init__(self, size: Size, window: int | None, folder: str) -> None:
        checkpoint = os.path.join(folder, "checkpoint")
        super().__init__(checkpoint, size.workers[0], size.bins, share_host_state=False, watermark_delay=0)
        self.name = "words" if window is None else f"patterns of {window} s"
        self._size, self._window, self._input = size, window, os.path.join(folder, "input")

    def flow(self, stream: DataFrame) -> sterna.Stream:
        """See ``SternaSubject``."""
        size = self._size
        made = texts(stream, Shape(rate=size.rate, vocabulary=size.vocabulary), number="key")
        if self._window is None:
            return words(made)
        slide = max(1, self._window // 10)
        return maximal_patterns(made, window=self._window, slide=slide, support=size.support, longest=2)

    def epochs(self, end_of: Callable[[int], int]) -> list[acknowledge.Epoch]:
        """See ``Subject``; lines are counted, as for Spark's own queries, but those of the input alone.

        Rows can't be counted, because the router makes several of a text.
        """
        lines = {}
        for progress in self.query.recentProgress:
            told = json.loads(progress.json)
            ours = [one["numInputRows"] for one in told["sources"] if self._input in one["description"]]
            lines[told["batchId"]] = sum(ours)
        found = [replace(one, lines=lines[one.epoch]) for one in acknowledge.reports(self.query)]
        return acknowledge.by_lines(found, end_of)


class Turn:
    """One way of one round: its phases, and what is known of it afterwards."""

    def __init__(self, way: Way, size: Size, number: int) -> None:
        self.way, self._size = way, size
        self._name = f"{number}: {way.name}"
        self._longest_wait = 0.0
        self.moved: dict[str, Any] = {}

    def phases(self) -> list[Phase]:
        """What happens, in order."""
        return [
            Phase(f"{self._name}: before", self._before),
            Phase(f"{self._name}: lead", self._size.lead),
            Phase(f"{self._name}: during", self._during),
            Phase(f"{self._name}: back", self._back),
        ]

    def figures(self, phases: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """What is reported."""
        out: dict[str, Any] = {**self.moved}
        for when, spans in (("before", ["before"]), ("during", ["lead", "during"])):
            histogram = Histogram()
            for span in spans:
                histogram.merge(Histogram.from_json(phases[f"{self._name}: {span}"]["histogram"]))
            summary = histogram.summary()
            out[when] = {
                "mean_ms": round(histogram.mean() * 1e3, 1),
                "p99_ms": summary["p99_ms"],
                "max_ms": summary["max_ms"],
            }
        return out

    def _before(self, run: Run) -> None:
        began = time.time()
        run.sleep(self._size.quiet)
        known = waits(run.reports)
        quiet = [wait for ended, wait in known if ended >= began]
        self._longest_wait = max(quiet or [wait for _, wait in known[-LEAST_EPOCHS:]], default=math.inf)

    def _during(self, run: Run) -> None:
        query, operator = _query(run)
        began = time.monotonic()
        plan = self.way.plan(query, operator, self._size.workers[1], self._size.tau)
        planned = time.monotonic() - began
        how = strategies.from_json({"name": self.way.strategy})
        outcome = query.migrate(plan, how, operator=operator, cause="benchmark").wait(MOVE_SECONDS)
        self.moved = {
            "tau": round(plan.tau, 4),
            "plan_ms": round(planned * 1e3, 2),
            "bins": outcome["bins"],
            "bytes": outcome["bytes"],
            "steps": outcome["steps"],
            "seconds": round(outcome["ended"] - outcome["started"], 3),
        }
        run.sleep(max(0.0, began + self._size.seconds - time.monotonic()))

    def _back(self, run: Run) -> None:
        query, operator = _query(run)
        here = query.configuration(operator)
        alike = np.ones(here.bins)
        home = baselines.storm(here.owners.astype(np.int64), alike, alike, self._size.workers[0])
        query.migrate(home, operator=operator, cause="benchmark").wait(MOVE_SECONDS)
        # A machine that has become slower need not become what it was.
        with contextlib.suppress(TimeoutError):
            run.until_usual(1.1 * self._longest_wait, since=time.time(), limit=SETTLE_SECONDS)


def measure(spark: SparkSession, folder: str, size: Size, say: Say) -> list[dict[str, Any]]:
    """A line for each application and way; see the module's docstring."""
    out = []
    for window in (None, *size.windows):
        place = os.path.join(folder, f"response-{window or 'words'}")
        subject = TextSubject(size, window, place)
        turns = [
            Turn(way, size, number)
            for number in range(size.rounds)
            for way in (WAYS if number % 2 == 0 else reversed(WAYS))
        ]
        result = harness.run(
            spark,
            subject,
            place,
            # Windows must be full before anything is compared.
            [Phase("filling", float(window or 0)), *(phase for turn in turns for phase in turn.phases())],
            rate=size.rate,
            records=Records(Numbers()),
            say=say,
        )
        phases = {phase["name"]: phase for phase in result["phases"]}
        for way in WAYS:
            rounds = [turn.figures(phases) for turn in turns if turn.way == way]
            out.append(_line(size, window, way, rounds))
    return out


def _line(size: Size, window: int | None, way: Way, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    def middle(when: str, name: str) -> float:
        return float(round(statistics.median(one[when][name] for one in rounds), 1))

    return {
        "application": "words" if window is None else "patterns",
        "window_s": window,
        "planner": way.planner,
        "strategy": way.strategy,
        "rate": size.rate,
        "workers": list(size.workers),
        "bins": size.bins,
        "moved_mb": round(statistics.median(one["bytes"] for one in rounds) / 2**20, 3),
        "moved_bins": statistics.median(one["bins"] for one in rounds),
        **{
            f"{when}_{name}": middle(when, name)
            for when in ("before", "during")
            for name in ("mean_ms", "p99_ms", "max_ms")
        },
        "rounds": rounds,
    }


def _query(run: Run) -> tuple[sterna.Query, str]:
    """The query, and the operator whose state moves: the first."""
    assert isinstance(run.subject, SternaSubject)
    assert run.subject.handle is not None, "not started"
    return run.subject.handle, run.subject.handle.flow.operators[0].name
