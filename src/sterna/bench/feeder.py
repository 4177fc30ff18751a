"""The process that feeds open-loop benchmarks: ``python -m sterna.bench.feeder DIR --begin T --rate R ...``.

Contract. Record n is due at ``begin + (n - first) / rate``, whatever the system under test does. Records go
into files of ``size`` records, each one line ``start,end`` (the end is not included), or several lines of
``--line`` records for a reader that wants them small, named by its first record, written beside DIR and
renamed: nobody ever sees half a file. A file appears when its last record is due. A feeder that was held up
catches up at once, with the same files: what is in a file never depends on when it was written.

It ends by itself: when its parent has died, at ``--limit`` seconds after the begin, when DIR is gone, and on
SIGTERM. It then writes what is due, and its last act is to print the first record number that it has not
written. Only the standard library is imported, so that the process stays small.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import time
from dataclasses import dataclass

LOOK_SECONDS = 0.1
"""How often to look for a reason to end."""


@dataclass(frozen=True)
class Schedule:
    """When each record is due.

    Attributes:
        begin: when the first record is due, in seconds since 1970.
        rate: records a second.
        first: the number of the first record.
        every: how many seconds of records a file holds.

    Example:
        >>> schedule = Schedule(begin=100.0, rate=1000.0, every=0.05)
        >>> schedule.size, schedule.due(500), schedule.files_due(100.1)
        (50, 100.5, 2)
    """

    begin: float
    rate: float
    first: int = 0
    every: float = 0.025

    @property
    def size(self) -> int:
        """Records in a file."""
        return max(1, round(self.rate * self.every))

    def due(self, record: float) -> float:
        """When a record is due."""
        return self.begin + (record - self.first) / self.rate

    def record_at(self, time: float) -> int:
        """The first record that is due at a time or after it."""
        return self.first + max(0, math.ceil((time - self.begin) * self.rate - 1e-6))

    def files_due(self, now: float) -> int:
        """How many files have all of their records due."""
        return max(0, math.floor(((now - self.begin) * self.rate + 1 + 1e-6) / self.size))


def file_name(start: int) -> str:
    """What the file is called whose first record this is."""
    return f"{start:018d}.txt"


def write_range(
    folder: str, start: int, end: int, modified: float | None = None, line: int | None = None
) -> None:
    """Drops one file of records into a folder, at once.

    It is made beside the folder: who lists that one, as Flink does all the time, would look for a file that
    has its name no longer. Spark takes files in the order of their modification times.
    """
    step = line or max(1, end - start)
    name = file_name(start)
    hidden = f"{os.path.abspath(folder)}.{name}"
    with open(hidden, "w", encoding="ascii") as file:
        file.writelines(f"{at},{min(at + step, end)}\n" for at in range(start, end, step))
    if modified is not None:
        os.utime(hidden, (modified, modified))
    try:
        os.rename(hidden, os.path.join(folder, name))
    except OSError:
        os.unlink(hidden)
        raise


def feed(folder: str, schedule: Schedule, parent: int, limit: float, line: int | None = None) -> int:
    """Feeds until there is a reason to end; returns the first record that was not written."""
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends us
    sent, size, going = 0, schedule.size, True
    while going:
        # Once more after the last look: what is due by then is written, also by a process that seldom gets to
        # run.
        going = not stopped and os.getppid() == parent and time.time() < schedule.begin + limit
        due = schedule.files_due(min(time.time(), schedule.begin + limit))
        try:
            while sent < due:
                start = schedule.first + sent * size
                write_range(folder, start, start + size, line=line)
                sent += 1
        except FileNotFoundError:
            break
        ahead = schedule.due(schedule.first + (sent + 1) * size - 1) - time.time()
        if going:
            time.sleep(min(max(ahead, 0.0), LOOK_SECONDS))
    return schedule.first + sent * size


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="sterna.bench.feeder", description="Feeds a directory at a set rate."
    )
    parser.add_argument("folder")
    parser.add_argument("--rate", type=float, required=True, help="records a second")
    parser.add_argument("--begin", type=float, default=None, help="when the first is due; now by default")
    parser.add_argument("--first", type=int, default=0, help="number of the first record")
    parser.add_argument("--every", type=float, default=0.025, help="seconds of records in a file")
    parser.add_argument("--line", type=int, default=None, help="records in a line; all of a file by default")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds after which it ends")
    parser.add_argument("--parent", type=int, default=os.getppid(), help="process without which it ends")
    given = parser.parse_args(arguments)
    begin = time.time() if given.begin is None else given.begin
    schedule = Schedule(begin, given.rate, given.first, given.every)
    end = feed(given.folder, schedule, given.parent, given.limit, given.line)
    sys.stdout.write(f"{end}\n")


if __name__ == "__main__":
    main()
