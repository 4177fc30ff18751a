"""Compaction between epochs: a process that applied an epoch merges runs while the driver prepares the next one.

In: the references that a table ended an epoch with. Out, a little later: an *offer*, a small file with references that mean the same. The apply
of the next epoch takes the offer in place of what it was given, in whichever process it runs. An offer is named after the references it
replaces, so it can't be taken for anything else; bins that have moved in between are taken out of it or added to it.

Nothing depends on it: if the process dies, the disk is full or the offer comes too late, the runs stay as they are and the next epoch merges.
What nobody took is swept with other files that no manifest names.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Protocol, cast

import pyarrow as pa
import xxhash

from sterna.errors import SternaError
from sterna.state.compaction import compact
from sterna.state.refs import RunRef
from sterna.state.runs import RunCache
from sterna.state.spec import TableSpec
from sterna.state.store import Store

NICE = 5
GIVE_BACK_EVERY = 8


class Later(Protocol):
    """Somebody who does things when there is time."""

    def submit(self, name: str, work: Callable[[], None]) -> None:
        """Do it after the task that asks has ended, or never."""

    def settle(self, name: str) -> None:
        """Return when the work of this name is done, if it was given here and has begun; forget it if it has not."""


class BackgroundThread:
    """One thread of this process, with a lower priority than the tasks."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "sterna-compaction", self._be_nice)
        self._futures: dict[str, Future[None]] = {}
        self._lock = threading.Lock()
        self._given = 0

    @staticmethod
    def _be_nice() -> None:
        with contextlib.suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)

    def submit(self, name: str, work: Callable[[], None]) -> None:
        """See ``Later``."""
        with self._lock:
            self._futures = {key: future for key, future in self._futures.items() if not future.done()}
            self._futures[name] = self._pool.submit(work)
            self._given += 1
            if self._given % GIVE_BACK_EVERY == 0:
                self._pool.submit(give_back)

    def settle(self, name: str) -> None:
        """See ``Later``."""
        with self._lock:
            future = self._futures.get(name)
        if future is not None and not future.cancel():
            wait([future])


def give_back() -> None:
    """Returns memory that merges have used and freed to the system: allocators keep it otherwise, as much as the largest merge took."""
    pa.default_memory_pool().release_unused()
    trim = _trim()
    if trim is not None:
        trim(0)


@functools.cache
def _trim() -> Callable[[int], int] | None:
    try:
        return cast("Callable[[int], int]", ctypes.CDLL(None).malloc_trim)
    except (OSError, AttributeError):  # another C library
        return None


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
) -> None:
    """Merge, and offer the result under a name."""
    count = 0

    def namer() -> str:
        nonlocal count
        count += 1
        return f"{name}-{count}.arrow"

    # What goes wrong here goes wrong again in an epoch, if it matters, and is reported there.
    with contextlib.suppress(SternaError, FileNotFoundError):
        merged, rows = compact(spec, refs, cache, budget, namer, horizon, piece_rows=piece, durable=durable)
        if rows:
            document = {"refs": [ref.to_list() for ref in merged], "rows": rows}
            cache.store.write_document(f"{name}.json", document, durable=durable)


def deepest(refs: Sequence[RunRef]) -> int:
    """How many references of one level lie over one hash at most."""
    edges: dict[int, list[tuple[int, int]]] = {}
    for ref in refs:
        edges.setdefault(ref.level, []).extend(((ref.lo, 1), (ref.hi, -1)))
    most = 0
    for steps in edges.values():
        depth = 0
        for _, step in sorted(steps):
            depth += step
            most = max(most, depth)
    return most
