"""What does moving state cost? The experiments of §5.3 of the Megaphone paper, at one machine's size.

Method. Four workers count records by key and keep a payload for each; state is shipped between them and never handed over by reference
(``share_host_state=False``). Records come at half of the rate that was measured as the maximum, whatever becomes of those before them (see
``harness``). A quarter of the state moves, in the next run back again (``leg``); what a migration does to latency is compared with the quiet time before it. State is
filled once for each size; in every round all strategies run one after the other, on one query. The JVM's heap has a fixed size and is touched at the start, so that
its memory does not hide anything.

Honesty. All rounds are in the result, with the JVM's longest pause and the median, the least and the greatest of each figure. A migration that was
cancelled because it took too long says ``ended: false``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sterna.bench import harness, machine
from sterna.bench.experiments import EXPERIMENTS
from sterna.bench.laboratory import Laboratory
from sterna.bench.migrate_tables import show
from sterna.bench.place import WORKERS
from sterna.bench.report import render
from sterna.bench.rig import Say
from sterna.bench.sizes import FULL, QUICK, SMOKE, Sizes
from sterna.session import workplace

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

    def settings(root: str) -> dict[str, str]:
        given = harness.settings(root)
        return {**given, JAVA: f"{given[JAVA]} -Xms{heap} -XX:+AlwaysPreTouch"}

    with workplace(master, heap, folder, settings) as (spark, root):
        facts = machine.facts(spark)
        until = math.inf if minutes is None else time.monotonic() + 60 * minutes
        lab = Laboratory(spark, root, sizes, rounds or sizes.rounds, say, until)
        found = {}
        for name in experiments:
            say(f"[bold]{name}[/bold]")
            found[name] = EXPERIMENTS[name](lab)
            page = found[name].pop("_report", None)
            if page is not None and report is not None:
                page["machine"] = facts
                Path(report).write_text(render(page), encoding="utf-8")
        return {
            "benchmark": "migrate",
            "rounds": lab.rounds,
            "workers": WORKERS,
            "experiments": found,
            "machine": facts,
        }
