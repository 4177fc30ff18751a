"""What happens inside a Python worker process before a task runs, and what it keeps between tasks.

Spark's worker daemon calls ``gc.collect()`` after every task; with pyarrow and pyspark loaded that visits
some hundred thousand objects and takes 30 to 50 ms, in which the process can't start the next task.
``settle`` moves all that is loaded into the permanent generation, which makes those collections cheap. It
does so again at the second, fourth, eighth … task, because PySpark loads more after the first, and then now
and then, because every file that is opened has some twenty objects: with 64 million keys a process has 1,500
files open. What is in that generation is never collected, so once in some thousand tasks it is emptied and
filled again. Memory that a task frees is kept for the next one (``state.memory``).
"""

from __future__ import annotations

import functools
import gc
import json
import pickle
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import xxhash
from pyspark import TaskContext, cloudpickle

from sterna.engine.apply import Applying, apply
from sterna.engine.crash import crash_point
from sterna.engine.extract import extract
from sterna.engine.messages import pack, unpack
from sterna.engine.plans import Extraction
from sterna.engine.route import Routing, route
from sterna.sinks.base import TaskSink
from sterna.state.background import BackgroundThread
from sterna.state.caches import cache_for
from sterna.state.memory import keep_freed
from sterna.state.runs import RunCache
from sterna.state.store import Store

SETTLE_EVERY = 64
"""After how many tasks what was made since is moved; before that, at each power of two."""
UNSETTLE_EVERY = 4096
"""After how many tasks everything is looked at again, which takes some 50 ms."""
Batches = Iterable[pa.RecordBatch]
Carried = tuple[tuple[Extraction, Mapping[str, "int | None"]], ...]
_tasks = 0
_shared: dict[int, Any] = {}


def settle() -> None:
    """Makes garbage collections between tasks cheap, and memory; see the module's docstring."""
    global _tasks  # noqa: PLW0603 - a count for the process
    _tasks += 1
    if _tasks == 1:
        keep_freed()
    if _tasks % UNSETTLE_EVERY == 0:
        gc.unfreeze()
    if _tasks % SETTLE_EVERY == 0 or (_tasks < SETTLE_EVERY and _tasks & (_tasks - 1) == 0):
        gc.collect()
        gc.freeze()


@functools.cache
def _background() -> BackgroundThread:
    return BackgroundThread()


class Shipped:
    """An object that every task of a query needs.

    It is pickled once at the driver, and unpickled once in each process.
    """

    def __init__(self, blob: bytes) -> None:
        self.blob = blob
        self.digest = xxhash.xxh3_64_intdigest(blob)

    def get(self) -> Any:
        """The object."""
        if self.digest not in _shared:
            _shared.clear()
            _shared[self.digest] = pickle.loads(self.blob)  # noqa: S301 - from our own driver
        return _shared[self.digest]


class _Task:
    """A function over Arrow batches with its arguments pickled.

    It is small, and cheap to pickle again with the plan.
    """

    def __init__(self, shared: Shipped, *arguments: Any) -> None:
        self.shared = shared
        self.arguments = pickle.dumps(arguments, protocol=pickle.HIGHEST_PROTOCOL)

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        flow, store, local = self.shared.get()
        arguments = pickle.loads(self.arguments)  # noqa: S301 - from our own driver
        settle()
        with _background().task():
            yield from pack(self.run(flow, cache_for(store, local), batches, *arguments))

    def run(self, flow: Any, cache: RunCache, batches: Batches, *arguments: Any) -> Iterator[Any]:
        """The messages of this task."""
        raise NotImplementedError


class RouteTask(_Task):
    """Routes one source partition; the first ones also send away state, each a part, where that is little."""

    def run(self, flow: Any, cache: RunCache, batches: Batches, *arguments: Any) -> Iterator[Any]:  # noqa: D102
        routing: Routing = arguments[0]
        carried: Carried = arguments[1]
        parts: int = arguments[2]
        context = TaskContext.get()
        partition = context.partitionId() if context else 0
        sent = int(partition < parts)
        if sent:
            for task, horizons in carried:
                operator, seats = flow.operators[task.operator], routing.seats[task.operator]
                yield from extract(operator, task, seats, cache, horizons, partition, parts)
        yield from route(flow, routing, partition, batches, sent)
        crash_point("after-route", routing.epoch)


class ExtractTask(_Task):
    """Sends away the state that is to be read at the rows (slots) that arrive."""

    def run(self, flow: Any, cache: RunCache, batches: Batches, *arguments: Any) -> Iterator[Any]:  # noqa: D102
        extractions: tuple[Extraction, ...] = arguments[0]
        by_row, seats, horizons = arguments[1:]
        for batch in batches:
            for row in batch.column(0).to_pylist():
                for position in by_row.get(row, []):
                    task = extractions[position]
                    yield from extract(flow.operators[task.operator], task, seats, cache, horizons)


class ApplyTask(_Task):
    """Applies an epoch at one slot."""

    def run(self, flow: Any, cache: RunCache, batches: Batches, *arguments: Any) -> Iterator[Any]:  # noqa: D102
        task: Applying = arguments[0]
        return apply(flow, task, cache, unpack(batches), _background())


class SinkTask:
    """Writes the rows of a DataFrame function that stands before the sink."""

    def __init__(self, sink: TaskSink, schema: pa.Schema, epoch: int, incarnation: int) -> None:
        self.sink, self.schema, self.epoch, self.incarnation = sink, schema, epoch, incarnation

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """The description of what was written, if anything was."""
        settle()
        context = TaskContext.get()
        partition = context.partitionId() if context else 0
        held = pa.Table.from_batches([batch.cast(self.schema) for batch in batches], self.schema)
        if held.num_rows:
            whole = pa.concat_batches(held.to_batches())
            part = self.sink.write(
                whole, self.epoch, partition, f"i{self.incarnation}-{uuid.uuid4().hex[:8]}"
            )
            yield pa.RecordBatch.from_arrays([pa.array([json.dumps(part)])], names=["part"])


def ship(flow: Any, store: Store, local: str | None) -> Shipped:
    """Packs what every task needs; folds travel by value, so they need not be importable by the workers."""
    return Shipped(cloudpickle.dumps((flow, store, local)))
