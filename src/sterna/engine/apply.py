"""Apply (S): one worker's epoch.

In: the messages of a slot. Installs arriving state, calls the operator once with the rows in their order
(``inbox``), writes one new run, compacts a bounded amount, and hands outputs to the next operators or to the
sink. Out: messages for the operators that follow, and a receipt, which is emitted only after everything it
names is durable. State at t is a pure function of state at t-1 and the input of t, and no file is ever
changed: a second attempt is harmless. Messages for other operators pass through untouched.
"""

from __future__ import annotations

import itertools
import math
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from sterna.configuration import Configuration
from sterna.dataflow import Dataflow
from sterna.engine import hashed
from sterna.engine import messages as kinds
from sterna.engine.crash import crash_point
from sterna.engine.inbox import Inbox
from sterna.engine.messages import Message, in_pieces, json_body
from sterna.engine.plans import Change, TableRefs
from sterna.engine.route import merge_stats, split
from sterna.engine.where import executor
from sterna.heat import count_cells, encode_heat
from sterna.keys import heaviest
from sterna.operators.base import (
    LATER,
    ORIGIN,
    Epoch,
    Hashes,
    Operator,
    Rows,
    empty_batch,
)
from sterna.sinks.base import TaskSink
from sterna.state.background import HURRY, Later, digest, offered, prepare
from sterna.state.compaction import compact, too_deep
from sterna.state.refs import EPOCH_AGES, RunRef, coalesce, drop, to_changes
from sterna.state.runs import RunCache
from sterna.state.tables import Table, TableSpec

COMPACT_ROWS = 1 << 16
PIECE = 3
"""How many times what an epoch has written is merged at once."""

PATIENCE = 2
"""How many times deeper than wanted runs may lie before an epoch merges them itself."""


@dataclass(frozen=True)
class Applying:
    """What the apply tasks of one operator need to know about one epoch.

    Attributes:
        refs: for each worker, what its tables start with.
        changes: for each worker that moves concern, what they did to its references.
        frontier: the operator's event-time frontier at this epoch, and the one before.
        configurations: for each operator, to address the outputs.
        seats: for each operator, the slot of each worker.
        horizons: for each table, the event time before which its rows have expired.
        fsync: whether files are forced to disk before the receipt is emitted.
    """

    operator: int
    epoch: int
    incarnation: int
    refs: dict[int, TableRefs]
    changes: dict[int, Change]
    frontier: int | None
    previous: int | None
    configurations: tuple[Configuration, ...]
    seats: tuple[tuple[int, ...], ...]
    horizons: dict[str, int | None]
    fsync: bool = False
    sink: TaskSink | None = None
    stage: TaskSink | None = None
    late: TaskSink | None = None


def apply(
    flow: Dataflow, task: Applying, cache: RunCache, incoming: Iterable[Message], later: Later | None = None
) -> Iterator[Message]:
    """One slot's epoch; see the module's docstring.

    Runs are merged in it, or ``later``, where that is possible.
    """
    operator = flow.operators[task.operator]
    inbox = Inbox(operator)
    for message in incoming:
        if message.operator == task.operator:
            inbox.receive(message)
        else:
            yield message
    if inbox.worker is None:
        return
    crash_point("before-apply", task.epoch)
    yield from _Apply(flow, task, operator, cache, inbox, inbox.worker, later).run()


class _Apply:
    """One worker's epoch, step by step."""

    def __init__(
        self,
        flow: Dataflow,
        task: Applying,
        operator: Operator,
        cache: RunCache,
        inbox: Inbox,
        worker: int,
        later: Later | None,
    ) -> None:
        # Asking a distant store whether there is an offer would take longer than merging.
        self.later = later if cache.store.is_local else None
        self.flow, self.task, self.operator, self.cache, self.inbox, self.worker = (
            flow,
            task,
            operator,
            cache,
            inbox,
            worker,
        )
        self.attempt = uuid.uuid4().hex[:8]
        self.files = 0
        self.digest = xxhash.xxh3_64()
        self.counts: dict[str, Any] = {}
        self.origins: Callable[[], Hashes] | None = None
        self.work: dict[str, Callable[[], None]] = {}

    def run(self) -> Iterator[Message]:
        """Installs, applies, flushes, sends, and reports, in this order."""
        began = time.perf_counter()
        tables = {spec.name: self._open(number, spec) for number, spec in enumerate(self.operator.tables)}
        output = self._fold(tables)
        applied = time.perf_counter()
        refs = {name: self._flush(table) for name, table in tables.items()}
        crash_point("after-flush", self.task.epoch)
        flushed = time.perf_counter()
        yield from self._send(output)
        crash_point("before-receipt", self.task.epoch)
        ended = time.perf_counter()
        self.counts["ms"] = [
            round((b - a) * 1e3, 2) for a, b in ((began, applied), (applied, flushed), (flushed, ended))
        ]
        yield Message(self._slot(), kinds.RECEIPT, body=json_body(self._receipt(refs, tables)))
        if self.later is not None:
            self.later.submit("close", self.cache.close_deleted)
            for name, work in self.work.items():
                self.later.submit(name, work)

    def _slot(self) -> int:
        return self.task.seats[self.task.operator][self.worker]

    def _namer(self, table: str) -> Any:
        def name() -> str:
            self.files += 1
            where = f"runs/{self.operator.name}/{table}-w{self.worker}-e{self.task.epoch}"
            return f"{where}-i{self.task.incarnation}-{self.attempt}-{self.files}.arrow"

        return name

    def _given(self, table: str) -> list[RunRef]:
        return list(self.task.refs[self.worker].get(table, []))

    def _offer(self, table: str, replaced: str, epoch: int) -> str:
        where = f"runs/{self.operator.name}/{table}-w{self.worker}-e{epoch}"
        return f"{where}-i{self.task.incarnation}-c{replaced}"

    def _relieved(self, table: str, refs: list[RunRef]) -> list[RunRef]:
        """What was merged after the last epoch in place of what it ended with."""
        if self.later is None:
            return refs
        change = self.task.changes.get(self.worker)
        replaced = digest(refs) if change is None else change.before[table]
        name = self._offer(table, replaced, self.task.epoch - 1)
        self.later.settle(name)
        offer = offered(self.cache.store, name)
        if offer is None:
            return refs
        if change is None:
            return offer
        return [*drop(offer, change.leaving), *change.arrivals.get(table, [])]

    def _open(self, number: int, spec: TableSpec) -> Table:
        refs = self._relieved(spec.name, self._given(spec.name))
        whole = self.inbox.state(number)
        if whole is not None:
            # Nothing else is where it goes, so it may lie as deep as anything here: what has moved is not
            # merged again from the top.
            deepest_level = max((ref.level for ref in refs), default=0)
            level = max(deepest_level, math.ceil(math.log(max(1, whole.num_rows / 50_000), 6)))
            installed = self.cache.write_split(
                self._namer(spec.name),
                whole,
                age=EPOCH_AGES * self.task.epoch,
                level=level,
                timed=spec.kind == "rows",
                durable=self.task.fsync,
            )
            self.counts["installed"] = self.counts.get("installed", 0) + sum(ref.size for ref in installed)
            refs = refs + installed
        return Table(spec, refs, self.cache, self.task.horizons.get(spec.name))

    def _fold(self, tables: dict[str, Table]) -> pa.Table | pa.RecordBatch | None:
        inputs = [self.inbox.rows(edge) for edge in self.operator.edges]
        combined = self.inbox.combined()
        due = None
        if self.operator.notifies and self.task.frontier is not None:
            due = tables[LATER].due(self.task.previous, self.task.frontier)
        here = self.task.configurations[self.task.operator]
        epoch = Epoch(
            self.task.epoch,
            self.worker,
            inputs,
            combined,
            tables,
            self.task.frontier,
            due,
            here.bits,
            lambda hashes: here.route(hashes) == self.worker,
        )
        reached = [rows.hashes for rows in (*inputs, combined) if rows is not None and rows.count]
        self.counts["rows"] = sum(len(hashes) for hashes in reached)
        if combined is not None and combined.count:
            self.counts["combined"] = combined.count
        if reached:
            hashes = reached[0] if len(reached) == 1 else np.concatenate(reached)
            self.counts["heat"] = encode_heat(count_cells(hashes, here.bits))
            self.counts["heavy"] = heaviest(hashes).to_json()
        output = self.operator.apply(epoch)
        self.origins = epoch.origins
        self.counts.update(epoch.counters)
        return output

    def _flush(self, table: Table) -> list[RunRef]:
        spec = table.spec
        fresh = table.flush(
            lambda batch: self.cache.write_split(
                self._namer(spec.name),
                batch,
                age=EPOCH_AGES * self.task.epoch + 1,
                level=0,
                timed=spec.kind == "rows",
                durable=self.task.fsync,
            )
        )
        for ref in fresh:
            self.digest.update(ref.checksum.to_bytes(8, "little"))
        written = sum(ref.rows for ref in fresh)
        self.counts["written"] = self.counts.get("written", 0) + written
        # A row is merged once for each level that it sinks, and the last level is merged with what joins it.
        factor = 2 + max((ref.level for ref in table.refs), default=0)
        budget = max(COMPACT_ROWS, factor * written)
        horizon = self.task.horizons.get(spec.name)
        # A deeper state takes more merging, but not more memory.
        piece = max(COMPACT_ROWS, PIECE * written)
        durable = self.task.fsync
        if self.later is not None:
            refs = coalesce([*table.refs, *fresh])
            depth = too_deep(refs, horizon)
            if depth <= PATIENCE:
                name = self._offer(spec.name, digest(refs), self.task.epoch)
                self.work[name] = partial(
                    prepare,
                    spec,
                    refs,
                    self.cache,
                    budget,
                    name,
                    horizon,
                    piece=piece,
                    durable=durable,
                    turn=partial(self.later.turn, depth > HURRY),
                )
                return refs
        refs, merged = compact(
            spec,
            [*table.refs, *fresh],
            self.cache,
            budget,
            self._namer(spec.name),
            horizon,
            piece_rows=piece,
            durable=durable,
        )
        self.counts["compacted"] = self.counts.get("compacted", 0) + merged
        return refs

    def _send(self, output: pa.Table | pa.RecordBatch | None) -> Iterator[Message]:
        whole = None
        if output is not None and output.num_rows:
            whole = output if isinstance(output, pa.RecordBatch) else _one_batch(output)
            hashed.add(self.digest, whole)
        self.counts["out"] = whole.num_rows if whole is not None else 0
        consumers = self.flow.consumers(self.task.operator)
        origin = _origin(self.origins, whole) if consumers and whole is not None else None
        for reader, edge in consumers:
            if whole is not None:
                rows = edge.rows(whole)
                rows = Rows(rows.hashes, rows.batch.add_column(0, ORIGIN, origin))
                for worker, chunk in split(rows, self.task.configurations[reader]):
                    slot = self.task.seats[reader][worker]
                    like = Message(slot, kinds.ROWS, reader, edge.number, self.worker)
                    yield from in_pieces(like, chunk.wire(), itertools.count())
        digest = self.digest.hexdigest()
        for reader in sorted({reader for reader, _ in consumers}):
            for slot in self.task.seats[reader][: self.task.configurations[reader].workers]:
                yield Message(slot, kinds.MARK, reader, self.task.operator, self.worker, body=digest.encode())
        epoch, attempt = self.task.epoch, f"i{self.task.incarnation}-{self.attempt}"
        if self.task.stage is not None and whole is not None:
            self.counts["stage"] = self.task.stage.write(whole, epoch, self.worker, attempt)
        last = self.task.operator == len(self.flow.operators) - 1
        if self.task.sink is not None and last and whole is not None:
            self.counts["part"] = self.task.sink.write(whole, epoch, self.worker, attempt)
        late = None if self.task.late is None else self.inbox.late()
        if self.task.late is not None and late is not None:
            self.counts["late_part"] = self.task.late.write(late, epoch, self.worker, attempt)

    def _receipt(self, refs: dict[str, Any], tables: dict[str, Table]) -> dict[str, Any]:
        receipt = {
            "operator": self.task.operator,
            "worker": self.worker,
            "attempt": self.attempt,
            "host": executor(),
            "pid": os.getpid(),
            "tables": {name: to_changes(some, self._given(name)) for name, some in refs.items()},
            "digest": self.digest.hexdigest(),
            "marks": self.inbox.marks,
            **self.counts,
        }
        if self.inbox.stats:
            receipt["routed"] = merge_stats(self.inbox.stats)
        if LATER in tables:
            done = self.task.frontier
            times = [
                ref.oldest if done is None else max(ref.oldest, done + 1)
                for ref in refs[LATER]
                if ref.oldest is not None and ref.newest is not None and (done is None or ref.newest > done)
            ]
            receipt["next_due"] = min(times, default=None)
        return receipt


def _origin(origins: Callable[[], Hashes] | None, output: pa.RecordBatch) -> pa.Array:
    return pa.array(np.zeros(output.num_rows, np.uint64) if origins is None else origins())


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    if len(batches) > 1:
        return pa.concat_batches(batches)
    return batches[0] if batches else empty_batch(table.schema)
