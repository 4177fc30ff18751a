"""``sterna nexmark run``: a query in an open loop, a quarter of its state moved twice with each strategy, as in §5.1 of the Megaphone paper.

Without a rate the highest one is searched first. The figures are those of ``bench.trial``: a migration is compared with the quiet time before it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from sterna.bench import harness, machine
from sterna.bench.leg import Course, Leg
from sterna.bench.report_data import Report
from sterna.bench.rig import Say
from sterna.bench.traces import run_of
from sterna.bench.trial import figures, latencies
from sterna.nexmark.feeding import Auctions, NexmarkSubject
from sterna.nexmark.highest import Search, highest
from sterna.nexmark.queries import query as query_of
from sterna.session import interruptible, workplace

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

DILATION = {"q8": 79.0, "nbq8": 79.0, "nbqx": 79.0}
"""How much faster event time passes than the clock, for the queries with windows of hours, as in the paper. Its Q5 is dilated too: a minute stands for an hour, a second for a minute; our windows are those already."""
USUAL = Course(quiet=30.0, settle=60.0, rest=5.0)
QUICK = Course(quiet=3.0, lead=0.5, longest=60.0, settle=10.0, rest=1.0, window=2.0)
SEARCH = Search()


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
        options: more options of the source.
    """

    query: str
    rate: float | None = None
    strategies: tuple[str, ...] = ("all_at_once", "matched")
    workers: int = 4
    bins: int = 4096
    course: Course = USUAL
    search: Search = SEARCH
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def events(self) -> Auctions:
        """The source."""
        usual = {"packed": "true", "dilation": DILATION.get(self.query, 1.0)}
        return Auctions({**usual, **dict(self.options)})


def run(
    say: Say, plan: Plan, master: str = "local[2]", memory: str = "4g", folder: str | None = None
) -> tuple[dict[str, Any], Report]:
    """Figures, and what a page is made of; see the module's docstring."""
    query_of(plan.query)
    with workplace(master, memory, folder, harness.settings) as (spark, root):
        return interruptible(lambda: _run(spark, root, plan, say), spark.stop)


def _run(spark: SparkSession, root: Path, plan: Plan, say: Say) -> tuple[dict[str, Any], Report]:
    def subject(checkpoint: str) -> NexmarkSubject:
        return NexmarkSubject(plan.query, checkpoint, plan.workers, plan.bins, share_host_state=False)

    rate = plan.rate
    if rate is None:
        rate = highest(spark, subject, plan.events, str(root / "search"), plan.search, say)
    say(f"{plan.query}: {rate:,.0f} events a second")
    legs = [
        Leg(name, plan.course, f"{name} {way}") for name in plan.strategies for way in ("there", "and back")
    ]
    running = subject(str(root / "checkpoint"))
    events = replace(plan.events, options={**plan.events.options, "eventRate": rate})
    result = harness.run(
        spark,
        running,
        os.path.join(root, "run"),
        [phase for leg in legs for phase in leg.phases()],
        rate=rate,
        records=events,
        window=plan.course.window,
        say=say,
        settings_folder=str(root),
    )
    phases = {phase["name"]: phase for phase in result["phases"]}
    found = {leg.name: figures(leg, phases, result, running.milliseconds) for leg in legs}
    steady = latencies([phases[f"{leg.name}: before"] for leg in legs])
    told = {
        "benchmark": "nexmark",
        "query": plan.query,
        "rate": round(rate),
        "searched": plan.rate is None,
        "workers": plan.workers,
        "bins": plan.bins,
        "options": {name: str(value) for name, value in events.options.items()},
        "steady": steady,
        "migrations": [{"name": leg.name, "strategy": leg.strategy, **found[leg.name]} for leg in legs],
        "timeline": result["timeline"],
        "machine": machine.facts(spark),
    }
    report: Report = {
        "title": f"NEXMark {plan.query}: what moving state costs",
        "steady": {"p50_ms": steady["p50_ms"], "p99_ms": steady["p99_ms"], "max_ms": steady["max_ms"]},
        "runs": [{**run_of(leg.strategy, found[leg.name], result), "name": leg.name} for leg in legs],
        "machine": told["machine"],
    }
    return told, report


def show(told: dict[str, Any], console: Console) -> None:
    """A table."""
    table = Table(title=f"NEXMark {told['query']}, {told['rate']:,} events a second")
    for name in ("", "steps", "seconds", "MB", "p99", "longest", "longest before"):
        table.add_column(name, justify="left" if not name else "right")
    for one in told["migrations"]:
        table.add_row(
            one["name"],
            str(one["steps"]),
            f"{one['seconds']:.1f}",
            f"{one['bytes'] / 1e6:,.1f}",
            f"{one['during']['p99_ms']:,.0f} ms",
            f"{one['during']['max_ms']:,.0f} ms",
            f"{one['before']['max_ms']:,.0f} ms",
        )
    console.print(table)
