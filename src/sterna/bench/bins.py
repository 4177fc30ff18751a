"""What do many bins cost?

Method. The same count by key, with the same keys, rows and workers, on 2^4 to 2^20 bins, each on a checkpoint
of its own that is filled first. Then all of them take turns, once a round, in an order that is reversed every
other round: a few epochs that do not count after each restart, then those that do. ``ratio`` is the rows a
second over those of 2^12 bins.

Honesty. All measured epochs count; the round medians are reported, because the differences looked for are
of the size of a machine's noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from sterna.bench import machine
from sterna.bench.rig import Lane, Plan, Say, fill, measure
from sterna.bench.source import Keys
from sterna.bench.summary import figures
from sterna.bench.systems import Sterna
from sterna.session import workplace

REFERENCE = 12


@dataclass(frozen=True)
class Sweep:
    """The numbers of bins, as powers of two, and the load."""

    powers: tuple[int, ...]
    rows: int
    keys: int
    plan: Plan


FULL = Sweep(
    powers=(4, 8, 12, 14, 16, 18, 20),
    rows=200_000,
    keys=10_000_000,
    plan=Plan(warmup=3, epochs=10, seconds=8),
)
QUICK = Sweep(powers=(4, 12, 20), rows=20_000, keys=100_000, plan=Plan(warmup=2, epochs=4))
SMOKE = Sweep(powers=(4, 12), rows=1_000, keys=1_000, plan=Plan(warmup=0, epochs=1))


def run(
    say: Say,
    *,
    sweep: Sweep = FULL,
    rounds: int = 4,
    workers: int | None = None,
    master: str = "local[2]",
    memory: str = "4g",
    folder: str | None = None,
) -> dict[str, Any]:
    """Measure and return the figures; see the module's docstring.

    Args:
        say: takes a line about what is going on.
        sweep: the numbers of bins and the load.
        rounds: how often all of them take turns.
        workers: Sterna's workers; as many as there are cores unless given.
        master: Spark's master, if no session runs yet.
        memory: the heap of a session started here.
        folder: where the temporary folder goes; the system's choice unless given.
    """
    with workplace(master, memory, folder) as (spark, root):
        workers = workers or spark.sparkContext.defaultParallelism
        lanes = {
            power: Lane(
                Sterna(workers, 2**power, name=f"2^{power} bins"),
                str(root / f"bins-{power}"),
                Keys(sweep.keys),
            )
            for power in sweep.powers
        }
        started = machine.facts(spark)
        for lane in lanes.values():
            fill(spark, lane, min(1_000_000, sweep.keys), say)
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            for lane in lanes.values() if number % 2 == 0 else reversed(lanes.values()):
                measure(spark, lane, sweep.rows, sweep.plan, say)
        results: list[dict[str, Any]] = [
            {"bins": 2**power, "power": power, "keys": sweep.keys, **figures(lane, sweep.rows)}
            for power, lane in lanes.items()
        ]
        reference = next(line for line in results if line["power"] == REFERENCE)
        for line in results:
            line["ratio"] = round(line["rows_per_second"] / reference["rows_per_second"], 3)
        return {
            "benchmark": "bins",
            "rows_per_epoch": sweep.rows,
            "rounds": rounds,
            "workers": workers,
            "results": results,
            "machine": started,
        }


def show(result: dict[str, Any], console: Console) -> None:
    """Print the figures as a table."""
    table = Table(
        title=f"Bins, {result['rows_per_epoch']:,} rows an epoch", caption=f"ratio: to 2^{REFERENCE} bins"
    )
    for name in ("bins", "rows/s", "ratio", "median epoch ms", "rounds"):
        table.add_column(name, justify="right")
    for line in result["results"]:
        table.add_row(
            f"2^{line['power']}",
            f"{line['rows_per_second']:,}",
            f"{line['ratio']:.2f}×",
            f"{line['epoch_ms_p50']:,.0f}",
            " ".join(f"{value:,.0f}" for value in line["rounds"]),
        )
    console.print(table)
