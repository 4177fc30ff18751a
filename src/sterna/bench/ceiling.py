"""How much input a system keeps up with: epochs back to back on a backlog.

Method. The backlog holds files for some epochs ahead, and for a second or more, so that short epochs don't
eat it up while this process waits for a core. An epoch takes as many files as there are cores, so every
partition gets one. How many records the next epochs get follows from how fast the last one was, so that an
epoch takes about ``epoch_seconds``: larger epochs carry more records a second, at the price of latency. The
rate is all records over all the time from the end of one epoch to the end of the last, after a warm-up. If
the backlog runs dry, because this process got no core for long, an epoch takes part of what it was meant to:
the rate is then lower than it could be, never higher.

The same backlog, without a limit of time, fills the state: the first records visit each key once
(``source.Keys``).
"""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import dataclass

from pyspark.sql import SparkSession

from sterna.bench import acknowledge
from sterna.bench.feeder import write_range
from sterna.bench.openloop import Records
from sterna.bench.phases import Run
from sterna.bench.rig import Say
from sterna.bench.subjects import Subject

AHEAD, AHEAD_SECONDS = 3, 1.5
FIRST_ROWS, LEAST_ROWS, MOST_ROWS = 10_000, 1_000, 16_000_000
LOOK_SECONDS = 0.03


@dataclass(frozen=True)
class Busy:
    """An epoch on a backlog."""

    rows: int
    began: float
    ended: float


@dataclass(frozen=True)
class Ceiling:
    """What a system keeps up with."""

    rate: float
    epochs: tuple[Busy, ...]
    next_record: int

    def to_json(self) -> dict[str, float]:
        """The figures."""
        middle = sorted(epoch.ended - epoch.began for epoch in self.epochs)[len(self.epochs) // 2]
        return {
            "records_per_second": round(self.rate),
            "epochs": len(self.epochs),
            "epoch_ms_p50": round(middle * 1e3, 1),
        }


def fill(
    spark: SparkSession,
    subject: Subject,
    folder: str,
    records: Records,
    *,
    first: int = 0,
    say: Say = lambda _: None,
) -> int:
    """Brings the state to its full size; returns the number of the next record."""
    rows = records.keys.filled_at - first
    if rows <= 0:
        return first
    say(f"filling {subject.name}: {rows:,} records")
    _, end = keep_busy(spark, subject, folder, records, first, rows=rows)
    return end


def maximum_rate(
    spark: SparkSession,
    subject: Subject,
    folder: str,
    records: Records,
    *,
    first: int = 0,
    epoch_seconds: float = 1.0,
    warm: float = 10.0,
    seconds: float = 20.0,
) -> Ceiling:
    """The largest rate that the system keeps up with, with epochs of about ``epoch_seconds``.

    See the module's docstring.
    """
    epochs, end = keep_busy(
        spark, subject, folder, records, first, epoch_seconds=epoch_seconds, seconds=warm + seconds
    )
    counted = [epoch for epoch in epochs if epoch.ended >= epochs[0].ended + warm]
    if len(counted) < 2:
        raise ValueError(f"{len(counted)} epochs ended after the warm-up of {warm} s: measure for longer")
    rows = sum(epoch.rows for epoch in counted[1:])
    return Ceiling(rows / (counted[-1].ended - counted[0].ended), tuple(counted), end)


def keep_busy(
    spark: SparkSession,
    subject: Subject,
    folder: str,
    records: Records,
    first: int,
    *,
    epoch_seconds: float = 1.0,
    seconds: float | None = None,
    rows: int | None = None,
) -> tuple[list[Busy], int]:
    """Runs epochs back to back for so long after the first one, or for so many records.

    Returns them and the next record.
    """
    source = os.path.join(folder, "input")
    files = spark.sparkContext.defaultParallelism
    stream = records.stream(spark, source, files)
    backlog = _Backlog(source, first, files, rows)
    for _ in range(2 * AHEAD):
        backlog.add(FIRST_ROWS)
    try:
        subject.start(stream)
        run, began, wanted = Run(subject), 0.0, FIRST_ROWS
        while not (seconds is not None and began and time.time() > began + seconds) and not backlog.ended:
            report = run.look()
            if report is not None:
                began = began or report.ended
                done = report.epoch - run.reports[0].epoch + 1
                took = report.ended - report.began
                if done > 1:  # the first one loads and compiles
                    rows_done = backlog.epochs[min(done, len(backlog.epochs)) - 1]
                    wanted = min(max(int(rows_done * _factor(took, epoch_seconds)), LEAST_ROWS), MOST_ROWS)
                ahead = max(AHEAD, int(AHEAD_SECONDS / max(took, 1e-3)))
                while len(backlog.epochs) < done + ahead and not backlog.ended:
                    backlog.add(wanted)
            time.sleep(LOOK_SECONDS)
        subject.drain()
    finally:
        subject.stop()
    starts = {report.epoch: report.began for report in acknowledge.reports(subject.query)}
    taken = subject.epochs(lambda files: backlog.ends[files])
    if taken[-1].end != backlog.next:
        raise acknowledge.Missing(f"{backlog.next:,} records were written, {taken[-1].end:,} acknowledged")
    busy = [
        Busy(epoch.end - epoch.first, starts[epoch.id], epoch.at)
        for epoch in taken
        if epoch.end > epoch.first
    ]
    return busy, backlog.next


def _factor(took: float, wanted: float) -> float:
    """By how much larger the next epochs should be.

    Much of a short epoch does not depend on its rows: one that is well below the wanted length is doubled,
    whatever its rows a second are.
    """
    if took < 0.75 * wanted:
        return 2.0
    return min(max(wanted / took, 0.5), 2.0)


class _Backlog:
    """Files of records for epochs to come.

    ``epochs`` tells how many records each of them should get, ``ends`` where each file ends.
    """

    def __init__(self, folder: str, first: int, files: int, limit: int | None) -> None:
        self.epochs: list[int] = []
        self.ends = [first]
        self.next = first
        self._folder, self._files = folder, files
        self._last = None if limit is None else first + limit
        self._began, self._written = time.time(), 0

    @property
    def ended(self) -> bool:
        """Whether as many records as were asked for are written."""
        return self._last is not None and self.next >= self._last

    def add(self, rows: int) -> None:
        """Writes one more epoch; a little less than asked for at the end, nothing after it."""
        rows = rows if self._last is None else min(rows, self._last - self.next)
        if rows <= 0:
            return
        cuts = [self.next + rows * i // self._files for i in range(self._files + 1)]
        for start, end in itertools.pairwise(cuts):
            if start == end:  # the last epoch may have fewer records than files
                continue
            # In one millisecond Spark would not know their order.
            write_range(self._folder, start, end, self._began + 0.002 * self._written)
            self._written += 1
            self.ends.append(end)
        self.next += rows
        self.epochs.append(rows)
