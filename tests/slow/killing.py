"""Work to be disturbed.

That is input that is a function of its position, a program that is started and killed, and what came out of
it.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

PROGRAM = Path(__file__).with_name("exactly_once_program.py")
PATIENCE = 180.0


class Work:
    """A folder with input, a checkpoint and output."""

    def __init__(self, folder: Path, seed: int = 1) -> None:
        self.folder, self.seed = folder, seed
        self.files = self.started = 0
        (folder / "input").mkdir(parents=True)

    def feed(self, files: int) -> None:
        """Sees to it that there are so many files of input; file i is a function of i."""
        for number in range(self.files, files):
            dice = random.Random(number)
            rows = dice.randint(5, 40)
            table = pa.table(
                {
                    "word": [f"w{dice.randrange(25)}" for _ in range(rows)],
                    "amount": pa.array([dice.randrange(100) for _ in range(rows)], pa.int64()),
                }
            )
            hidden = self.folder / "input" / f"_{number:06d}"
            pq.write_table(table, hidden)
            # Spark takes files in the order of their modification times.
            os.utime(hidden, (1.7e9 + number, 1.7e9 + number))
            hidden.rename(self.folder / "input" / f"{number:06d}.parquet")
        self.files = max(files, self.files)

    def epoch(self) -> int:
        """The last epoch with a manifest."""
        names = [path.name for path in (self.folder / "checkpoint" / "epochs").glob("*.manifest.json")]
        return int(max(names, default="0").split(".")[0]) - 1

    def files_taken(self) -> int:
        """About how many files have been read.

        As many as there have been epochs, those without input counted too.
        """
        return min(self.files, self.epoch() + 1)

    def start(self, master: str, *, moves: bool = True, crash: str | None = None, end: bool = True) -> Run:
        """Starts the program."""
        self.started += 1
        environment = {key: value for key, value in os.environ.items() if not key.startswith("STERNA_")}
        marker = self.folder / f"struck{self.started}"
        if crash is not None:
            environment |= {"STERNA_CRASH": crash, "STERNA_CRASH_ONCE": str(marker)}
        arguments = [
            str(self.folder),
            master,
            str(self.seed * 1000 + self.started if moves else 0),
            "linked" if self.started % 3 == 0 else "shipped",
            "end" if end else "stay",
        ]
        return Run(self.folder / f"log{self.started}", arguments, environment, marker)

    def output(self) -> dict[int, list[tuple[int, int, int]]]:
        """For each bucket what was told of it, one after the other."""
        told = defaultdict(list)
        for path in sorted((self.folder / "out").glob("part-*.parquet")):
            for row in pq.read_table(path).to_pylist():
                told[row["bucket"]].append((row["n"], row["total"], row["most"]))
        return dict(told)


class Run:
    """One start of the program, with all the processes that come of it."""

    def __init__(self, log: Path, arguments: list[str], environment: dict[str, str], marker: Path) -> None:
        self._log, self._marker = log, marker
        with open(log, "w") as file:
            command = [sys.executable, str(PROGRAM), *arguments]
            self.process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
        self._known: dict[int, psutil.Process] = {}

    @property
    def struck(self) -> bool:
        """Whether the crash point that was asked for has struck."""
        return self._marker.exists()

    @property
    def alive(self) -> bool:
        """Whether the driver is."""
        return self.process.poll() is None

    def family(self) -> list[psutil.Process]:
        """Everything that the program started and that is still there."""
        with contextlib.suppress(psutil.NoSuchProcess):
            me = psutil.Process(self.process.pid)
            self._known.update({child.pid: child for child in me.children(recursive=True)})
        return [one for one in self._known.values() if _alive(one)]

    def executors(self) -> list[psutil.Process]:
        """The JVMs of the executors."""
        return [one for one in self.family() if "CoarseGrainedExecutorBackend" in _command(one)]

    def python_workers(self) -> list[psutil.Process]:
        """The processes that run tasks, forked by daemons of which each executor has one."""
        daemons = {one.pid: one for one in self.family() if "pyspark.daemon" in _command(one)}
        return [one for one in daemons.values() if _parent(one) in daemons]

    def executor_of(self, pid: int) -> psutil.Process | None:
        """The executor that a Python worker belongs to."""
        known = {one.pid: one for one in self.executors()}
        with contextlib.suppress(psutil.NoSuchProcess):
            return next((known[one.pid] for one in psutil.Process(pid).parents() if one.pid in known), None)
        return None

    def end(self, patience: float = PATIENCE) -> int:
        """Waits until the program and all that it started are gone; the exit code."""
        deadline = time.monotonic() + patience
        while self.alive:
            self.family()
            assert time.monotonic() < deadline, f"the program did not end:\n{self.tail()}"
            time.sleep(0.1)
        deadline = time.monotonic() + 20
        while self.family() and time.monotonic() < deadline:
            time.sleep(0.1)
        for one in self.family():
            kill(one)
        return self.process.wait()

    def kill(self) -> None:
        """Kills the driver."""
        self.family()
        self.process.kill()
        self.end()

    def tail(self) -> str:
        """The end of what the program said."""
        return self._log.read_text()[-3000:]


def kill(process: psutil.Process) -> bool:
    """Kills one process that a run started; whether it was still there."""
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return False
    return True


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""


def _parent(process: psutil.Process) -> int:
    try:
        return int(process.ppid())
    except psutil.NoSuchProcess:
        return 0
