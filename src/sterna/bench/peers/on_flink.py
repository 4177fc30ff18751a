"""Laps and maximum rates of Apache Flink; each starts a cluster of its own and ends it.

Two of four slots of one TaskManager are used at first, then all: as its documentation says of elastic
scaling, the adaptive scheduler restarts the job in place from its latest checkpoint when other resource
requirements are put to it.

Every wait has a limit, and ends at once if a process of Flink or the job has ended: with ``FlinkError``,
which says what was waited for and what Flink said last.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sterna.bench.feeder import Schedule
from sterna.bench.openloop import Feeder
from sterna.bench.peers.flink import Cluster, FlinkError
from sterna.bench.peers.flink_count import (
    CHUNK,
    FIRST_PHASE,
    LAP,
    PROBE,
    RACE,
    SAMPLE,
    SINK,
    Seen,
    Tuning,
    Watcher,
    counting,
    first_lines,
    in_turn,
    latencies,
    race,
    reading,
    timeline,
)
from sterna.bench.peers.flink_input import Removal, check_left, new_folder, write, write_backlog
from sterna.bench.peers.flink_rest import Checkpoints
from sterna.bench.peers.lap import AFTER, BEFORE, Case, Course, Lap

if TYPE_CHECKING:
    from sterna.bench.rig import Say

EVERY_SECONDS = 0.05
LOOK_SECONDS, LONGEST_SECONDS, LAST_SECONDS = 0.1, 900.0, 120.0
COUNT_SECONDS, CHECK_SECONDS, ASK_SECONDS = 1.0, 1.0, 0.5
"""Seldom: with four samples a second the JobManager took a tenth of two cores for them."""
STEADY_WITHIN = 0.25


class OnFlink:
    """Flink, with an empty folder of its own for each lap.

    Args:
        home: where it is installed.
        memory: of its TaskManager.
        say: takes a line about what is going on.
        tuning: what is set for a maximum rate; for the most records over so many keys unless given.

    Attributes:
        cores: how many processors its processes used while the most records a second were measured, each
            time.
    """

    name = "flink"

    def __init__(self, home: Path, memory: str, say: Say, tuning: Tuning | None = None) -> None:
        self._home, self._memory, self._say, self._tuning = home, memory, say, tuning
        self.cores: list[dict[str, float]] = []

    def maximum_rate(self, folder: str, case: Case, course: Course) -> float:
        """Records a second that the aggregation takes while there is a backlog."""
        tuning, source = self._tuning or race(case.keys), new_folder(folder)
        write(source, 0, case.keys)
        job = counting(source, case.turns, case.payload, tuning.look, shown=tuning is LAP)
        with self._running(folder, tuning, job) as running:
            self._say(f"{self.name}: filling {case.keys:,} keys")
            running.wait(lambda: running.records_in(FIRST_PHASE) >= case.keys, "was not filled")
            backlog = write_backlog(source, case, course)
            running.wait(lambda: running.records_in(FIRST_PHASE) > case.keys, "did not find its input")
            time.sleep(course.warm)
            used, began = running.cluster.cpu_seconds(), time.monotonic()
            rate = running.rate(FIRST_PHASE, course.seconds)
            took, now = time.monotonic() - began, running.cluster.cpu_seconds()
            check_left(backlog, running.records_in(FIRST_PHASE) - case.keys, rate)
            self.cores.append({name: round((now[name] - used[name]) / took, 2) for name in used})
            self._say(f"{self.name}: processors used: {self.cores[-1]}")
            return rate

    def source_rate(self, folder: str, case: Case, course: Course) -> float:
        """Records a second of the source alone, with what makes records of its lines.

        This is what Flink would be limited to.
        """
        source = new_folder(folder)
        backlog = write_backlog(source, case, course)
        with self._running(folder, RACE, reading(source, case.turns, RACE.look)) as running:
            running.wait(lambda: running.records_in(SINK) > 0, "got nothing from its source")
            time.sleep(course.warm / 2)
            rate = running.rate(SINK, course.seconds / 2)
            check_left(backlog, running.records_in(SINK), rate)
            return rate

    def lap(self, folder: str, case: Case, course: Course, rate: float) -> Lap:
        """See ``lap``."""
        source = new_folder(folder)
        write(source, 0, case.keys)
        job = counting(source, case.turns, case.payload, LAP.look, shown=True)
        with (
            self._running(folder, LAP, job) as running,
            Watcher(running.cluster.output, case.turns) as watcher,
        ):
            self._say(f"{self.name}: filling {case.keys:,} keys")
            whole = -(-case.keys // SAMPLE)
            running.wait(lambda: watcher.records >= whole, "was not filled")
            # A file holds whole chunks.
            every = max(1, round(rate * EVERY_SECONDS / CHUNK)) * CHUNK / rate
            schedule = Schedule(time.time() + 1.0, rate, case.keys, every)
            with (
                Removal(source, schedule, watcher.seen, running.checkpoints),
                Feeder(str(source), schedule, line=CHUNK) as feeder,
            ):
                moments = _rescaled(running, _View(watcher, schedule), course)
                last = feeder.stop()
            # Flink would take the probes before what it has not come to yet.
            running.until(lambda: SAMPLE * watcher.records >= last, LAST_SECONDS)
            write(source, last, last + case.keys, PROBE)
            running.until(lambda: not watcher.wrong(last, probed=True), LAST_SECONDS)
            seen = in_turn(first_lines(watcher.seen, case.keys, last))
            start, end = moments.quiet
            return Lap(
                self.name,
                latencies(seen, schedule, start, end),
                latencies(seen, schedule, end, moments.over),
                (start - schedule.begin, end - schedule.begin),
                moments.asked - schedule.begin,
                moments.completed - moments.asked,
                watcher.wrong(last, probed=True),
                timeline(seen, schedule).to_json(),
            )

    @contextmanager
    def _running(self, folder: str, tuning: Tuning, job: list[str]) -> Iterator[Running]:
        """A cluster with a job on it."""
        home = Path(folder) / "flink"
        with Cluster(
            self._home, home, BEFORE, tuning.slots, self._memory, tuning.checkpoint, tuning.more
        ) as cluster:
            yield Running(cluster, cluster.submit(tuning.options, job))


@dataclass(frozen=True)
class Running:
    """A job that runs."""

    cluster: Cluster
    job: str

    def records_in(self, operator: str) -> int:
        """See ``Rest.records_in``."""
        return self.cluster.rest.records_in(self.job, operator)

    def checkpoints(self) -> Checkpoints:
        """See ``Rest.checkpoints``."""
        return self.cluster.rest.checkpoints(self.job)

    def wait(self, done: Callable[[], bool], failure: str, every: float = LOOK_SECONDS) -> None:
        """Until something is so; ``FlinkError`` if that takes too long."""
        if not self.until(done, LONGEST_SECONDS, every):
            said = self.cluster.rest.why(self.job)
            raise FlinkError(f"Flink {failure} in {LONGEST_SECONDS:.0f} s: {said}")

    def until(self, done: Callable[[], bool], limit: float, every: float = LOOK_SECONDS) -> bool:
        """Whether something became so within so many seconds.

        Raises ``FlinkError`` if the job or a process of Flink has ended.
        """
        deadline, checked = time.monotonic() + limit, time.monotonic()
        while not done():
            now = time.monotonic()
            if now > deadline:
                return False
            if now > checked + CHECK_SECONDS:
                self.cluster.check(self.job)
                checked = now
            time.sleep(every)
        return True

    def rate(self, operator: str, seconds: float) -> float:
        """How many records a second an operator takes, for so many seconds."""
        samples: list[tuple[float, int]] = []
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            count = self.records_in(operator)
            if count:
                samples.append((time.monotonic(), count))
            time.sleep(min(COUNT_SECONDS, seconds / 8))
        self.cluster.check(self.job)
        return slope(samples)


def slope(samples: Sequence[tuple[float, int]]) -> float:
    """The records a second that moments and the counts at them show.

    It is that of the straight line nearest to all of them, because mini-batches are taken in bursts.

    Raises:
        FlinkError: nothing was counted, or a count is smaller than one before it: the job began anew.
    """
    counts = [count for _, count in samples]
    if any(later < earlier for earlier, later in itertools.pairwise(counts)):
        raise FlinkError("Flink's job began anew while it was measured")
    if len(samples) < 2 or counts[0] == counts[-1]:
        raise FlinkError("Flink took no records while it was measured")
    return statistics.linear_regression([at for at, _ in samples], counts).slope


@dataclass(frozen=True)
class _Moments:
    """The moments of a rescale.

    They are when the quiet time began and ended, another parallelism was asked for, all of it ran, and
    latency was what it was.
    """

    quiet: tuple[float, float]
    asked: float
    completed: float
    over: float


def _rescaled(running: Running, view: _View, course: Course) -> _Moments:
    """Lets a job run for a while, changes its parallelism, and waits until latency is what it was.

    It waits no longer than the course allows.
    """
    # Without one it would begin anew with nothing, and read all of its input again.
    running.wait(lambda: running.checkpoints().completed > 0, "completed no checkpoint")
    # Twice as long as the others: it goes on compacting what it was filled with, in bursts.
    running.wait(lambda: view.steady(2 * course.window), "was not steady")
    start = time.time()
    time.sleep(course.quiet)
    end = time.time()
    usual = view.longest(start, end)
    time.sleep(course.lead)
    asked, rest = time.time(), running.cluster.rest
    rest.rescale(running.job, AFTER)
    running.wait(lambda: rest.parallelism(running.job) == AFTER, "did not rescale", ASK_SECONDS)
    completed = time.time()
    running.until(lambda: view.usual(usual, completed), course.limit)
    over = time.time()
    time.sleep(course.rest)
    return _Moments((start, end), asked, completed, over)


class _View:
    """What can be said of latency while a lap runs; looks at the newest lines only."""

    def __init__(self, watcher: Watcher, schedule: Schedule) -> None:
        self._watcher, self._schedule = watcher, schedule

    def longest(self, start: float, end: float) -> float:
        """The longest latency, in seconds, of lines that appeared in a time."""
        return max((self._waited(one) for one in self._since(start) if one.at < end), default=0.0)

    def steady(self, window: float) -> bool:
        """Whether lines waited about as long in both halves of the last ``window`` seconds."""
        now = time.time()
        if now < self._schedule.begin + 1.5 * window:
            return False
        middle = now - window / 2
        older, newer = self.longest(now - window, middle), self.longest(middle, now)
        return older > 0 and abs(newer - older) <= STEADY_WITHIN * older

    def usual(self, longest: float, since: float) -> bool:
        """Whether the lines of the last three seconds waited no longer than that, and no record does."""
        now = time.time()
        return (
            now > since + 3.0 and 0 < self.longest(now - 3.0, now) <= longest and self._behind(now) <= longest
        )

    def _behind(self, now: float) -> float:
        """How long ago the record was due that has its turn now: the oldest ones may come last."""
        return now - self._schedule.due(SAMPLE * self._watcher.records)

    def _waited(self, one: Seen) -> float:
        return one.at - self._schedule.due(one.newest)

    def _since(self, start: float) -> Iterator[Seen]:
        for one in reversed(self._watcher.seen):
            if one.at < start:
                return
            if one.newest >= self._schedule.first:
                yield one
