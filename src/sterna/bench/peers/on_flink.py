"""Laps and maximum rates of Apache Flink; each starts a cluster of its own and ends it.

Two of four slots of one TaskManager are used at first, then all: as its documentation says of elastic scaling, the adaptive scheduler restarts the job in place from its latest checkpoint when other resource requirements are put to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sterna.bench.feeder import Schedule, write_range
from sterna.bench.openloop import Feeder
from sterna.bench.peers.flink import Cluster, FlinkError
from sterna.bench.peers.flink_count import (
    CHUNK,
    LAP,
    RACE,
    SAMPLE,
    Seen,
    Tuning,
    Watcher,
    first_lines,
    latencies,
    statements,
    timeline,
)
from sterna.bench.peers.lap import AFTER, BEFORE, Case, Course, Lap

if TYPE_CHECKING:
    from sterna.bench.rig import Say

FILE_RECORDS = 1024 * CHUNK
"""Few and large files: the source lists all of them whenever it looks."""
MOST_RATE = 4_000_000
"""A backlog holds as much as nobody is through with in the time."""
EVERY_SECONDS = 0.05
LOOK_SECONDS, LONGEST_SECONDS = 0.1, 900.0
STEADY_WITHIN = 0.25


class OnFlink:
    """Flink, with an empty folder of its own for each lap.

    Attributes:
        cores: how many processors its processes used while the most records a second were measured, each time.
    """

    name = "flink"

    def __init__(self, home: Path, memory: str, say: Say) -> None:
        self._home, self._memory, self._say = home, memory, say
        self.cores: list[dict[str, float]] = []

    def maximum_rate(self, folder: str, case: Case, course: Course) -> float:
        """Records a second that show in the outputs while there is a backlog."""
        with self._filled(Path(folder), case, RACE) as (cluster, _, source, watcher):
            full = watcher.records
            _backlog(source, case, course)
            wait(lambda: watcher.records > full, LONGEST_SECONDS, "Flink did not find its input")
            time.sleep(course.warm)
            used, first, began = cluster.cpu_seconds(), watcher.records, time.monotonic()
            time.sleep(course.seconds)
            took = time.monotonic() - began
            self.cores.append(
                {name: round((total - used[name]) / took, 2) for name, total in cluster.cpu_seconds().items()}
            )
            self._say(f"{self.name}: processors used: {self.cores[-1]}")
            return SAMPLE * (watcher.records - first) / took

    def source_rate(self, folder: str, case: Case, course: Course) -> float:
        """Records a second of the source alone, with what makes records of its lines: what it would be limited to."""
        source = Path(folder) / "input"
        source.mkdir(parents=True)
        _backlog(source, case, course)
        home = Path(folder) / "flink"
        with Cluster(self._home, home, BEFORE, RACE.slots, self._memory, RACE.checkpoint) as cluster:
            cluster.submit(RACE.options, statements(source, case.turns, 0, RACE.look, counted=False))
            with Watcher(cluster.output) as watcher:
                wait(lambda: bool(watcher.seen), LONGEST_SECONDS, "Flink's source gave nothing")
                time.sleep(course.warm / 2)
                first, began = len(watcher.seen), time.monotonic()
                time.sleep(course.seconds / 3)
                return SAMPLE * (len(watcher.seen) - first) / (time.monotonic() - began)

    def lap(self, folder: str, case: Case, course: Course, rate: float) -> Lap:
        """See ``lap``."""
        with self._filled(Path(folder), case, LAP) as (cluster, job, source, watcher):
            # A file holds whole chunks.
            every = max(1, round(rate * EVERY_SECONDS / CHUNK)) * CHUNK / rate
            schedule = Schedule(time.time() + 1.0, rate, case.keys, every)
            with Feeder(str(source), schedule, line=CHUNK) as feeder:
                view = _View(watcher, schedule)
                wait(lambda: view.steady(course.window), LONGEST_SECONDS, "Flink was not steady")
                start = time.time()
                time.sleep(course.quiet)
                end = time.time()
                usual = view.longest(start, end)
                time.sleep(course.lead)
                asked = time.time()
                cluster.rescale(job, AFTER)
                wait(lambda: cluster.parallelism(job) == AFTER, LONGEST_SECONDS, "Flink did not rescale")
                completed = time.time()
                wait(lambda: view.usual(usual, completed), course.limit, None)
                over = time.time()
                time.sleep(course.rest)
                last = feeder.stop()
            wait(lambda: not watcher.wrong(case.turns, last), course.window * 3, None)
            seen = first_lines(watcher.seen, case.keys)
            return Lap(
                self.name,
                latencies(seen, schedule, start, end),
                latencies(seen, schedule, end, over),
                (start - schedule.begin, end - schedule.begin),
                asked - schedule.begin,
                completed - asked,
                watcher.wrong(case.turns, last),
                timeline(seen, schedule).to_json(),
            )

    @contextmanager
    def _filled(
        self, folder: Path, case: Case, tuning: Tuning
    ) -> Iterator[tuple[Cluster, str, Path, Watcher]]:
        """A cluster, its job, where its input goes, and its outputs; every key is once in its state."""
        source = folder / "input"
        source.mkdir(parents=True)
        write(source, 0, case.keys)
        home = folder / "flink"
        with Cluster(self._home, home, BEFORE, tuning.slots, self._memory, tuning.checkpoint) as cluster:
            self._say(f"{self.name}: filling {case.keys:,} keys")
            job = cluster.submit(tuning.options, statements(source, case.turns, case.payload, tuning.look))
            with Watcher(cluster.output) as watcher:
                whole = -(-case.keys // SAMPLE)
                wait(lambda: watcher.records >= whole, LONGEST_SECONDS, "Flink was not filled")
                yield cluster, job, source, watcher


class _View:
    """What can be said of latency while a lap runs; looks at the newest lines only."""

    def __init__(self, watcher: Watcher, schedule: Schedule) -> None:
        self._watcher, self._schedule = watcher, schedule

    def longest(self, start: float, end: float) -> float:
        """The longest latency, in seconds, of lines that appeared in a time."""
        return max((self._waited(one) for one in self._since(start) if one.at < end), default=0.0)

    def steady(self, window: float) -> bool:
        """Whether lines of the last ``window`` seconds waited, in the newer half, about as long as in the older half."""
        now = time.time()
        if now < self._schedule.begin + 1.5 * window:
            return False
        middle = now - window / 2
        older, newer = self.longest(now - window, middle), self.longest(middle, now)
        return older > 0 and abs(newer - older) <= STEADY_WITHIN * older

    def usual(self, longest: float, since: float) -> bool:
        """Whether the lines of the last three seconds waited no longer than that."""
        now = time.time()
        return now > since + 3.0 and 0 < self.longest(now - 3.0, now) <= longest

    def _waited(self, one: Seen) -> float:
        return one.at - self._schedule.due(one.newest)

    def _since(self, start: float) -> Iterator[Seen]:
        for one in reversed(self._watcher.seen):
            if one.at < start:
                return
            if one.newest >= self._schedule.first:
                yield one


def _backlog(source: Path, case: Case, course: Course) -> None:
    """More records than anybody is through with in the time."""
    records = int((course.warm + course.seconds) * MOST_RATE)
    write(source, case.keys, case.keys + records - records % FILE_RECORDS)


def write(source: Path, start: int, end: int) -> None:
    """Files for the records [start, end), both multiples of a chunk."""
    for at in range(start, end, FILE_RECORDS):
        write_range(str(source), at, min(at + FILE_RECORDS, end), line=CHUNK)


def wait(done: Callable[[], bool], limit: float, failure: str | None) -> None:
    """Until something is so; after so many seconds raises ``FlinkError``, or goes on where no failure is given."""
    deadline = time.monotonic() + limit
    while not done():
        if time.monotonic() > deadline:
            if failure is None:
                return
            raise FlinkError(f"{failure} in {limit:.0f} s")
        time.sleep(LOOK_SECONDS)
