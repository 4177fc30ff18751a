"""Compaction between epochs.

A process that applied an epoch merges runs while the driver prepares the next one. In: the references that a
table ended an epoch with. Out, a little later: an *offer*, a small file with references that mean the same.
The apply of the next epoch takes the offer in place of what it was given, in whichever process it runs. An
offer is named after the references it replaces, so it can't be taken for anything else; bins that have moved
in between are taken out of it or added to it.

Nothing depends on it: if the process dies, the disk is full or the offer comes too late, the runs stay as
they are and the next epoch merges. What nobody took is swept with other files that no manifest names.

When. A merge that runs beside a task of its own process slows it by more than its share, because both need
the interpreter; and while no task runs, the driver, often on the same machine, is busy with one thread. So a
piece of a merge waits a little for its process to be idle, and for one of the machine's seats, of which there
is one less than cores. Measured with two cores and 1 GiB of state: epochs in which merges ran at once,
wherever they could, took up to twice as long. It waits for no longer than ``PATIENCE``, and not at all where
runs lie so deep that there is too much to do to be polite (``HURRY``).

No task waits for more than the piece under way: once one wants the offer, there is no other piece, and what
was merged until then is the offer. What is left is for the next epochs. Waiting for whole merges made a
large state that had much to merge slow for half a minute: long epochs write much, which is to be merged.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from typing import Protocol

import xxhash

from sterna.errors import SternaError
from sterna.state.compaction import Turn, at_once, compact
from sterna.state.memory import give_back
from sterna.state.refs import RunRef
from sterna.state.runs import RunCache
from sterna.state.spec import TableSpec
from sterna.state.store import Store

NICE = 5
GRACE, PATIENCE = 0.015, 0.15
"""Seconds without a task after which a process counts as idle, and how long a merge waits.

It waits for that and for a seat.
"""
HURRY = 1.5
"""How many times deeper than wanted runs lie where merges do not wait."""
GIVE_BACK_SECONDS = 30.0
"""How often memory that is free goes back to the system."""
LOOK_SECONDS = 0.004


class Later(Protocol):
    """Somebody who does things when there is time."""

    def submit(self, name: str, work: Callable[[], None]) -> None:
        """Do it after the task that asks has ended, or never."""

    def settle(self, name: str) -> None:
        """Return when the work of this name is done, if it was given here and has begun.

        It has no other turn. If it has not begun, it is forgotten.
        """

    def turn(self, hurry: bool = False) -> AbstractContextManager[bool]:
        """Wait until a piece of work disturbs nobody, but not for long, and not at all in a hurry.

        What is done in this context is that piece. It is false where somebody waits for what was done before:
        then no other piece should be.
        """


class BackgroundThread:
    """One thread of this process, with a lower priority than the tasks."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "sterna-compaction", self._be_nice)
        self._futures: dict[str, Future[None]] = {}
        self._lock = threading.Lock()
        self._gave_back = time.monotonic()
        self._changed = threading.Condition()
        self._tasks = self._awaited = 0
        self._ended = 0.0

    @staticmethod
    def _be_nice() -> None:
        with contextlib.suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)

    def submit(self, name: str, work: Callable[[], None]) -> None:
        """See ``Later``."""
        with self._lock:
            self._futures = {key: future for key, future in self._futures.items() if not future.done()}
            self._futures[name] = self._pool.submit(work)
            if time.monotonic() > self._gave_back + GIVE_BACK_SECONDS:
                self._gave_back = time.monotonic()
                self._pool.submit(give_back)

    def settle(self, name: str) -> None:
        """See ``Later``."""
        with self._lock:
            future = self._futures.get(name)
        if future is not None and not future.cancel():
            with self._changed:
                self._awaited += 1
                self._changed.notify_all()
            wait([future])
            with self._changed:
                self._awaited -= 1

    @contextlib.contextmanager
    def task(self) -> Iterator[None]:
        """A task of this process runs."""
        with self._changed:
            self._tasks += 1
        try:
            yield
        finally:
            with self._changed:
                self._tasks -= 1
                self._ended = time.monotonic()
                self._changed.notify_all()

    @contextlib.contextmanager
    def turn(self, hurry: bool = False) -> Iterator[bool]:
        """See ``Later``."""
        if not hurry:
            self._wait()
        deadline = time.monotonic() + (0.0 if hurry else PATIENCE)
        with seat(lambda: bool(self._awaited) or time.monotonic() > deadline):
            yield not self._awaited

    def _wait(self) -> None:
        """Waits until this process is idle, or somebody waits for what was done, for a while at most."""
        deadline = time.monotonic() + PATIENCE
        with self._changed:
            while not self._awaited and (left := self._busy_for(time.monotonic(), deadline)) > 0:
                self._changed.wait(left)

    def _busy_for(self, now: float, deadline: float) -> float:
        """How long to wait before looking again; 0 if this process is idle, or it has been long enough."""
        idle_at = deadline if self._tasks else self._ended + GRACE
        return min(idle_at, deadline) - now


@contextlib.contextmanager
def seat(in_a_hurry: Callable[[], bool]) -> Iterator[None]:
    """One of the machine's seats for merging, taken while this context lasts.

    No seat is taken if it is in a hurry, or files can't be locked here.
    """
    taken = None
    with contextlib.suppress(OSError, ImportError):
        while taken is None and not in_a_hurry():
            taken = _free_seat()
            if taken is None:
                time.sleep(LOOK_SECONDS)
    try:
        yield
    finally:
        if taken is not None:
            os.close(taken)


def _free_seat() -> int | None:
    """The locked file of a seat that nobody has.

    Closing it gives it back, and so does the end of the process.
    """
    import fcntl  # noqa: PLC0415 - not on every system

    for number in range(max(1, cores() - 1)):
        path = os.path.join(tempfile.gettempdir(), f"sterna-merging-{os.getuid()}-{number}")
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            if not isinstance(error, BlockingIOError):
                raise
        else:
            return file
    return None


def cores() -> int:
    """How many cores this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


def digest(refs: Sequence[RunRef]) -> str:
    """What an offer is named after: the references that it replaces, in any order."""
    parts = sorted(f"{ref.name}:{ref.lo}:{ref.hi}:{ref.level}:{ref.age}" for ref in refs)
    return xxhash.xxh3_64_hexdigest(" ".join(parts).encode())


def offered(store: Store, name: str) -> list[RunRef] | None:
    """The references of an offer, if there is one."""
    try:
        document = store.read_document(f"{name}.json")
        return [RunRef.from_list(ref) for ref in document["refs"]]
    except (SternaError, FileNotFoundError, KeyError, TypeError, ValueError):
        return None


def prepare(
    spec: TableSpec,
    refs: Sequence[RunRef],
    cache: RunCache,
    budget: int,
    name: str,
    horizon: int | None,
    *,
    piece: int | None = None,
    durable: bool = False,
    turn: Turn = at_once,
) -> None:
    """Merge, and offer the result under a name."""
    count = 0

    def namer() -> str:
        nonlocal count
        count += 1
        return f"{name}-{count}.arrow"

    # What goes wrong here goes wrong again in an epoch, if it matters, and is reported there.
    with contextlib.suppress(SternaError, FileNotFoundError):
        merged, rows = compact(
            spec, refs, cache, budget, namer, horizon, piece_rows=piece, durable=durable, turn=turn
        )
        if rows:
            document = {"refs": [ref.to_list() for ref in merged], "rows": rows}
            cache.store.write_document(f"{name}.json", document, durable=durable)
