"""A word count whose state moves while it runs.

A stream of lines is cut into words, and four workers count them. In the middle of it, the worker with the most work gives
half of its bins to the one with the least, and the count goes on. At the end every word's count is compared
with what the input implies, computed without Spark and without Sterna. Returns whether they are equal; takes less
than a minute, and leaves nothing behind.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import sterna
from sterna.configuration import Configuration
from sterna.hashing import hash_keys
from sterna.session import workplace

TEXT = """\
The arctic tern flies from the ice of the north to the ice of the south and back in every year of its life
No other animal sees as much of the light of the sun for it has two summers and no winter
It weighs as much as a small apple and in thirty years it flies as far as to the moon and back three times
It does not stop to eat but dips from the wing takes a small fish from the top of the sea and flies on
A stream does not stop either so what it has learned must learn to move on the wing
When a worker has too much to carry it gives some of its bins to another and the count goes on
The words that stay notice nothing and the words that move take their counts with them
No word is lost on the way and none is counted twice
"""
LINES = TEXT.lower().splitlines()
WORKERS, BINS = 4, 64
LINES_AN_EPOCH = 1_000
EPOCHS_BEFORE, EPOCHS_AFTER = 8, 8
LIMIT = LINES_AN_EPOCH * (EPOCHS_BEFORE + EPOCHS_AFTER)
PATIENCE_SECONDS = 50.0


def words(spark: SparkSession) -> DataFrame:
    """The stream: the lines over and over, a thousand an epoch, until the limit; one row a word."""
    counts = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", LINES_AN_EPOCH).load()
    lines = F.element_at(F.array(*map(F.lit, LINES)), (F.col("value") % len(LINES) + 1).cast("int"))
    return counts.where(F.col("value") < LIMIT).select(F.explode(F.split(lines, " ")).alias("word"))


def expected() -> dict[str, int]:
    """What the input implies, counted the plain way."""
    total: Counter[str] = Counter()
    for number, line in enumerate(LINES):
        times = len(range(number, LIMIT, len(LINES)))
        total.update({word: n * times for word, n in Counter(line.split()).items()})
    return dict(total)


@dataclass(frozen=True)
class Seats:
    """Which bin each word is in, and which worker owns it."""

    configuration: Configuration
    bins: dict[str, int]

    @classmethod
    def of(cls, configuration: Configuration, known: list[str]) -> Seats:
        """The seats of these words."""
        hashes = hash_keys([pa.array(known, pa.string())])
        return cls(
            configuration,
            dict(zip(known, (hashes >> np.uint64(64 - configuration.bits)).tolist(), strict=True)),
        )

    def worker(self, word: str) -> int:
        """The worker that counts a word."""
        return int(self.configuration.owners[self.bins[word]])

    def load(self, counts: dict[str, int]) -> dict[int, int]:
        """How many of the counted words each worker had."""
        loads = dict.fromkeys(range(self.configuration.workers), 0)
        for word, n in counts.items():
            loads[self.worker(word)] += n
        return loads


def run(console: Console) -> bool:
    """Run the demo and print what happens; whether every count is right."""
    console.print(f"Counting the words of a stream with {WORKERS} workers and {BINS} bins. Starting Spark …")
    with workplace() as (spark, root):
        sink = sterna.sinks.memory()
        query = (
            sterna.read(words(spark))
            .key_by("word")
            .aggregate(n=sterna.count())
            .start(
                sink=sink,
                checkpoint=str(root / "checkpoint"),
                bins=BINS,
                workers=WORKERS,
                trigger={"processingTime": "300 milliseconds"},
                # All workers are on this machine and could just hand files over; let the state really travel.
                share_host_state=False,
            )
        )
        try:
            return _watch(console, query, sink)
        finally:
            query.stop()


def _watch(console: Console, query: sterna.Query, sink: Any) -> bool:
    truth = expected()
    query.wait_for_epoch(EPOCHS_BEFORE - 1, PATIENCE_SECONDS)
    before = Seats.of(query.configuration(), sorted(truth))
    target, giver, taker = _plan(before, _counted(sink))
    console.print(_table(f"Before the move, epoch {query.status()['epoch']}", before, _counted(sink)))
    console.print(f"Moving {len(target)} bins from worker {giver} to worker {taker}, while the query runs.\n")
    query.migrate(target)
    moved = _wait_for_move(query)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while sum(_counted(sink).values()) < sum(truth.values()) and time.monotonic() < deadline:
        query.wait_for_epoch(query.status()["epoch"] + 1, PATIENCE_SECONDS)
    counts, after = _counted(sink), Seats.of(query.configuration(), sorted(truth))
    console.print(_table(f"After the move, epoch {query.status()['epoch']}", after, counts))
    took_along = sorted(word for word in truth if before.worker(word) != after.worker(word))
    console.print(
        f"Epoch {moved['epoch']} moved {moved['bins']} bins, about {moved['bytes']:,} bytes of state, "
        f"with {len(took_along)} words: {', '.join(took_along[:12])}{', …' if len(took_along) > 12 else ''}.\n"
    )
    console.print(_latencies(query, moved["epoch"]))
    wrong = sorted(word for word in truth.keys() | counts.keys() if truth.get(word) != counts.get(word))
    if wrong:
        console.print(f"[red]WRONG[/red]: {len(wrong)} words, first {wrong[0]!r}: ", end="")
        console.print(f"{counts.get(wrong[0])} counted, {truth.get(wrong[0])} in the input")
        return False
    console.print(
        f"[green]Right[/green]: {sum(counts.values()):,} words counted, {len(counts)} different ones, "
        f"each as often as it is in the input."
    )
    return True


def _plan(seats: Seats, counts: dict[str, int]) -> tuple[dict[int, int], int, int]:
    """Every other busy bin of the busiest worker, for the one with the least to do."""
    loads = seats.load(counts)
    giver, taker = max(loads, key=lambda w: loads[w]), min(loads, key=lambda w: loads[w])
    busy = sorted({bin_ for word, bin_ in seats.bins.items() if seats.worker(word) == giver})
    return dict.fromkeys(busy[::2], taker), giver, taker


def _counted(sink: Any) -> dict[str, int]:
    """The newest count of each word: later epochs come later in the sink."""
    return {row["word"]: row["n"] for row in sink.rows()}


def _wait_for_move(query: sterna.Query) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        for event in query.history():
            if event["kind"] == "moved":
                return event
        query.wait_for_epoch(query.status()["epoch"] + 1, PATIENCE_SECONDS)
    raise sterna.errors.SternaError(f"the bins did not move within {PATIENCE_SECONDS:.0f} seconds")


def _table(title: str, seats: Seats, counts: dict[str, int]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("worker")
    for name in ("bins", "words", "counted"):
        table.add_column(name, justify="right")
    table.add_column("its most frequent words", no_wrap=True)
    loads, owned = seats.load(counts), seats.configuration.owned()
    for worker in range(seats.configuration.workers):
        mine = sorted((w for w in counts if seats.worker(w) == worker), key=lambda w: (-counts[w], w))
        table.add_row(
            str(worker), str(owned[worker]), str(len(mine)), f"{loads[worker]:,}", " ".join(mine[:6])
        )
    return table


def _latencies(query: sterna.Query, moved_at: int) -> Table:
    """The epochs around the move, as Spark reports them."""
    table = Table(title="Epochs around the move", title_justify="left")
    table.add_column("epoch", justify="right")
    table.add_column("milliseconds", justify="right")
    table.add_column("", no_wrap=True)
    table.add_column("", no_wrap=True)
    took = {p.batchId: p.durationMs.get("triggerExecution", 0) for p in query.streaming_query.recentProgress}
    near = [epoch for epoch in sorted(took) if abs(epoch - moved_at) <= 4]
    longest = max(took[epoch] for epoch in near)
    for epoch in near:
        bar = "▇" * max(1, round(30 * took[epoch] / longest))
        table.add_row(str(epoch), str(took[epoch]), bar, "the move" if epoch == moved_at else "")
    return table
