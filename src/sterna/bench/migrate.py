"""What does moving state cost? The experiments of §5.3 of the Megaphone paper, at one machine's size.

Method. Four workers count records by key and keep a payload for each; state is shipped between them and never
handed over by reference (``share_host_state=False``). Records come at half of the rate that was measured as
the maximum, whatever becomes of those before them (see ``harness``). A quarter of the state moves, with the
next strategy back again (``leg``); what a migration does to latency is compared with the quiet time before
it. State is filled once for each size; in every round all strategies run one after the other, on one query.
The JVM's heap has a fixed size and is touched at the start, so that its memory does not hide anything.

Honesty. All rounds are in the result, with the JVM's longest pause and the median, the least and the greatest
of each figure. A migration that was cancelled because it took too long says ``ended: false``.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.markup import escape

from sterna.bench import harness, machine
from sterna.bench.experiments import EXPERIMENTS
from sterna.bench.laboratory import Laboratory
from sterna.bench.migrate_tables import show
from sterna.bench.place import WORKERS
from sterna.bench.report import render
from sterna.bench.rig import Say
from sterna.bench.sizes import FULL, QUICK, SMOKE, Sizes
from sterna.errors import InvalidInput, SternaError
from sterna.session import interruptible, workplace

__all__ = ["EXPERIMENTS", "FULL", "QUICK", "SMOKE", "run", "show"]

JAVA = "spark.driver.extraJavaOptions"


def run(
    say: Say,
    *,
    experiments: Iterable[str] = tuple(EXPERIMENTS),
    sizes: Sizes = FULL,
    rounds: int | None = None,
    minutes: float | None = None,
    master: str = "local[2]",
    memory: str | None = None,
    folder: str | None = None,
    report: str | None = None,
) -> dict[str, Any]:
    """Measure and return the figures; see the module's docstring.

    Args:
        say: takes a line about what is going on.
        experiments: which ones.
        sizes: how large they are.
        rounds: how often all cases take turns; as the sizes say unless given.
        minutes: no run begins later than this after the start; what was measured by then is reported.
        master: Spark's master, if no session runs yet.
        memory: the heap of a session started here.
        folder: where the temporary folder goes; the system's choice unless given.
        report: where to write a page about the headline.
    """
    heap = memory or sizes.memory
    if report is not None and not os.access(Path(report).resolve().parent, os.W_OK):
        raise InvalidInput(f"{report} can't be written: there is no such folder, or it is not yours")

    def settings(root: str) -> dict[str, str]:
        given = harness.settings(root)
        return {**given, JAVA: f"{given[JAVA]} -Xms{heap} -XX:+AlwaysPreTouch"}

    with workplace(master, heap, folder, settings) as (spark, root):
        until = math.inf if minutes is None else time.monotonic() + 60 * minutes
        names = tuple(experiments)
        lab = Laboratory(spark, root, sizes, rounds or sizes.rounds, say, until, names)
        facts = machine.facts(spark)
        pages: dict[str, Any] = {}
        found = interruptible(lambda: _all(lab, pages), spark.stop, lab.hurry)
        for page in pages.values():
            if report is not None:
                page["machine"] = facts
                Path(report).write_text(render(page), encoding="utf-8")
        return {
            "benchmark": "migrate",
            "rounds": lab.rounds,
            "failures": lab.failures,
            "workers": WORKERS,
            "experiments": found,
            "machine": facts,
        }


def _all(lab: Laboratory, pages: dict[str, Any]) -> dict[str, Any]:
    """The experiments, one after the other; one that fails is told of, and costs only itself."""
    found: dict[str, Any] = {}
    for name in lab.asked:
        if lab.late:
            lab.say(f"no time for {name}")
            continue
        lab.say(f"[bold]{name}[/bold]")
        try:
            found[name] = EXPERIMENTS[name](lab)
        except (TimeoutError, RuntimeError, ValueError, SternaError, OSError) as error:
            lab.failures.append(f"{name}: {error}")
            lab.say(f"[red]failed:[/red] {escape(str(error))}")
            continue
        if not lab.sizes.claims:
            found[name]["goals"] = {}
        if "_report" in found[name]:
            pages[name] = found[name].pop("_report")
    return found
