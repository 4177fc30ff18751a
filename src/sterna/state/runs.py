"""Run files: immutable, sorted by hash, memory-mapped, checked when a process first opens them.

In: record batches sorted by ``_hash``. Out: ``RunRef`` for what was written, ``Run`` for what was opened. A
file that is missing, cut short or damaged raises ``StateError`` with its name and what is wrong with it; a
damaged local copy of a remote file is fetched again once before that.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import struct
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from sterna.errors import StateError
from sterna.state.columns import plain
from sterna.state.files import write_local
from sterna.state.refs import END, RunRef, coalesce, drop, keep
from sterna.state.run import Run
from sterna.state.seek import Index
from sterna.state.store import Store

__all__ = ["END", "Run", "RunCache", "RunRef", "coalesce", "drop", "keep"]

SPLIT_BYTES = 256 << 20
COPY_SECONDS = 3600.0
"""A local copy of a remote file that nobody opened for so long is removed; it can be fetched again."""
LOOK_SECONDS = 1.0
"""How often to look which of the open files have been deleted."""
LASTING_LEVEL = 2
"""From this level on files last: those before are mostly merged before they have to be on disk."""
INDEXED_ROWS = 4096
ALIGNED = 64
MAGIC = b"STERNA01"
TRAILER = struct.Struct("<Q8s")


@dataclass
class _Opened:
    """A file that is open, and when it was last asked for."""

    run: Run
    used: float


class RunCache:
    """The run files that this process has open, the least recently used one closed first.

    A large state has thousands of files, and an epoch may need all of them: what is in use stays open, beyond
    the limit too. Mapping a file again takes several times as long as looking some hundred keys up in it.

    Args:
        store: Where the files live.
        local_dir: Where copies of the files of a store that is not local are kept; needed for such a store.
        limit: How many files to keep open although nobody may need them any more.
        in_use: For how many seconds after it was asked for a file counts as in use.
        most: How many files to keep open at the most; the system allows a process some ten thousand mappings.
    """

    def __init__(
        self,
        store: Store,
        local_dir: str | None = None,
        limit: int = 1024,
        *,
        in_use: float = 30.0,
        most: int = 16_384,
    ) -> None:
        if not store.is_local and local_dir is None:
            raise StateError(f"runs of {store.uri} need a local directory: it can't be memory-mapped")
        self.store = store
        self.local_dir = local_dir
        self._limit, self._in_use, self._most = limit, in_use, most
        self._open: OrderedDict[str, _Opened] = OrderedDict()
        self._verified: dict[str, int] = {}
        self._made: set[str] = set()
        self._next_sweep = self._next_look = 0.0
        self._lock = threading.Lock()

    def open(self, ref: RunRef) -> Run:
        """Map the file of a reference; the first time in this process, check its size and checksum."""
        with self._lock:
            opened = self._open.get(ref.name)
            if opened is not None and self._verified.get(ref.name) == ref.checksum:
                opened.used = time.monotonic()
                self._open.move_to_end(ref.name)
                return opened.run
        run = self._load(ref)
        with self._lock:
            self._trust(ref.name, ref.checksum)
            self._open[ref.name] = _Opened(run, time.monotonic())
            self._open.move_to_end(ref.name)
            self._close_some()
        return run

    def _close_some(self) -> None:
        """Closes what nobody has used for a while, beyond the limit, and what is beyond all limits."""
        idle_since = time.monotonic() - self._in_use
        while len(self._open) > self._limit:
            oldest = next(iter(self._open.values()))
            if oldest.used > idle_since and len(self._open) <= self._most:
                break
            self._open.popitem(last=False)

    def close_deleted(self) -> None:
        """Closes files that are no longer in the store, if it is local; at most once in ``LOOK_SECONDS``.

        As long as anybody has a deleted file open, its pages stay in memory, and those that are not on disk
        yet are written there after half a minute: with 1 GiB of state that was as much again, all at once.
        """
        now = time.monotonic()
        with self._lock:
            if not self.store.is_local or now < self._next_look:
                return
            self._next_look = now + LOOK_SECONDS
            idle = list(
                itertools.takewhile(lambda name: self._open[name].used <= now - LOOK_SECONDS, self._open)
            )
        gone = [name for name in idle if not os.path.exists(self.store.local_path(name) or "")]
        for name in gone:
            with self._lock:
                closed = self._open.pop(name, None)
                self._verified.pop(name, None)
            del closed  # its memory is given back here, where nobody waits for the lock

    def write(
        self, name: str, batch: pa.RecordBatch, *, age: int, level: int, timed: bool, durable: bool = False
    ) -> RunRef:
        """Write a batch that is sorted by ``_hash`` as one file and return the reference to all of it."""
        if batch.num_rows == 0:
            raise ValueError(f"run {name} would be empty")
        data = _encode(batch)
        checksum = xxhash.xxh3_64_intdigest(data)
        if not self.store.is_local:
            self._keep_copy(name, data)
        self.store.write(name, data, durable=durable, early=level >= LASTING_LEVEL)
        with self._lock:
            self._trust(name, checksum)
            self._open.pop(name, None)
        hashes = plain(batch.column("_hash"))
        deletes = bool(pc.any(batch.column("_gone")).as_py())
        oldest = newest = None
        if timed:
            times = batch.column("_time")
            if deletes:
                times = times.filter(pc.invert(batch.column("_gone")))
            if len(times):
                values = plain(times).view(np.int64)
                oldest, newest = int(values.min()), int(values.max())
        return RunRef(
            name,
            int(hashes[0]),
            int(hashes[-1]) + 1,
            age,
            level,
            batch.num_rows,
            len(data),
            checksum,
            deletes,
            oldest,
            newest,
        )

    def write_split(
        self,
        namer: Callable[[], str],
        batch: pa.RecordBatch,
        *,
        age: int,
        level: int,
        timed: bool,
        durable: bool = False,
        limit: int = SPLIT_BYTES,
    ) -> list[RunRef]:
        """Write a batch as files of at most ``limit`` bytes, never parting rows of one hash.

        Returns [] for no rows.
        """
        if batch.num_rows == 0:
            return []
        hashes = plain(batch.column("_hash"))
        pieces = math.ceil(batch.nbytes / limit)
        edges = {int(hashes.searchsorted(hashes[i * batch.num_rows // pieces])) for i in range(1, pieces)} - {
            0
        }
        if not edges:
            return [self.write(namer(), batch, age=age, level=level, timed=timed, durable=durable)]
        starts = [0, *sorted(edges)]
        out: list[RunRef] = []
        for start, stop in zip(starts, [*starts[1:], batch.num_rows], strict=True):
            part = batch.slice(start, stop - start)
            out += self.write_split(
                namer, part, age=age, level=level, timed=timed, durable=durable, limit=limit
            )
        return out

    def writer(
        self, namer: Callable[[], str], *, age: int, timed: bool, level: int = 0, durable: bool = False
    ) -> Callable[[pa.RecordBatch], list[RunRef]]:
        """What ``Table.flush`` takes: a function that writes a batch under the next names."""

        def write(batch: pa.RecordBatch) -> list[RunRef]:
            return self.write_split(namer, batch, age=age, level=level, timed=timed, durable=durable)

        return write

    def forget(self, names: list[str]) -> None:
        """Close files and delete their local copies; the store keeps its own."""
        for name in names:
            with self._lock:
                self._open.pop(name, None)
                self._verified.pop(name, None)
            if not self.store.is_local:
                with contextlib.suppress(OSError):
                    os.unlink(self._copy(name))

    def _trust(self, name: str, checksum: int) -> None:
        """Remember that a file need not be checked again.

        Those that nobody asked for longest are forgotten.
        """
        self._verified.pop(name, None)
        self._verified[name] = checksum
        while len(self._verified) > 8 * self._most:
            del self._verified[next(iter(self._verified))]

    def _sweep_copies(self) -> None:
        """Now and then, remove copies that nobody fetched or opened for long.

        Here nobody knows what is still needed.
        """
        now = time.time()
        if now < self._next_sweep or self.local_dir is None:
            return
        self._next_sweep = now + COPY_SECONDS / 6
        for where, _, names in os.walk(self.local_dir):
            for path in (os.path.join(where, name) for name in names):
                with contextlib.suppress(OSError):
                    if os.stat(path).st_mtime < now - COPY_SECONDS:
                        os.unlink(path)

    def _copy(self, name: str) -> str:
        assert self.local_dir is not None
        return os.path.join(self.local_dir, name)

    def _keep_copy(self, name: str, data: bytes | pa.Buffer) -> None:
        path = self._copy(name)
        try:
            parent = os.path.dirname(path)
            if parent not in self._made:
                os.makedirs(parent, exist_ok=True)
                self._made.add(parent)
            write_local(path, data)
            self._sweep_copies()
        except OSError as error:
            raise StateError(f"can't write the local copy {path}: {error.strerror or error}") from error

    def _load(self, ref: RunRef) -> Run:
        if self.store.is_local:
            path = self.store.local_path(ref.name)
            assert path is not None
            return self._map(path, ref)
        path = self._copy(ref.name)
        if os.path.exists(path):
            try:
                with contextlib.suppress(OSError):
                    os.utime(path)  # it is in use
                return self._map(path, ref)
            except StateError:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
        try:
            self._keep_copy(ref.name, self.store.read(ref.name))
        except FileNotFoundError:
            raise StateError(f"run {self.store.name(ref.name)} is missing") from None
        try:
            return self._map(path, ref)
        except StateError as error:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            raise StateError(f"run {self.store.name(ref.name)} is damaged in the store: {error}") from error

    def _map(self, path: str, ref: RunRef) -> Run:
        try:
            size = os.stat(path).st_size
        except FileNotFoundError:
            raise StateError(f"run {path} is missing") from None
        if size != ref.size:
            raise StateError(f"run {path} has {size} bytes where {ref.size} were written")
        try:
            with pa.memory_map(path) as file:
                data = file.read_buffer()
            if (
                self._verified.get(ref.name) != ref.checksum
                and xxhash.xxh3_64_intdigest(data) != ref.checksum
            ):
                raise StateError(f"run {path} is damaged: its checksum does not match its content")
            return _decode(data)
        except (pa.ArrowInvalid, OSError, KeyError) as error:
            raise StateError(f"run {path} can't be opened: {error}") from error


def _encode(batch: pa.RecordBatch) -> pa.Buffer:
    """The bytes of a run file: an Arrow file, then the index of its hashes, then where the first ends."""
    parts: list[Any] = []
    if batch.num_rows >= INDEXED_ROWS:
        parts = Index(plain(batch.column("_hash"))).parts()
    # The buffer is sized beforehand: one that grows would copy the data several times.
    room = pa.ipc.get_record_batch_size(batch) + batch.schema.serialize().size * 2 + 1024
    buffer = pa.allocate_buffer(room + sum(part.nbytes for part in parts))
    sink = pa.FixedSizeBufferWriter(buffer)
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    if parts:
        end = sink.tell()
        sink.write(bytes(-end % ALIGNED))
        for part in parts:
            sink.write(memoryview(part).cast("B"))
        sink.write(TRAILER.pack(end, MAGIC))
    size = sink.tell()
    sink.close()
    return buffer.slice(0, size)


def _decode(data: pa.Buffer) -> Run:
    view = memoryview(data)
    end, magic = TRAILER.unpack(view[-TRAILER.size :]) if len(view) > TRAILER.size else (0, b"")
    if magic != MAGIC:
        return Run(pa.ipc.open_file(data).get_batch(0))
    index = view[end + -end % ALIGNED : -TRAILER.size]
    return Run(pa.ipc.open_file(data.slice(0, end)).get_batch(0), index)
