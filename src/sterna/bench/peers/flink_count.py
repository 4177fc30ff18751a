"""The count by key as a Flink SQL job, and what can be seen of it from outside.

Flink counts the records of each key and keeps the greatest payload where there is one, as the others do, with mini-batches and two-phase aggregation as its guide to tuning recommends. It reads the files
that the others read; a line of them is a range of ``CHUNK`` records, which two array constructors make records of: native code, so that the source is not the limit.

What it puts out for one key in ``SAMPLE`` is printed, the rest is dropped. As every record of a run has another key (``source.Turns``), each sampled record shows as one line. A record's latency runs from the moment at which it was due to the moment at which
its line appeared: earlier than a sink that puts out everything exactly once would show it, because that waits for a checkpoint.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sterna.bench.feeder import Schedule
from sterna.bench.latency import Histogram, Timeline
from sterna.bench.peers.lap import AFTER, BEFORE
from sterna.bench.source import Turns

if TYPE_CHECKING:
    from typing_extensions import Self

CHUNK, PART = 1_024, 32
SAMPLE = 256
ROW = re.compile(rb"\+[IU]\[(\d+), (\d+), (\d+)\]")
LOOK_SECONDS = 0.005


@dataclass(frozen=True)
class Tuning:
    """What is set for one purpose.

    Attributes:
        slots: of the TaskManager; they share its memory, so no more than are used.
        checkpoint: how often there is one.
        look: how often the source looks for new files; each time it lists all there are.
        wait: how long a mini-batch may be waited for.
        batch: how many records it has at most.
    """

    slots: int
    checkpoint: str
    look: str
    wait: str
    batch: int

    @property
    def options(self) -> dict[str, str]:
        """Of the job."""
        return {
            "pipeline.name": "count",
            "pipeline.object-reuse": "true",
            "table.exec.mini-batch.enabled": "true",
            "table.exec.mini-batch.allow-latency": self.wait,
            "table.exec.mini-batch.size": str(self.batch),
            "table.optimizer.agg-phase-strategy": "TWO_PHASE",
        }


RACE = Tuning(BEFORE, "30 s", "1 s", "1 s", 500_000)
"""For the most records a second: as Sterna, whose epochs are of about a second there."""
LAP = Tuning(AFTER, "5 s", "50 ms", "200 ms", 50_000)
"""For latency, and a rescale, which begins anew from the last checkpoint."""


def statements(
    source: Path, keys: Turns, payload: int, look: str = LAP.look, *, counted: bool = True
) -> list[str]:
    """The job in SQL; the last statement starts it. Where nothing is counted, the source and what makes records of it run alone."""
    pieces = [f"SHA512(CONCAT('{i}:', CAST(key AS STRING)))" for i in range(-(-payload // 128))]
    text = f"SUBSTRING(CONCAT({', '.join([*pieces, repr('')])}), 1, {payload})"
    # The arrays are made of columns: from constants Flink would make a stateful join on a single task.
    starts = ", ".join(f"first_record + {at}" for at in range(0, CHUNK, PART))
    records = ", ".join(f"begun + {at}" for at in range(PART))
    typed, taken, greatest = (
        (", payload STRING", ", payload", f", MAX({text}) AS payload") if payload else ("", "", "")
    )
    return [
        f"""CREATE TABLE ranges (first_record BIGINT, end_record BIGINT) WITH (
              'connector' = 'filesystem', 'path' = '{source.as_uri()}', 'format' = 'csv', 'source.monitor-interval' = '{look}')""",
        "CREATE TABLE seen (key BIGINT, n BIGINT, newest BIGINT) WITH ('connector' = 'print')",
        f"CREATE TABLE dropped (key BIGINT, n BIGINT{typed}) WITH ('connector' = 'blackhole')",
        f"""CREATE TEMPORARY VIEW records AS
              SELECT record, MOD(record * {keys.multiplier}, {keys.count}) AS key
              FROM ranges CROSS JOIN UNNEST(ARRAY[{starts}]) AS x (begun) CROSS JOIN UNNEST(ARRAY[{records}]) AS y (record)""",  # noqa: S608 - our own words and numbers
        f"""CREATE TEMPORARY VIEW counts AS
              SELECT key, COUNT(*) AS n, MAX(record) AS newest{greatest} FROM records GROUP BY key""",  # noqa: S608 - as above
        f"""INSERT INTO seen SELECT key, CAST(1 AS BIGINT), record FROM records WHERE MOD(key, {SAMPLE}) = 0"""  # noqa: S608 - as above
        if not counted
        else f"""EXECUTE STATEMENT SET BEGIN
              INSERT INTO seen SELECT key, n, newest FROM counts WHERE MOD(key, {SAMPLE}) = 0;
              INSERT INTO dropped SELECT key, n{taken} FROM counts;
            END""",  # noqa: S608 - as above
    ]


@dataclass(frozen=True)
class Seen:
    """A line: when it appeared, the key, its count, and the newest record in it."""

    at: float
    key: int
    n: int
    newest: int


class Watcher:
    """Reads what a job prints as it appears; a context.

    Attributes:
        seen: all lines so far.
        records: how many records the sampled keys have counted so far, by their last lines.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.seen: list[Seen] = []
        self.records = 0
        self._counts: dict[int, int] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="flink-output", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        for at, line in self._lines():
            match = ROW.search(line)
            if match:
                self._note(Seen(at, *map(int, match.groups())))

    def _note(self, one: Seen) -> None:
        self.seen.append(one)
        # A job that restarted tells older counts once more.
        before = self._counts.get(one.key, 0)
        if one.n > before:
            self._counts[one.key] = one.n
            self.records += one.n - before

    def _lines(self) -> Iterator[tuple[float, bytes]]:
        rest = b""
        with self._path.open("rb") as file:
            while not self._stopped.is_set():
                block = file.read(1 << 20)
                now = time.time()
                if not block:
                    time.sleep(LOOK_SECONDS)
                    continue
                *lines, rest = (rest + block).split(b"\n")
                for line in lines:
                    yield now, line

    def wrong(self, keys: Turns, end: int) -> int:
        """In how many sampled keys the greatest count is not the number of records below ``end`` with that key."""
        whole, rest = divmod(end, keys.count)
        # A record is a multiple of the sample where its key is: the multiplier is odd, and both are powers of two.
        more = {keys.key(record) for record in range(0, rest, SAMPLE)}
        return sum(self._counts.get(key, 0) != whole + (key in more) for key in range(0, keys.count, SAMPLE))


def first_lines(seen: list[Seen], since: int) -> list[Seen]:
    """The first line of each record from a number on: a job that restarts may tell it again."""
    found: dict[int, Seen] = {}
    for one in seen:
        if one.newest >= since:
            found.setdefault(one.newest, one)
    return list(found.values())


def latencies(seen: list[Seen], schedule: Schedule, start: float, end: float) -> Histogram:
    """Of the sampled records that were due in a time."""
    histogram = Histogram()
    for one in seen:
        due = schedule.due(one.newest)
        if start <= due < end:
            histogram.record(one.at - due, SAMPLE)
    return histogram


def timeline(seen: list[Seen], schedule: Schedule) -> Timeline:
    """Of all sampled records, by when they were due."""
    line = Timeline(schedule.begin)
    for one in seen:
        due = schedule.due(one.newest)
        line.record(due, due, SAMPLE, one.at)
    return line
