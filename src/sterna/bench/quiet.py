"""How long do records wait while nothing moves, with few bins and with many?

Method. Two queries count by key over the same keys: Sterna's, and Spark's ``groupBy().count()`` on RocksDB,
whose state can't move. Both are filled by records, and the most that each keeps up with is measured. Then
records come to both in an open loop at one rate, half of what the slower one keeps up with. In a round each
of them runs once from its checkpoint: Sterna's with one number of bins after the other, which are split and
joined where they are, so that the state is the same for all; Spark's for as long as one of these. The order
is reversed every other round.

What is told are the latencies of all records of all rounds: percentiles, the share that waited longer than so
many milliseconds (``beyond``), and the 99th percentile of each round, which shows how much of a difference is
the machine's noise. Both write Spark's own logs the quick way, which spares Spark about 45 ms an epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from sterna.bench import ceiling, harness, machine
from sterna.bench.latency import EDGES, Histogram
from sterna.bench.leg import with_bins
from sterna.bench.openloop import Records
from sterna.bench.phases import Phase
from sterna.bench.place import Pressure
from sterna.bench.rig import Say
from sterna.bench.source import Keys
from sterna.bench.subjects import SparkSubject, SternaSubject, Subject
from sterna.session import interruptible, quick_local_logs, workplace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REFERENCE = 12
SHARE = 0.5
PERCENTILES = {"p50_ms": 50.0, "p90_ms": 90.0, "p99_ms": 99.0, "p9999_ms": 99.99, "max_ms": 100.0}


@dataclass(frozen=True)
class Sweep:
    """What is measured, and for how long.

    Attributes:
        powers: numbers of bins, as powers of two.
        keys: how many.
        seconds: of each number of bins in each round.
        rest: seconds after bins were split or joined that do not count.
        window: seconds without a change of latency after a start.
        pressure: how the maximum rate is measured.
    """

    powers: tuple[int, ...]
    keys: int
    seconds: float
    rest: float
    window: float
    pressure: Pressure


FULL = Sweep((4, 6, 8, 10, 12, 14, 16, 18, 20), 10_000_000, 15.0, 3.0, 5.0, Pressure())
QUICK = Sweep((4, 12, 20), 100_000, 4.0, 1.0, 1.0, Pressure(4.0, 4.0))
SMOKE = Sweep((3, 12), 1_000, 0.6, 0.1, 0.2, Pressure(0.2, 1.0, 0.2))


@dataclass
class Query:
    """One of the two queries, with what it makes itself known by, and how far its input has come."""

    folder: Path
    subject: Callable[[], Subject]
    powers: Sequence[int | None]
    """The numbers of bins, as powers of two; none where there are no bins."""
    first: int = 0
    maximum: float = 0.0
    rounds: dict[int | None, list[Histogram]] = field(default_factory=dict)


def run(
    say: Say,
    *,
    sweep: Sweep = FULL,
    rounds: int = 3,
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
        workers: Sterna's workers and Spark's partitions; as many as there are cores unless given.
        master: Spark's master, if no session runs yet.
        memory: the heap of a session started here.
        folder: where the temporary folder goes; the system's choice unless given.
    """
    with workplace(master, memory, folder, harness.settings) as (spark, root):
        many = workers or spark.sparkContext.defaultParallelism
        return interruptible(lambda: _run(spark, root, sweep, rounds, many, say), spark.stop)


def _run(
    spark: SparkSession, root: Path, sweep: Sweep, rounds: int, workers: int, say: Say
) -> dict[str, Any]:
    started = machine.facts(spark)
    records = Records(Keys(sweep.keys), 0)
    queries = _queries(root, sweep, workers)
    with quick_local_logs(spark):
        for query in queries:
            _prepare(spark, query, records, sweep.pressure, say)
        rate = max(1.0, SHARE * min(query.maximum for query in queries))
        say(f"{rate:,.0f} records a second")
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            for query in queries if number % 2 == 0 else reversed(queries):
                _round(spark, query, records, sweep, rate, str(root), backwards=bool(number % 2), say=say)
    return {
        "benchmark": "quiet",
        "keys": sweep.keys,
        "workers": workers,
        "rounds": rounds,
        "rate": round(rate),
        "seconds": sweep.seconds,
        "maximum": {query.folder.name: round(query.maximum) for query in queries},
        "results": [
            told(query.folder.name, power, query.rounds[power]) for query in queries for power in query.powers
        ],
        "machine": started,
    }


def _queries(root: Path, sweep: Sweep, workers: int) -> list[Query]:
    sterna, spark = root / "sterna", root / "spark"
    for path in (sterna, spark):
        path.mkdir()
    return [
        Query(
            sterna,
            lambda: SternaSubject(str(sterna / "checkpoint"), workers, 2**REFERENCE, share_host_state=False),
            sweep.powers,
        ),
        Query(spark, lambda: SparkSubject(str(spark / "checkpoint"), workers), [None]),
    ]


def _prepare(spark: SparkSession, query: Query, records: Records, pressure: Pressure, say: Say) -> None:
    """Fills its state, and measures what it keeps up with."""
    folder = str(query.folder)
    query.first = ceiling.fill(spark, query.subject(), folder, records, say=say)
    found = ceiling.maximum_rate(
        spark,
        query.subject(),
        folder,
        records,
        first=query.first,
        epoch_seconds=pressure.epoch,
        warm=pressure.warm,
        seconds=pressure.seconds,
    )
    query.first, query.maximum = found.next_record, found.rate
    say(f"{query.folder.name}: at most {found.rate:,.0f} records a second")


def _round(
    spark: SparkSession,
    query: Query,
    records: Records,
    sweep: Sweep,
    rate: float,
    root: str,
    *,
    backwards: bool,
    say: Say,
) -> None:
    """Runs it once."""
    order = query.powers[::-1] if backwards else query.powers
    result = harness.run(
        spark,
        query.subject(),
        str(query.folder),
        [phase for power in order for phase in _phases(power, sweep)],
        rate=rate,
        records=records,
        first=query.first,
        window=sweep.window,
        settings_folder=root,
    )
    query.first = result["next_record"]
    measured = {phase["name"]: phase for phase in result["phases"]}
    for power in order:
        found = Histogram.from_json(measured[_name(power)]["histogram"])
        query.rounds.setdefault(power, []).append(found)
        shown = ", ".join(f"{name[:-3]} {ms:,.0f} ms" for name, ms in _percentiles(found).items())
        say(f"  {query.folder.name}, {_name(power)}: {shown}")


def _phases(power: int | None, sweep: Sweep) -> list[Phase]:
    """What is measured, and what leads up to it."""
    bins = [] if power is None else [with_bins(2**power)]
    return [*bins, Phase("rest", sweep.rest), Phase(_name(power), sweep.seconds)]


def _name(power: int | None) -> str:
    return "no bins" if power is None else f"2^{power} bins"


def told(system: str, power: int | None, rounds: list[Histogram]) -> dict[str, Any]:
    """The figures of a system, with so many bins (a power of two) if there are bins, over all rounds."""
    whole = Histogram()
    for one in rounds:
        whole.merge(one)
    return {
        "system": system,
        **({} if power is None else {"bins": 2**power, "power": power}),
        "records": round(whole.total),
        **_percentiles(whole),
        "rounds": [round(one.percentile(99) * 1e3, 1) for one in rounds],
        "beyond": beyond(whole),
    }


def _percentiles(histogram: Histogram) -> dict[str, float]:
    return {name: round(histogram.percentile(value) * 1e3, 1) for name, value in PERCENTILES.items()}


def beyond(histogram: Histogram) -> list[tuple[float, float]]:
    """Milliseconds, and the share of records that waited longer, from all of them to none.

    Example:
        >>> histogram = Histogram()
        >>> histogram.record(0.1, 3)
        >>> histogram.record(0.2, 1)
        >>> [share for _, share in beyond(histogram)]
        [1.0, 0.25, 0.0]
    """
    used = np.flatnonzero(histogram.weights)
    if not len(used):
        return []
    left = 1 - np.cumsum(histogram.weights[used]) / histogram.total
    ends = np.minimum(EDGES[used + 1], histogram.max)
    points = [(round(float(EDGES[used[0]]) * 1e3, 2), 1.0)]
    points += [
        (round(float(end) * 1e3, 2), round(float(share), 8)) for end, share in zip(ends, left, strict=True)
    ]
    return [*points[:-1], (points[-1][0], 0.0)]


def show(result: dict[str, Any], console: Console) -> None:
    """Print the figures as a table."""
    table = Table(
        title=f"Latency while nothing moves, {result['rate']:,} records a second, {result['keys']:,} keys",
        caption="milliseconds; rounds: the 99th percentile of each",
    )
    for name in ("", "50 %", "90 %", "99 %", "99.99 %", "longest", "rounds"):
        table.add_column(name, justify="right")
    for line in result["results"]:
        table.add_row(
            f"2^{line['power']} bins" if "power" in line else line["system"],
            *(f"{line[name]:,.0f}" for name in PERCENTILES),
            " ".join(f"{value:,.0f}" for value in line["rounds"]),
        )
    console.print(table)
