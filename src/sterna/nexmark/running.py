"""``sterna nexmark run``: a query in an open loop, while its state moves.

A quarter of its state is moved there and back with each strategy, as in §5.1 of the Megaphone paper.

Without a rate the highest one is searched first (``highest``), and lowered as long as the open loop's records
wait longer than they may (``rounds``). Every strategy has a run of its own from an empty state. The figures
are those of ``bench.trial``: a migration is compared with the quiet minute before it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sterna.bench import harness, machine
from sterna.bench.leg import Course
from sterna.bench.report_data import Report
from sterna.bench.rig import Say
from sterna.nexmark import telling
from sterna.nexmark.feeding import Auctions, NexmarkSubject
from sterna.nexmark.highest import Found, Search, highest
from sterna.nexmark.queries import query as query_of
from sterna.nexmark.rounds import Moments, Round, TooFast
from sterna.nexmark.settings import BINS, SETTINGS, Setting
from sterna.session import interruptible, workplace

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

USUAL = Course(quiet=60.0, longest=600.0, settle=30.0, rest=5.0)
QUICK = Course(quiet=3.0, lead=0.5, longest=60.0, settle=10.0, rest=1.0, window=2.0)
SEARCH, SETTING = Search(), Setting()
QUICK_SEARCH = Search(first=20_000.0, short=1, tries=1, warm=1.0, seconds=2.0)
MOST_REDUCTIONS = 3
LEAST_STEP, MOST_STEP = 0.6, 0.92
"""What a rate becomes that was too high: as much less as records waited too long, within these shares."""


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes:
        query: its name.
        rate: events a second; searched if there is none.
        strategies: in what ways state moves.
        workers: how many.
        bins: how many.
        course: how long everything takes.
        search: how the rate is searched.
        setting: the events' own.
        warm_up: seconds until the state is what it should be; by what the query needs unless given.
        check: seconds after these in which the rate is checked.
    """

    query: str
    rate: float | None = None
    strategies: tuple[str, ...] = ("all_at_once", "matched")
    workers: int = 4
    bins: int = BINS
    course: Course = USUAL
    search: Search = SEARCH
    setting: Setting = SETTING
    warm_up: float | None = None
    check: float = 20.0

    @classmethod
    def of(cls, query: str, **more: Any) -> Plan:
        """A plan with the query's own setting; raises ``InvalidInput`` if there is no such query."""
        query_of(query)
        return cls(query, setting=SETTINGS[query], **more)

    def events(self, rate: float) -> Auctions:
        """The source, at so many events a second."""
        setting = self.setting
        return Auctions(
            {
                "packed": "true",
                "dilation": setting.dilation,
                "inFlight": setting.auctions(rate),
                "eventRate": rate,
            }
        )

    def with_events(self, in_flight: int | None, dilation: float | None) -> Plan:
        """The same with other events, where they are given."""
        usual = self.setting
        return replace(
            self,
            setting=replace(
                usual,
                in_flight=usual.in_flight if in_flight is None else in_flight,
                open_seconds=usual.open_seconds if in_flight is None else None,
                dilation=usual.dilation if dilation is None else dilation,
            ),
        )

    def needed(self, rate: float) -> float:
        """Seconds until the state is what it should be, at so many events a second."""
        return self.setting.needed(rate) if self.warm_up is None else self.warm_up


def quick(plan: Plan) -> Plan:
    """The same at its smallest: shows that it works, not how fast."""
    most = 1_000 if plan.setting.open_seconds is not None else min(plan.setting.in_flight, 1_000)
    return replace(
        plan,
        course=QUICK,
        search=QUICK_SEARCH,
        bins=min(plan.bins, 64),
        setting=replace(plan.setting, in_flight=most, open_seconds=None),
        warm_up=1.0 if plan.warm_up is None else plan.warm_up,
        check=2.0,
    )


def run(
    say: Say, plan: Plan, master: str = "local[2]", memory: str = "4g", folder: str | None = None
) -> tuple[dict[str, Any], Report]:
    """Figures, and what a page is made of; see the module's docstring."""
    with workplace(master, memory, folder, harness.settings) as (spark, root):
        return interruptible(lambda: _run(spark, root, plan, say), spark.stop)


def _run(spark: SparkSession, root: Path, plan: Plan, say: Say) -> tuple[dict[str, Any], Report]:
    facts = machine.facts(spark)  # how busy the machine is before this
    numbers = itertools.count()

    def subject(checkpoint: str) -> NexmarkSubject:
        return NexmarkSubject(plan.query, checkpoint, plan.workers, plan.bins, share_host_state=False)

    def conduct(one: Round, rate: float) -> None:
        checkpoint = str(root / f"{one.strategy}-{next(numbers)}")
        one.run(spark, subject(checkpoint), str(root), plan.events(rate), rate, say)

    found = None
    if plan.rate is None:
        found = highest(spark, subject, plan.events, str(root / "search"), plan.search, say, plan.needed)
    fitted = fit(plan, found, conduct, say)
    told = telling.figures(plan, found, fitted, facts)
    return told, telling.report(plan, fitted, told)


@dataclass(frozen=True)
class Fitted:
    """The runs, by strategy, at the rate at which they ran.

    Also what was too fast: rates, and seconds that records waited.
    """

    rate: float
    rounds: dict[str, Round]
    refused: tuple[tuple[float, float], ...] = ()


def fit(plan: Plan, found: Found | None, conduct: Callable[[Round, float], None], say: Say) -> Fitted:
    """Runs all strategies at the rate that was given or found.

    A rate that was found is lowered some times where the first run's records wait longer than they may.

    Strategies with small steps come first: they take longest, and the others wait for them. ``conduct`` runs
    a round.
    """
    assert found is not None or plan.rate is not None
    rate = found.rate if found is not None else plan.rate or 0.0
    order = sorted(plan.strategies, key=lambda name: name == "all_at_once")
    refused: list[tuple[float, float]] = []
    while True:
        say(f"{plan.query}: {rate:,.0f} events a second")
        moments = Moments()
        rounds: dict[str, Round] = {}
        may_be_lowered = found is not None and len(refused) < MOST_REDUCTIONS
        try:
            for name in order:
                limit = plan.search.latency if may_be_lowered and not rounds else None
                one = Round(name, plan.course, plan.needed(rate) + plan.check, plan.check, limit, moments)
                conduct(one, rate)
                rounds[name] = one
        except TooFast as error:
            refused.append((rate, error.longest))
            rate *= min(max(plan.search.latency / error.longest, LEAST_STEP), MOST_STEP)
            continue
        return Fitted(rate, {name: rounds[name] for name in plan.strategies}, tuple(refused))
