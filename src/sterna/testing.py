"""An in-process twin of the engine, crash points, and a clock that the test moves.

``Twin`` runs the same freeze, route, extract, apply and commit code as on Spark, without Spark: thousands of epochs in seconds. It permutes the order in
which messages arrive and runs attempts twice at random (seeded), and checks at every epoch that each row was applied at the
worker that the configuration names. ``crashing(...)`` makes it fail at a named crash point; a new ``Twin`` on the same checkpoint goes on.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from sterna.control import Entry, EventTime, new_name, parse_when
from sterna.configuration import Target, as_target
from sterna.dataflow import Dataflow
from sterna.engine import crash
from sterna.engine.apply import apply
from sterna.engine.coordinator import Coordinator, Options
from sterna.engine.epoch import Combining, Placement, Tasks, plain_seats, run_epoch
from sterna.engine.extract import extract
from sterna.engine.messages import COMBINED, HELLO, RECEIPT, ROWS, Message, pack, unpack
from sterna.engine.route import route
from sterna.hashing import hash_keys, normalise
from sterna.operators.base import contiguous
from sterna.sinks.base import Sink
from sterna.state.manifest import Manifest
from sterna.state.runs import RunCache
from sterna.state.store import Store
from sterna.state.tables import Table

__all__ = ["Clock", "Crash", "Twin", "crashing"]

POINTS = crash.POINTS


class Crash(BaseException):
    """Raised at a crash point; not an ``Exception``, so that nothing handles it by accident."""


class Clock:
    """A clock that stands still until the test moves it."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def move(self, seconds: float) -> None:
        """Lets time pass."""
        self.now += seconds


@contextmanager
def crashing(point: str, epoch: int | None = None, times: int = 1) -> Iterator[None]:
    """Raises ``Crash`` at a crash point, the first ``times`` it is passed."""
    left = [times]

    def hook(name: str, at: int) -> None:
        if left[0] and name == point and epoch in (None, at):
            left[0] -= 1
            raise Crash(f"{name}@{at}")

    crash.set_hook(hook)
    try:
        yield
    finally:
        crash.set_hook(None)


Partition = pa.Table | pa.RecordBatch


class Twin:
    """A query without Spark.

    Args:
        flow: the dataflow.
        checkpoint: where the state goes.
        sink: where outputs go.
        options: as for a query.
        seed: for the order of arrival and for attempts that are run twice; ``None`` for neither.
        hosts: the host of a slot; state is linked between workers on one host.
        hashes: replaces the hash of keys, to force collisions.
    """

    def __init__(
        self,
        flow: Dataflow,
        checkpoint: str | Store,
        sink: Sink,
        options: Options | None = None,
        *,
        late: Sink | None = None,
        clock: Callable[[], float] | None = None,
        seed: int | None = 0,
        hosts: Callable[[int], str] = lambda _: "host",
        combine: bool = False,
        hashes: Callable[[Sequence[pa.Array]], np.ndarray] = hash_keys,
    ) -> None:
        self.flow = flow
        self.store = checkpoint if isinstance(checkpoint, Store) else Store.open(checkpoint)
        self.cache = RunCache(self.store, None)
        self.coordinator = Coordinator(
            self.store, flow, options or Options(), sink, late, clock or Clock()
        )
        sink.open(self.store, flow.output, None, self.coordinator.incarnation.number)
        if late is not None:
            late.open(self.store, _late_schema(flow), None, self.coordinator.incarnation.number)
        self._random = random.Random(seed) if seed is not None else None  # noqa: S311 - a test's choice of order
        self._hosts, self._hashes, self._combine = hosts, hashes, combine
        self.applied: list[tuple[int, int, int, np.ndarray]] = []

    @property
    def next_epoch(self) -> int:
        """The epoch that would run next."""
        return self.coordinator.last.epoch + 1

    def migrate(
        self,
        target: Target | Mapping[int, int] | Iterable[tuple[int, int]],
        at: None | int | str | EventTime = None,
        operator: str | None = None,
    ) -> None:
        """As ``Query.migrate``."""
        self.coordinator.submit(Entry(new_name(), as_target(target), parse_when(at), operator))

    def epoch(self, *sources: Partition | Sequence[Partition], number: int | None = None) -> Manifest | None:
        """Runs an epoch with these rows of each source (a table, or one for each partition)."""
        partitions = [
            (index, part)
            for index, parts in enumerate(sources)
            for part in (parts if isinstance(parts, list | tuple) else [parts])
        ]
        epoch = self.next_epoch if number is None else number

        def place(workers: tuple[int, ...]) -> Placement:
            return Placement(plain_seats(workers), lambda _, a, b: self._hosts(a) == self._hosts(b))

        combining = Combining(
            frozenset(
                edge.number
                for operator in self.flow.operators
                if operator.combined_schema() is not None
                for edge in operator.edges
                if edge.source is not None
            )
            if self._combine
            else frozenset()
        )
        return run_epoch(self.coordinator, epoch, place, lambda tasks: self._run(tasks, partitions), lambda: combining)

    def drain(self, limit: int = 100) -> int:
        """Runs empty epochs while there is something to do; how many it ran."""
        for count in range(limit):
            if not self.coordinator.wants_epoch():
                return count
            self.epoch(*[[] for _ in range(self.flow.sources)])
        raise AssertionError(f"still something to do after {limit} epochs")

    def state(self, operator: str, table: str | None = None) -> pa.Table:
        """The live state of an operator, all workers together, without hashes."""
        index = self.flow.index(operator)
        spec = next(s for s in self.flow.operators[index].tables if table in (None, s.name))
        parts = [
            Table(spec, tables[spec.name], self.cache).scan()
            for tables in self.coordinator.last.state[operator].values()
            if spec.name in tables
        ]
        whole = pa.concat_tables([spec.schema().empty_table(), *parts])
        names = [name for name in whole.column_names if name.startswith(("k.", "v."))]
        return whole.select(names).rename_columns([name[2:] for name in names])

    def close(self) -> None:
        """Lets another twin have the checkpoint."""
        self.coordinator.close()

    # The engine's job, in this process

    def _run(self, tasks: Tasks, partitions: list[tuple[int, Partition]]) -> list[dict[str, Any]]:
        exchange: dict[int, list[Message]] = defaultdict(list)
        for number, (source, rows) in enumerate(partitions):
            batches = list(self._prepared(source, rows))
            for message in self._twice(lambda b=batches, n=number: route(self.flow, tasks.routing, n, b)):
                exchange[message.slot].append(message)
        crash.crash_point("after-route", tasks.epoch)
        receipts: list[dict[str, Any]] = []
        for index, task in enumerate(tasks.applying):
            operator = self.flow.operators[index]
            for extraction in tasks.extractions[index]:
                sent = self._twice(
                    lambda e=extraction, o=operator, i=index: extract(
                        o, e, tasks.routing.seats[i], self.cache, tasks.horizons[i]
                    )
                )
                for message in sent:
                    exchange[message.slot].append(message)
            for worker in range(tasks.workers[index]):
                slot = task.seats[index][worker]
                exchange[slot].append(Message(slot, HELLO, index, worker))
            following: dict[int, list[Message]] = defaultdict(list)
            for slot, inbox in exchange.items():
                self._check_placement(tasks, index, inbox)
                for message in self._attempts(task, inbox):
                    if message.kind == RECEIPT:
                        receipts.append(message.json())
                    else:
                        following[message.slot].append(message)
            exchange = following
        return receipts

    def _prepared(self, source: int, rows: Partition) -> Iterator[pa.RecordBatch]:
        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        columns: dict[str, Any] = {"_source": pa.array(np.full(table.num_rows, source, np.int32))}
        for _, edge in self.flow.readers(source):
            keys = [normalise(contiguous(table.column(key))) for key in edge.keys]
            columns[f"_hash{edge.number}"] = pa.array(self._hashes(keys).view(np.int64))
            for item in edge.schema:
                column = contiguous(table.column(item.name))
                columns[self.flow.wire_name(source, item.name)] = normalise(column) if item.name in edge.keys else column
        whole = pa.table(columns)
        size = max(1, table.num_rows // (self._random.randint(1, 3) if self._random else 1))
        yield from whole.to_batches(max_chunksize=size)

    def _twice(self, attempt: Callable[[], Iterable[Message]]) -> list[Message]:
        """Runs an attempt, perhaps twice, and keeps one of the two."""
        messages = list(attempt())
        if self._random is not None and self._random.random() < 0.1:
            messages = list(attempt())
        return list(unpack(pack(messages)))

    def _attempts(self, task: Any, inbox: list[Message]) -> list[Message]:
        results = []
        for _ in range(2 if self._random is not None and self._random.random() < 0.15 else 1):
            arrived = list(inbox)
            if self._random is not None:
                self._random.shuffle(arrived)
            results.append(list(unpack(pack(apply(self.flow, task, self.cache, arrived)))))
        chosen = results[-1]
        if len(results) == 2:
            # Both receipts reach the driver, as when a speculative attempt is counted too.
            chosen = [*(m for m in results[0] if m.kind == RECEIPT and m.json()["operator"] == task.operator), *chosen]
        return chosen

    def _check_placement(self, tasks: Tasks, index: int, inbox: list[Message]) -> None:
        operator = self.flow.operators[index]
        configuration = tasks.routing.configurations[index]
        for message in inbox:
            if message.operator == index and message.kind in (ROWS, COMBINED):
                if message.kind == ROWS:
                    wire = next(e for e in operator.edges if e.number == message.number).wire
                else:
                    wire = pa.schema([pa.field("_hash", pa.uint64()), *(operator.combined_schema() or [])])
                hashes = message.batch(wire).column(0).to_numpy(zero_copy_only=False)
                owners = configuration.route(hashes)
                if not np.all(owners == message.slot):
                    raise AssertionError(f"epoch {tasks.epoch}: a row was sent to the wrong worker {message.slot}")


def _late_schema(flow: Dataflow) -> pa.Schema:
    edges = flow.timed_edges()
    return edges[0].schema if edges else pa.schema([])
