"""Sterna's count by key against Spark's, at several sizes of epoch.

Method. Both count the rows of each key of the same source, in the same JVM, on the same cores, to a sink that
drops everything: Sterna's ``aggregate(n=count())``, and Spark's ``groupBy("key").count()`` in update mode
with RocksDB, changelog checkpoints and without counting total rows, as Spark's guide recommends. First each
state is filled to its full size, every key once. Then, for each size of epoch, the two take turns: a few
epochs that do not count after each restart, then those that do; the one that begins alternates from round to
round. Each goes on from its own checkpoint, so its state stays full throughout.

Honesty. Only one query runs at a time. Durations are Spark's own (see ``rig``), all measured epochs count, no
outliers are removed. Both get as many partitions as there are cores, unless told otherwise. The round medians
are reported beside the figures. On a local disk, Sterna has Spark write its own logs in a way that Spark's
guide does not mention (``session.quick_local_logs``); on request Spark is measured with that as well.
``transformWithStateInPandas``, on request, would take hours to fill and minutes for a large epoch: it starts
with an empty state and gets smaller epochs, both in its favour, and its own size of epoch is reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from sterna.bench import machine
from sterna.bench.rig import Lane, Plan, Say, fill, measure
from sterna.bench.source import Keys
from sterna.bench.summary import figures, median
from sterna.bench.systems import SparkCount, Sterna, System, TransformWithState
from sterna.session import workplace

MANY, FEW = 10_000_000, 1_000
FILL_ROWS = 1_000_000
OTHERS = {"spark_quick_logs": "Spark, quick logs", "transform_with_state": "transformWithState"}
MOST_KEYS_OF_TRANSFORM = 10_000


@dataclass(frozen=True)
class Case:
    """One line of the result: so many rows an epoch over so many keys, measured so long."""

    rows: int
    keys: int
    plan: Plan


FULL = (
    Case(1_000, MANY, Plan(warmup=5, epochs=25, seconds=10)),
    Case(200_000, MANY, Plan(warmup=3, epochs=8, seconds=15)),
    Case(1_000_000, MANY, Plan(warmup=2, epochs=4, seconds=15)),
    Case(1_000_000, FEW, Plan(warmup=3, epochs=8, seconds=10)),
)
QUICK = (
    Case(1_000, 200_000, Plan(warmup=2, epochs=5)),
    Case(50_000, 200_000, Plan(warmup=2, epochs=3)),
    Case(50_000, FEW, Plan(warmup=2, epochs=3)),
)
SMOKE = (Case(1_000, 2_000, Plan(warmup=0, epochs=1)),)


def run(
    say: Say,
    *,
    cases: tuple[Case, ...] = FULL,
    rounds: int = 3,
    workers: int | None = None,
    partitions: int | None = None,
    quick_logs: bool = False,
    transform_with_state: bool = False,
    master: str = "local[2]",
    memory: str = "4g",
    folder: str | None = None,
) -> dict[str, Any]:
    """Measure and return the figures; see the module's docstring.

    Args:
        say: takes a line about what is going on.
        cases: the sizes to measure.
        rounds: how often the systems take turns, for each case.
        workers: Sterna's workers; as many as there are cores unless given.
        partitions: Spark's state partitions; as many as there are cores unless given.
        quick_logs: measure Spark also with its own logs written as Sterna has them written.
        transform_with_state: measure ``transformWithStateInPandas`` too.
        master: Spark's master, if no session runs yet.
        memory: the heap of a session started here.
        folder: where the temporary folder goes; the system's choice unless given.
    """
    with workplace(master, memory, folder) as (spark, root):
        cores = spark.sparkContext.defaultParallelism
        systems: list[System] = [Sterna(workers or cores), SparkCount(partitions or cores)]
        if quick_logs:
            systems.append(SparkCount(partitions or cores, quick_logs=True))
        if transform_with_state:
            systems.append(TransformWithState(partitions or cores))
        started = machine.facts(spark)
        results = []
        for keys in dict.fromkeys(case.keys for case in cases):
            lanes = [Lane(system, str(root / f"{system.name}-{keys}"), Keys(keys)) for system in systems]
            for lane in lanes:
                if isinstance(lane.system, TransformWithState):
                    continue
                fill(spark, lane, min(FILL_ROWS, keys), say)
            results += [_case(spark, case, lanes, rounds, say) for case in cases if case.keys == keys]
        return {
            "benchmark": "throughput",
            "rounds": rounds,
            "sterna_workers": workers or cores,
            "spark_partitions": partitions or cores,
            "results": results,
            "machine": started,
        }


def _case(spark: SparkSession, case: Case, lanes: list[Lane], rounds: int, say: Say) -> dict[str, Any]:
    for lane in lanes:
        lane.rounds.clear()
    for number in range(rounds):
        for lane in lanes if number % 2 == 0 else reversed(lanes):
            say(f"round {number + 1} of {rounds}: {lane.system.name}, {case.rows:,} rows, {case.keys:,} keys")
            measure(spark, lane, _rows(case, lane), case.plan, say)
    ours, theirs = lanes[0], lanes[1]
    result = {
        "rows_per_epoch": case.rows,
        "keys": case.keys,
        **figures(ours, case.rows, "sterna_"),
        **figures(theirs, case.rows, "spark_"),
    }
    result["ratio"] = round(result["sterna_rows_per_second"] / result["spark_rows_per_second"], 3)
    result["epoch_ratio"] = round(median(ours) / median(theirs), 3)
    for lane in lanes[2:]:
        rows = _rows(case, lane)
        result |= {f"{lane.system.name}_rows_per_epoch": rows, **figures(lane, rows, f"{lane.system.name}_")}
    return result


def _rows(case: Case, lane: Lane) -> int:
    """Rows an epoch: the case's, but no more keys than ``transformWithStateInPandas`` manages in seconds."""
    if isinstance(lane.system, TransformWithState) and case.keys > MOST_KEYS_OF_TRANSFORM:
        return min(case.rows, MOST_KEYS_OF_TRANSFORM)
    return case.rows


def show(result: dict[str, Any], console: Console) -> None:
    """Print the figures as a table."""
    others = {
        name: title
        for name, title in OTHERS.items()
        if any(f"{name}_epochs" in line for line in result["results"])
    }
    table = Table(title="Counting by key: Sterna against Spark", caption="ms: median epoch")
    for name in ("rows/epoch", "keys", "Sterna rows/s", "Spark rows/s", "ratio", "Sterna ms", "Spark ms"):
        table.add_column(name, justify="right")
    for title in others.values():
        table.add_column(f"{title} rows/s", justify="right")
    for line in result["results"]:
        cells = [
            f"{line['rows_per_epoch']:,}",
            f"{line['keys']:,}",
            f"{line['sterna_rows_per_second']:,}",
            f"{line['spark_rows_per_second']:,}",
            f"{line['ratio']:.2f}×",
            f"{line['sterna_epoch_ms_p50']:,.0f}",
            f"{line['spark_epoch_ms_p50']:,.0f}",
        ]
        for name in others:
            rate, rows = (line[f"{name}_{what}"] for what in ("rows_per_second", "rows_per_epoch"))
            cells.append(f"{rate:,} (epochs of {rows:,})")
        table.add_row(*cells)
    console.print(table)
