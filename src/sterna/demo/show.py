"""The demo from beginning to end."""

from __future__ import annotations

from rich.console import Console

from sterna.bench import harness, machine
from sterna.bench.report_data import Report
from sterna.demo import moves, restart, telling
from sterna.demo.setup import Setup
from sterna.demo.watching import Watcher
from sterna.live import View
from sterna.session import interruptible, workplace

MEMORY = "2g"


def run(setup: Setup, console: Console) -> tuple[Report, dict[str, object]]:
    """Runs it and shows it on a console; returns the report, and the figures as JSON has them."""
    console.print(f"Starting Spark. {introduction(setup)}", soft_wrap=True)
    with (
        workplace("local[2]", MEMORY, settings=harness.settings) as (spark, root),
        # Not earlier: what Spark says when it starts would end up in the middle of the picture.
        Watcher(View(console)) as watcher,
    ):
        facts = machine.facts(spark)

        def parts() -> tuple[moves.Moves, restart.Restart]:
            ours = moves.run(spark, setup, str(root / "sterna"), watcher)
            return ours, restart.run(spark, setup, str(root / "spark"), ours.rate, watcher)

        ours, theirs = interruptible(parts, spark.stop)
        watcher.say("done")
    if theirs.skipped is not None:
        console.print(theirs.skipped, soft_wrap=True)
    return telling.report(setup, ours, theirs, facts), telling.figures(setup, ours, theirs, facts)


def introduction(setup: Setup) -> str:
    """What will happen, in a few sentences."""
    return (
        f"A stream counts {setup.keys:,} keys with {setup.payload} bytes of text each, in {setup.bins} bins. "
        f"A quarter of them moves when {setup.workers} workers become {setup.fewer}, and again when they "
        f"become {setup.workers}, with each strategy. All workers are on this machine and could hand their "
        "files over; here the state really travels, through the exchange."
    )
