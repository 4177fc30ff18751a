"""An in-process twin of the engine, crash points, and a clock that the test moves.

``Twin`` runs the same freeze, route, extract, apply and commit code as on Spark, without Spark: thousands of
epochs in seconds. It permutes the seats of workers and the order in which messages arrive, runs attempts
twice at random (seeded), and checks at every epoch that each row was applied at the worker that the
configuration names. ``crashing(...)`` makes it fail at a named crash point; a new ``Twin`` on the same
checkpoint goes on. What the engine raises comes out as it is; ``AssertionError`` means that the engine broke
a promise.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias
from unittest import mock

import numpy as np
import pyarrow as pa

from sterna import strategies
from sterna.control import Entry, EventTime, new_name, parse_when
from sterna.controllers.running import Controllers
from sterna.controllers.verdict import Controller
from sterna.dataflow import Dataflow
from sterna.engine import crash
from sterna.engine.apply import Applying, apply
from sterna.engine.coordinator import Coordinator, Options
from sterna.engine.epoch import Combining, Placement, Seats, Tasks, plain_seats, run_epoch
from sterna.engine.extract import extract
from sterna.engine.messages import COMBINED, HELLO, RECEIPT, ROWS, Message, pack, unpack
from sterna.engine.route import route
from sterna.handle import MigrationHandle
from sterna.hashing import Hashes, hash_keys, normalise
from sterna.operators import base, handles
from sterna.operators.base import contiguous, hash_name
from sterna.sinks.base import Sink
from sterna.state.manifest import Manifest
from sterna.state.runs import RunCache
from sterna.state.spec import TableSpec
from sterna.state.store import Store
from sterna.state.tables import Table
from sterna.strategies import Strategy
from sterna.targets import Wish, as_target

__all__ = ["POINTS", "Clock", "Crash", "Twin", "crashing"]

POINTS = crash.POINTS
Partition: TypeAlias = pa.Table
Hasher = Callable[[Sequence[Any]], Hashes]


class Crash(BaseException):
    """Raised at a crash point; not an ``Exception``, so that nothing handles it by accident."""


class Clock:
    """A clock that stands still until the test moves it."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """The time."""
        return self.now

    def move(self, seconds: float) -> None:
        """Lets time pass."""
        self.now += seconds


@contextmanager
def crashing(point: str, epoch: int | None = None, *, after: int = 0) -> Iterator[list[str]]:
    """Raises ``Crash`` at a crash point, once, after passing it ``after`` times.

    Yields a list that tells whether it did.
    """
    if point not in POINTS:
        raise ValueError(f"there is no crash point {point!r}; there are {POINTS}")
    struck: list[str] = []
    left = [after]

    def hook(name: str, at: int) -> None:
        if struck or name != point or epoch not in (None, at):
            return
        if left[0]:
            left[0] -= 1
            return
        struck.append(f"{name}@{at}")
        raise Crash(struck[0])

    crash.set_hook(hook)
    try:
        yield struck
    finally:
        crash.set_hook(None)


class Twin:
    """A query without Spark.

    Args:
        flow: the dataflow.
        checkpoint: where the state goes.
        sink: where outputs go.
        options: as for a query.
        late: where late rows go.
        clock: what the time is.
        seed: for seats, the order of arrival, and attempts that are run twice; ``None`` for none of these.
        repeat: how often an attempt is run twice.
        hosts: the host of a slot; state is linked between workers on one host.
        combine: whether routers combine rows where they can.
        hashes: replaces the hash of keys everywhere, to force collisions.
        local: where copies of runs are kept, if the checkpoint is not on a local disk.
        controllers: asked after every epoch, before ``epoch`` returns.
        work: for how many seconds so many rows of an operator keep a worker busy; as long as they do by
            default.
        cores: on how many cores there would be tasks.
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
        repeat: float = 0.15,
        hosts: Callable[[int], str] = lambda _: "host",
        combine: bool = False,
        hashes: Hasher = hash_keys,
        local: str | None = None,
        controllers: Iterable[Controller] = (),
        work: Callable[[str, int], float] | None = None,
        cores: Callable[[], int | None] = lambda: None,
    ) -> None:
        self.flow = flow
        self.store = checkpoint if isinstance(checkpoint, Store) else Store.open(checkpoint)
        self.cache = RunCache(self.store, local)
        self.coordinator = Coordinator(self.store, flow, options or Options(), sink, late, clock or Clock())
        number = self.coordinator.incarnation.number
        sink.open(self.store, flow.output, None, number)
        if late is not None:
            late.open(self.store, flow.timed_edges()[0].schema, None, number)
        self._random = None if seed is None else random.Random(seed)
        self._later = None if self._random is None else _Sometime(self._random)
        self._repeat, self._hosts, self._hashes = repeat, hosts, hashes
        self._combining = _combinable(flow) if combine else Combining()
        self._known: dict[tuple[str, int], str] = {}
        self._work = work
        self.controllers = Controllers(controllers, self.coordinator, self.migrate, cores=cores)

    @property
    def next_epoch(self) -> int:
        """The epoch that would run next."""
        return self.coordinator.last.epoch + 1

    def migrate(
        self,
        target: Wish,
        strategy: Strategy | None = None,
        at: int | str | datetime | EventTime | None = None,
        operator: str | None = None,
        if_busy: str = "refuse",
        cause: str = "user",
    ) -> str:
        """As ``Query.migrate``, but returns the name of the migration."""
        written = strategies.to_json(strategy or strategies.all_at_once())
        entry = Entry(new_name(), as_target(target), parse_when(at), operator, cause, written, if_busy)
        self.coordinator.submit(entry)
        return entry.name

    def handle(self, name: str) -> MigrationHandle:
        """A migration; waiting for it runs empty epochs."""

        def wait(done: Callable[[], bool], _: float | None) -> bool:
            for _epoch in range(10_000):
                if done():
                    return True
                self.epoch(*[[] for _ in range(self.flow.sources)])
            return False

        return MigrationHandle(name, self.coordinator, self.coordinator.submit, wait)

    def epoch(self, *sources: Partition | Sequence[Partition], number: int | None = None) -> Manifest | None:
        """Runs an epoch with these rows of each source (a table, or one for each partition)."""
        partitions = [
            (index, part)
            for index, parts in enumerate(sources)
            for part in (parts if isinstance(parts, list | tuple) else [parts])
        ]
        epoch = self.next_epoch if number is None else number
        with _hashing(self._hashes):
            manifest = run_epoch(
                self.coordinator,
                epoch,
                self._place,
                lambda tasks: self._run(tasks, partitions),
                lambda: self._combining,
            )
        if manifest is not None:
            self.controllers.committed(manifest)
            self.controllers.ask()
        return manifest

    def drain(self, limit: int = 100) -> int:
        """Runs empty epochs while there is something to do; how many it ran."""
        for count in range(limit):
            if not self.coordinator.wants_epoch():
                return count
            self.epoch(*[[] for _ in range(self.flow.sources)])
        raise AssertionError(f"still something to do after {limit} epochs")

    def flush(self) -> int:
        """Ends the streams: lets all time pass, and drains."""
        self.coordinator.flushing = True
        return self.drain()

    def state(self, operator: str, table: str | None = None) -> pa.Table:
        """The live state of an operator, all workers together, without hashes.

        Checks that each row is where it should be.
        """
        index = self.flow.index(operator)
        spec = next(s for s in self.flow.operators[index].tables if table in (None, s.name))
        parts = [spec.schema().empty_table()]
        for worker in sorted(self.coordinator.last.state[operator]):
            live = self._scan(index, worker, spec)
            owners = self.coordinator.last.configurations[operator].route(live.column("_hash").to_numpy())
            if not np.all(owners == worker):
                raise AssertionError(
                    f"state of {operator!r} is at worker {worker}, but belongs to {set(owners.tolist())}"
                )
            parts.append(live)
        whole = pa.concat_tables(parts)
        names = [name for name in whole.column_names if name.startswith(("k.", "v."))]
        return whole.select(names).rename_columns([name[2:] for name in names])

    def _scan(self, index: int, worker: int, spec: TableSpec) -> pa.Table:
        manifest = self.coordinator.last
        refs = manifest.state[self.flow.operators[index].name][worker].get(spec.name, [])
        return Table(spec, refs, self.cache, self.coordinator.horizons(manifest, index)[spec.name]).scan()

    def close(self) -> None:
        """Lets another twin have the checkpoint."""
        self.coordinator.close()

    # The engine's job, in this process

    def _place(self, workers: tuple[int, ...]) -> Placement:
        seats = plain_seats(workers)
        if self._random is not None:
            slots = range(max(workers))
            seats = tuple(tuple(self._random.sample(slots, count)) for count in workers)

        def same_host(operator: str, source: int, target: int) -> bool:
            seat = seats[self.flow.index(operator)][target]
            return self._known.get((operator, source)) == self._hosts(seat)

        return Placement(seats, same_host)

    def _run(self, tasks: Tasks, partitions: list[tuple[int, Partition]]) -> list[dict[str, Any]]:
        exchange: dict[int, list[Message]] = defaultdict(list)
        for number, (source, rows) in enumerate(partitions):
            batches = list(self._prepared(source, rows))
            _deliver(exchange, self._twice(partial(route, self.flow, tasks.routing, number, batches)))
        crash.crash_point("after-route", tasks.epoch)
        receipts: list[dict[str, Any]] = []
        for index, task in enumerate(tasks.applying):
            operator, seats = self.flow.operators[index], tasks.routing.seats[index]
            for extraction in tasks.extractions[index]:
                send = partial(extract, operator, extraction, seats, self.cache, tasks.horizons[index])
                parts = self._random.randint(1, 3) if self._random is not None else 1
                for part in range(parts):
                    _deliver(exchange, self._twice(partial(send, part, parts)))
            _deliver(exchange, [Message(slot, HELLO, index, worker) for worker, slot in enumerate(seats)])
            following: dict[int, list[Message]] = defaultdict(list)
            for inbox in exchange.values():
                self._check_placement(tasks, index, inbox)
                sent = self._attempts(task, inbox)
                receipts += [message.json() for message in sent if message.kind == RECEIPT]
                _deliver(following, [message for message in sent if message.kind != RECEIPT])
            exchange = following
        self._learn(tasks.routing.seats)
        if self._work is not None:
            for receipt in receipts:
                busy = self._work(self.flow.operators[receipt["operator"]].name, receipt["rows"])
                receipt["ms"] = [busy * 1e3, 0.0, 0.0]
        return receipts

    def _learn(self, seats: Seats) -> None:
        for operator, taken in zip(self.flow.operators, seats, strict=True):
            self._known.update(
                {(operator.name, worker): self._hosts(slot) for worker, slot in enumerate(taken)}
            )

    def _prepared(self, source: int, table: Partition) -> Iterator[pa.RecordBatch]:
        """Rows as Spark hands them to the router."""
        columns: dict[str, Any] = {"_source": pa.array(np.full(table.num_rows, source, np.int32))}
        for _, edge in self.flow.readers(source):
            if edge.recipe is not None:
                for name in edge.columns:
                    columns.setdefault(self.flow.wire_name(source, name), contiguous(table.column(name)))
                continue
            keys = [normalise(contiguous(table.column(key))) for key in edge.keys]
            columns[hash_name(edge)] = pa.array(self._hashes(keys).view(np.int64))
            for item in edge.schema:
                column = contiguous(table.column(item.name))
                wire = self.flow.wire_name(source, item.name)
                columns[wire] = normalise(column) if item.name in edge.keys else columns.get(wire, column)
        size = max(1, table.num_rows // (self._random.randint(1, 3) if self._random else 1))
        yield from pa.table(columns).to_batches(max_chunksize=size)

    def _again(self) -> bool:
        return self._random is not None and self._random.random() < self._repeat

    def _twice(self, attempt: Callable[[], Iterable[Message]]) -> list[Message]:
        """Runs an attempt, perhaps twice, and keeps one of the two."""
        messages = list(attempt())
        if self._again():
            messages = list(attempt())
        return list(unpack(pack(messages)))

    def _attempts(self, task: Applying, inbox: list[Message]) -> list[Message]:
        results = []
        for _ in range(2 if self._again() else 1):
            arrived = list(inbox)
            if self._random is not None:
                self._random.shuffle(arrived)
            results.append(list(unpack(pack(apply(self.flow, task, self.cache, arrived, self._later)))))
        # Both receipts reach the driver, as when a speculative attempt is counted too.
        return [
            *(message for message in results[0] if message.kind == RECEIPT and len(results) > 1),
            *results[-1],
        ]

    def _check_placement(self, tasks: Tasks, index: int, inbox: list[Message]) -> None:
        operator = self.flow.operators[index]
        configuration, seats = tasks.routing.configurations[index], np.array(tasks.routing.seats[index])
        for message in inbox:
            if message.operator != index or message.kind not in (ROWS, COMBINED):
                continue
            wire = pa.schema([pa.field("_hash", pa.uint64()), *(operator.combined_schema() or [])])
            if message.kind == ROWS:
                wire = next(edge for edge in operator.edges if edge.number == message.number).wire
            hashes = message.batch(wire).column(0).to_numpy(zero_copy_only=False)
            if not np.all(seats[configuration.route(hashes)] == message.slot):
                raise AssertionError(
                    f"epoch {tasks.epoch}: a row of {operator.name!r} was sent to the wrong worker"
                )


class _Sometime:
    """Does what is asked of it at once, when it is asked about, or never, and sometimes only a part of it."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._waiting: dict[str, Callable[[], None]] = {}

    def submit(self, name: str, work: Callable[[], None]) -> None:
        self._waiting[name] = work
        if self._chance.random() < 0.5:
            self.settle(name)

    def settle(self, name: str) -> None:
        work = self._waiting.pop(name, None)
        if work is not None and self._chance.random() < 0.8:
            work()

    def turn(self, hurry: bool = False) -> AbstractContextManager[bool]:  # noqa: ARG002 - see Later
        return nullcontext(self._chance.random() < 0.8)


def _deliver(exchange: dict[int, list[Message]], messages: Iterable[Message]) -> None:
    for message in messages:
        exchange[message.slot].append(message)


def _combinable(flow: Dataflow) -> Combining:
    able = [operator for operator in flow.operators if operator.combined_schema() is not None]
    return Combining(
        frozenset(edge.number for operator in able for edge in operator.edges if edge.source is not None)
    )


@contextmanager
def _hashing(hashes: Hasher) -> Iterator[None]:
    """Puts another hash of keys wherever operators hash keys themselves."""
    with ExitStack() as stack:
        if hashes is not hash_keys:
            for module in (base, handles):
                stack.enter_context(mock.patch.object(module, "hash_keys", hashes))
        yield
