"""Does an epoch get slower, or a Python worker larger, as the state grows?

Method. One query's state grows step by step from 1M keys to 64M. At each size it runs epochs of 200k rows,
uniform over all of its keys. A second query, the control, keeps the smallest state; at each size the two take
turns, and ``epoch_ratio`` is the one's median epoch over the other's from the same minutes, so that a machine
that became slower or faster in between does not count as the state's doing. ``ratio_to_smallest`` compares
with the first size as measured then. Between sizes, epochs as large as the measured ones visit each new key
once.

Memory is what Spark's Python workers hold that no file backs (``Pss_Anon``, summed over the daemon and its
workers, sampled twice a second while epochs are measured): the highest sample and the median. Memory-mapped
runs are in the page cache, which the system takes back when it needs to: they do not count. Each size is
measured in a new session, with new Python processes, after as many epochs as every other: whether a process
grows with its age is another question, and the soak test's.

Honesty. All measured epochs count. The size of the checkpoint on disk is reported too.
"""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from sterna.bench import machine
from sterna.bench.rig import Lane, Plan, Say, fill, measure
from sterna.bench.source import Keys
from sterna.bench.summary import figures, median
from sterna.bench.systems import Sterna
from sterna.session import workplace


@dataclass(frozen=True)
class Growth:
    """The sizes of the state, and how each is measured."""

    sizes: tuple[int, ...]
    rows: int
    fill_rows: int
    plan: Plan


FULL = Growth(
    sizes=tuple(2**n * 1_000_000 for n in range(7)),
    rows=200_000,
    fill_rows=200_000,
    plan=Plan(warmup=10, epochs=15, seconds=10),
)
QUICK = Growth(sizes=(100_000, 400_000), rows=20_000, fill_rows=20_000, plan=Plan(warmup=2, epochs=4))
SMOKE = Growth(sizes=(1_000, 2_000), rows=1_000, fill_rows=1_000, plan=Plan(warmup=0, epochs=1))


def run(
    say: Say,
    *,
    growth: Growth = FULL,
    rounds: int = 2,
    workers: int | None = None,
    bins: int = 4096,
    master: str = "local[2]",
    memory: str = "4g",
    folder: str | None = None,
) -> dict[str, Any]:
    """Measure and return the figures; see the module's docstring.

    Args:
        say: takes a line about what is going on.
        growth: the sizes of the state.
        rounds: how often the query and its control take turns, at each size.
        workers: Sterna's workers; as many as there are cores unless given.
        bins: Sterna's bins.
        master: Spark's master, if no session runs yet.
        memory: the heap of a session started here.
        folder: where the temporary folder goes; the system's choice unless given.
    """
    with tempfile.TemporaryDirectory(prefix="sterna-", dir=folder) as root:
        with workplace(master, memory, root) as (spark, _):
            workers = workers or spark.sparkContext.defaultParallelism
            smallest = Keys(growth.sizes[0])
            grown = Lane(Sterna(workers, bins), f"{root}/grown", smallest)
            control = Lane(Sterna(workers, bins, name="control"), f"{root}/control", smallest)
            started = machine.facts(spark)
            fill(spark, control, growth.fill_rows, say)
        results = []
        for size in growth.sizes:
            if size != grown.keys.count:
                grown.keys = grown.keys.grown(size, grown.next_position)
            with workplace(master, memory, root) as (spark, _):
                fill(spark, grown, growth.fill_rows, say)
            with workplace(master, memory, root) as (spark, _):
                results.append(_size(spark, growth, grown, control, rounds, say))
        _compare(results)
        return {
            "benchmark": "state",
            "rows_per_epoch": growth.rows,
            "rounds": rounds,
            "workers": workers,
            "bins": bins,
            "results": results,
            "epoch_ratio": results[-1]["epoch_ratio"],
            "memory_ratio": results[-1]["memory_ratio"],
            "machine": started,
        }


def _size(
    spark: SparkSession, growth: Growth, grown: Lane, control: Lane, rounds: int, say: Say
) -> dict[str, Any]:
    for lane in (grown, control):
        lane.rounds.clear()
        lane.memory.clear()
    for number in range(rounds):
        for lane in (grown, control) if number % 2 == 0 else (control, grown):
            say(f"round {number + 1} of {rounds}: {lane.keys.count:,} keys")
            measure(spark, lane, growth.rows, growth.plan, say, memory=lane is grown)
    return {
        "rows_per_epoch": growth.rows,
        "keys": grown.keys.count,
        **figures(grown, growth.rows),
        "control_epoch_ms_p50": round(median(control), 1),
        "epoch_ratio": round(median(grown) / median(control), 3),
        "python_anonymous_mb_max": _megabytes(max(grown.memory, default=None)),
        "python_anonymous_mb_p50": _megabytes(statistics.median(grown.memory) if grown.memory else None),
        "checkpoint_mb": _megabytes(_bytes_below(Path(grown.checkpoint))),
    }


def _compare(results: list[dict[str, Any]]) -> None:
    first = results[0]
    for line in results:
        line["ratio_to_smallest"] = round(line["epoch_ms_p50"] / first["epoch_ms_p50"], 3)
        base, here = (item["python_anonymous_mb_max"] for item in (first, line))
        line["memory_ratio"] = round(here / base, 3) if base and here else None


def _bytes_below(folder: Path) -> int:
    """Bytes on disk under a folder; a file with several names counts once."""
    sizes = {}
    for path in folder.rglob("*"):
        try:
            status = path.stat()
        except FileNotFoundError:  # collected as garbage while we looked
            continue
        sizes[status.st_ino] = status.st_blocks * 512
    return sum(sizes.values())


def _megabytes(value: float | None) -> float | None:
    return None if value is None else round(value / 1e6, 1)


def show(result: dict[str, Any], console: Console) -> None:
    """Print the figures as a table."""
    table = Table(
        title=f"Growing state, {result['rows_per_epoch']:,} rows an epoch",
        caption="ms: median epoch; control: the smallest state, measured at the same time",
    )
    for name in ("keys", "rows/s", "ms", "control ms", "ratio", "Python's memory MB", "checkpoint MB"):
        table.add_column(name, justify="right")
    for line in result["results"]:
        used = line["python_anonymous_mb_max"]
        table.add_row(
            f"{line['keys']:,}",
            f"{line['rows_per_second']:,}",
            f"{line['epoch_ms_p50']:,.0f}",
            f"{line['control_epoch_ms_p50']:,.0f}",
            f"{line['epoch_ratio']:.2f}×",
            "unknown" if used is None else f"{used:,.0f}",
            f"{line['checkpoint_mb']:,.0f}",
        )
    console.print(table)
