"""The count by key as Flink SQL jobs, and what can be seen of them from outside.

Flink counts the records of each key and keeps the greatest payload where there is one, as the others do, and
nothing else, with mini-batches and two-phase aggregation as its guide to tuning recommends. It reads the
files that the others read; a line of them is a range of ``CHUNK`` records, which two array constructors make
records of, in native code. Over many keys that is far from being the limit; over few keys it is most of what
Flink does, so what it gives alone is measured too (``reading``).

For the most records a second, all outputs are dropped, and how far the job is, is what its first phase of
aggregation has taken, by Flink's own counters. Flink's ``blackhole`` does not want the row before an update,
so the job does not make it.

For latency, what is put out for one key in ``SAMPLE`` is printed, and the rest dropped. As every key comes in
its turn (``source.Turns``), a key and its count tell which record was counted, and each sampled record shows
as one line. A record's latency runs from the moment at which it was due to the moment at which its line
appeared: earlier than a sink that puts out everything exactly once would show it, because that waits for a
checkpoint.
``print`` wants all rows of a change, so here the aggregation also makes the row before each update; none of
the connectors in the package that show something does without it.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sterna.bench.feeder import Schedule
from sterna.bench.latency import Histogram, Timeline
from sterna.bench.peers.lap import AFTER, BEFORE
from sterna.bench.source import Turns

if TYPE_CHECKING:
    from typing_extensions import Self

CHUNK, PART = 1_024, 32
PROBE = 8
SAMPLE = 256
ROW = re.compile(rb"\+[IU]\[(\d+), (\d+)(?:, \d+)?\]")
LOOK_SECONDS = 0.005
FIRST_PHASE = "LocalGroupAggregate"
SINK = "dropped"


@dataclass(frozen=True)
class Tuning:
    """What is set for one purpose.

    For a try by hand, take a copy with ``dataclasses.replace`` and put it in the place of ``RACE``.

    Attributes:
        slots: of the TaskManager; no more than are used in the end.
        checkpoint: how often there is one.
        look: how often the source looks for new files; each time it lists all there are.
        wait: how long a mini-batch may be waited for.
        batch: how many records it has at most.
        more: settings of the cluster beside those of ``flink.settings``.
        job: options of the job beside those of ``options``.
    """

    slots: int
    checkpoint: str
    look: str
    wait: str
    batch: int
    more: Mapping[str, str] = field(default_factory=dict)
    job: Mapping[str, str] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, str]:
        """Of the job."""
        return {
            "pipeline.name": "count",
            "pipeline.object-reuse": "true",
            # A job takes these from its client, not from the cluster that it runs on.
            "execution.checkpointing.interval": self.checkpoint,
            "execution.checkpointing.incremental": "true",
            "table.exec.mini-batch.enabled": "true",
            "table.exec.mini-batch.allow-latency": self.wait,
            "table.exec.mini-batch.size": str(self.batch),
            "table.optimizer.agg-phase-strategy": "TWO_PHASE",
            **self.job,
        }


RACE = Tuning(BEFORE, "30 s", "1 s", "1 s", 50_000)
"""For the most records a second: as Sterna, whose epochs are of about a second there."""
COMBINING = replace(RACE, batch=10_000_000)
"""The same over keys so few that a mini-batch has each of them several times.

It is then as large as a second makes it: what is kept of it is a row for each key.
"""
FEW_KEYS = 250_000
LAP = Tuning(
    AFTER,
    "10 s",
    "50 ms",
    "200 ms",
    50_000,
    more={"taskmanager.network.memory.buffer-debloat.enabled": "true"},
    job={
        "execution.checkpointing.min-pause": "5 s",
        "state.backend.rocksdb.rescaling.use-delete-files-in-range": "true",
    },
)
"""For latency, and a rescale, which begins anew from the last checkpoint.

Buffers hold what is taken in a second, so that no checkpoint waits behind more; some time always passes
without one; and of a state that is parted, files that hold only what went elsewhere are dropped at once.
Compacting after a rescale (``incremental-restore-async-compact-after-rescale``) made no difference; putting
states together from whole files (``use-ingest-db-restore-mode``) is for a rescale that joins some.
"""


def race(keys: int) -> Tuning:
    """What is set for the most records a second over so many keys."""
    return COMBINING if keys <= FEW_KEYS else RACE


def counting(source: Path, keys: Turns, payload: int, look: str, *, shown: bool) -> list[str]:
    """The job in SQL; the last statement starts it.

    Args:
        source: where its input is.
        keys: which key a record has.
        payload: how long each key's text is; 0 for none.
        look: how often it looks for new files.
        shown: whether what comes out for the sampled keys is printed.
    """
    pieces = [f"SHA512(CONCAT('{i}:', CAST(key AS STRING)))" for i in range(-(-payload // 128))]
    text = f"SUBSTRING(CONCAT({', '.join([*pieces, repr('')])}), 1, {payload})"
    typed, taken, greatest = (
        (", payload STRING", ", payload", f", MAX({text}) AS payload") if payload else ("", "", "")
    )
    drop = f"INSERT INTO {SINK} SELECT key, n{taken} FROM counts"  # noqa: S608 - our own words and numbers
    # One statement, and one choice that needs the count and the payload: were there two, or were lines chosen
    # by their key alone, Flink would count what is shown apart from the rest, in a small state of its own.
    length, told = (", CHAR_LENGTH(payload)", ", characters INT") if payload else ("", "")
    chosen = f"MOD(key + SIGN(n) - 1, {SAMPLE}) = 0"
    show = f"INSERT INTO seen SELECT key, n{length} FROM counts WHERE {chosen}"  # noqa: S608 - as above
    return [
        *_records(source, keys, look),
        f"CREATE TABLE {SINK} (key BIGINT, n BIGINT{typed}) WITH ('connector' = 'blackhole')",
        f"CREATE TABLE seen (key BIGINT, n BIGINT{told}) WITH ('connector' = 'print')",
        f"CREATE TEMPORARY VIEW counts AS SELECT key, COUNT(*) AS n{greatest} FROM records GROUP BY key",  # noqa: S608 - as above
        show if shown else drop,
    ]


def reading(source: Path, keys: Turns, look: str) -> list[str]:
    """The source, and what makes records of its lines, alone: no more than dropping them."""
    return [
        *_records(source, keys, look),
        f"CREATE TABLE {SINK} (key BIGINT) WITH ('connector' = 'blackhole')",
        f"INSERT INTO {SINK} SELECT key FROM records",  # noqa: S608 - as above
    ]


def _records(source: Path, keys: Turns, look: str) -> list[str]:
    # The arrays are made of columns: from constants Flink would make a stateful join on a single task.
    starts = ", ".join(f"first_record + {at}" for at in range(0, CHUNK, PART))
    records = ", ".join(f"begun + {at}" for at in range(PART))
    return [
        (
            "CREATE TABLE ranges (first_record BIGINT, end_record BIGINT) WITH (\n"
            f"              'connector' = 'filesystem', 'path' = '{source.as_uri()}', 'format' = 'csv', "
            f"'source.monitor-interval' = '{look}')"
        ),
        (
            "CREATE TEMPORARY VIEW records AS\n"  # noqa: S608 - as above
            f"              SELECT MOD(record * {keys.multiplier}, {keys.count}) AS key\n"
            f"              FROM ranges CROSS JOIN UNNEST(ARRAY[{starts}]) AS x (begun) "
            f"CROSS JOIN UNNEST(ARRAY[{records}]) AS y (record)"
        ),
    ]


def record_of(keys: Turns, key: int, n: int) -> int:
    """The record that is the ``n``-th one of its key; the first one is number one.

    Example:
        >>> [record_of(Turns(8), key, 2) for key in range(4)]
        [8, 9, 10, 11]
    """
    return key * pow(keys.multiplier, -1, keys.count) % keys.count + (n - 1) * keys.count


@dataclass(frozen=True)
class Seen:
    """A line: when it appeared, the key, its count, and the newest record in it."""

    at: float
    key: int
    n: int
    newest: int


class Watcher:
    """Reads what a job prints as it appears; a context.

    Args:
        path: what it prints to.
        keys: which key a record has.

    Attributes:
        seen: all lines so far.
        records: how many records the sampled keys have counted so far, by their last lines.
    """

    def __init__(self, path: Path, keys: Turns) -> None:
        self._path, self._keys = path, keys
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
                key, n = map(int, match.groups())
                self._note(Seen(at, key, n, record_of(self._keys, key, n)))

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

    def wrong(self, end: int, *, probed: bool = False) -> int:
        """How many sampled keys have a greatest count other than the number of their records below ``end``.

        ``probed`` says that the ``probes`` came after these.
        """
        keys = self._keys
        whole, rest = divmod(end, keys.count)
        # A record is a multiple of the sample where its key is: the multiplier is odd, and both are powers of
        # two.
        more = {keys.key(record) for record in range(0, rest, SAMPLE)}
        last = {keys.key(record) for record in probes(end, keys.count)} if probed else set()
        return sum(
            self._counts.get(key, 0) != whole + (key in more) + (key in last)
            for key in range(0, keys.count, SAMPLE)
        )


def probes(end: int, keys: int) -> list[int]:
    """The sampled records of every ``PROBE``-th chunk of a turn from ``end`` on.

    A line that was printed before a rescale does not say whether the record is still counted after it; the
    next record of the same key does.
    """
    chunks = range(end, end + keys, PROBE * CHUNK)
    return [record for first in chunks for record in range(first, min(first + CHUNK, end + keys), SAMPLE)]


def first_lines(seen: list[Seen], since: int, end: int) -> list[Seen]:
    """The first line of each record from a number to another: a job that restarts may tell it again."""
    found: dict[int, Seen] = {}
    for one in seen:
        if since <= one.newest < end:
            found.setdefault(one.newest, one)
    return list(found.values())


def in_turn(seen: list[Seen]) -> list[Seen]:
    """The same lines, as if records had come out in the order in which they were due.

    Flink's source of files hands out the newest file first, so that where there is a backlog the oldest
    records wait until all of it is gone. Sources of other kinds keep the order; so that Flink is not judged
    by this one, the first line to appear counts as that of the first record, the second as that of the
    second, and so on. The longest wait is never longer by it, and in any other order it would not be shorter.

    Example:
        >>> [one.newest for one in in_turn([Seen(5.0, 1, 1, 512), Seen(9.0, 2, 1, 0), Seen(7.0, 3, 1, 256)])]
        [0, 256, 512]
    """
    records = sorted(one.newest for one in seen)
    appeared = sorted(seen, key=lambda one: one.at)
    return [replace(one, newest=record) for one, record in zip(appeared, records, strict=True)]


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
