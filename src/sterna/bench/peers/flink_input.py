"""Flink's input: the files that it reads, and how those that it needs no more are removed while it runs.

Flink's source lists all files of the folder whenever it looks for new ones. Spark's deletes what it has read
(``openloop``); so that Flink has no more to list than the others, ``Removal`` does it for Flink. A file is
removed once every sampled record of it has come out and a checkpoint is complete that began well after that:
a job that begins anew from it, or from a later one, does not read the file again. What came out before a job
began anew says nothing about what it has read since, and does not count.
"""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sterna.bench.feeder import Schedule, file_name, write_range
from sterna.bench.peers.flink_count import CHUNK, SAMPLE, Seen
from sterna.bench.peers.flink_rest import Checkpoints, FlinkError

if TYPE_CHECKING:
    from typing_extensions import Self

    from sterna.bench.peers.lap import Case, Course

FILE_RECORDS = 2048 * CHUNK
"""Few and large files: the source lists all of them whenever it looks."""
MOST_RATE = 60_000_000
"""A backlog holds as much as nobody should be through with in the time; ``check_left`` looks."""
LOOK_SECONDS, MARGIN_SECONDS = 2.0, 2.0
"""How often to look for files to remove, and how long after its last record a checkpoint has to begin."""


def new_folder(folder: str) -> Path:
    """A new folder for the input."""
    source = Path(folder) / "input"
    source.mkdir(parents=True)
    return source


def write(source: Path, start: int, end: int, part: int = 1) -> None:
    """Files for the records [start, end), both multiples of a chunk; or for one chunk in so many of them."""
    for at in range(start, end, FILE_RECORDS):
        # Flink's job makes a chunk of each line, wherever the line says that it ends.
        write_range(str(source), at, min(at + FILE_RECORDS, end), line=part * CHUNK)


def write_backlog(source: Path, case: Case, course: Course) -> int:
    """More records than anybody should be through with in the time; how many there are."""
    records = int((course.warm + course.seconds) * MOST_RATE)
    records -= records % FILE_RECORDS
    write(source, case.keys, case.keys + records)
    return records


def check_left(written: int, taken: int, rate: float) -> None:
    """Raises ``FlinkError`` if a backlog was about to run dry when a rate was measured.

    A second's worth has to be left: the counters are a moment old, and records wait in buffers.

    Args:
        written: the records of the backlog.
        taken: how many of them have been taken in the end.
        rate: the records a second that were measured.
    """
    if written - taken < rate:
        raise FlinkError(
            f"Flink's input ran dry: {taken:,} of {written:,} records were taken in the end, so the rate of "
            f"{rate:,.0f} a second may be that of the input and not Flink's; raise MOST_RATE in "
            "sterna.bench.peers.flink_input"
        )


class Removal:
    """Removes files of a schedule that a job is through with, while this context lasts.

    Args:
        source: where the files are.
        schedule: what is in them; the first record and the size of a file are multiples of the sample.
        seen: the lines that have come out, of which there are more all the time.
        checkpoints: what is known of checkpoints; where Flink can't be asked, as while it begins anew, it
            raises ``FlinkError``, and nothing is removed.
    """

    def __init__(
        self, source: Path, schedule: Schedule, seen: Sequence[Seen], checkpoints: Callable[[], Checkpoints]
    ) -> None:
        self._source, self._schedule, self._seen, self._checkpoints = source, schedule, seen, checkpoints
        self._read, self._restored = 0, 0.0
        self._out: defaultdict[int, set[int]] = defaultdict(set)
        self._through: dict[int, float] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="flink-input", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            with contextlib.suppress(FlinkError):
                self.look()

    def look(self) -> None:
        """Removes what can be removed now."""
        told = self._checkpoints()
        if told.restored > self._restored:
            self._restored = told.restored
            self._out.clear()
            self._through.clear()
        self._note()
        for first, at in list(self._through.items()):
            if told.completed > at + MARGIN_SECONDS:
                (self._source / file_name(first)).unlink(missing_ok=True)
                del self._through[first]

    def _note(self) -> None:
        """Notes which files have all of their sampled records among the lines, and since when."""
        start, size = self._schedule.first, self._schedule.size
        news = self._seen[self._read :]
        self._read += len(news)
        for one in news:
            if one.newest < start or one.at <= self._restored:
                continue
            first = one.newest - (one.newest - start) % size
            records = self._out[first]
            if one.newest not in records:
                records.add(one.newest)
                if len(records) == size // SAMPLE:
                    self._through[first] = one.at
