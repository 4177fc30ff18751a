"""Freeze and commit: what the driver decides before an epoch and concludes after it. Knows nothing of Spark.

With last manifest *m*: epoch *m+1* runs, *m* is acknowledged again (its sink is called only if *m* was
prepared but not committed), anything else is refused, because running it would lose or double data.

``freeze(t)`` reads the control stream, fixes every configuration and the watermark, and writes that down
before it returns; a replay gets the same decision. ``commit(t)`` takes the receipts: exactly one for each
expected (operator, worker), all of them in agreement about what the operators before them produced; then the
manifest is made durable (prepared), the sink publishes, and the epoch is marked committed. A failure before
*prepared* leaves the state at t-1; one after it leaves an epoch whose publication is repeated at the next
start.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sterna import asking, watermark
from sterna.configuration import Configuration
from sterna.control import ControlStream, Entry
from sterna.dataflow import Dataflow
from sterna.engine import frontiers, garbage, waiting
from sterna.engine.checkpoint import check_format, identify
from sterna.engine.conclusion import conclude, events_of
from sterna.engine.crash import crash_point
from sterna.engine.decision import Decision
from sterna.engine.fencing import Incarnation
from sterna.engine.observing import Observer
from sterna.engine.plans import OperatorPlan, plan_operator
from sterna.engine.receipts import Receipts, check_receipts
from sterna.engine.removal import Removal
from sterna.errors import CheckpointError, StateError, UpdateRefused
from sterna.freezing import NO_EVENT_TIME, Knowledge, freeze_entries
from sterna.history import History
from sterna.sinks.base import Sink
from sterna.state.manifest import Manifest, Manifests
from sterna.state.refs import RunRef
from sterna.state.store import Store
from sterna.statistics import Statistics


@dataclass(frozen=True)
class Options:
    """What a query is started with.

    Attributes:
        bins: number of bins at the very first start.
        workers: number of workers at the very first start.
        watermark_delay: how far the watermark stays behind the newest event time, in microseconds; ``None``:
            no watermark.
        idle_timeout: after so many seconds without rows an edge no longer holds the watermark back.
        share_host_state: whether workers on one host hand state over by reference.
        retain: for how many epochs back state is kept readable.
        fsync: whether local files are forced to disk, which a loss of power needs and the death of a process
            does not.
    """

    bins: int = 4096
    workers: int = 4
    watermark_delay: int | None = None
    idle_timeout: float | None = None
    share_host_state: bool = True
    retain: int = 16
    fsync: bool = False


class Coordinator:
    """One incarnation of a query, between epochs."""

    def __init__(
        self,
        store: Store,
        flow: Dataflow,
        options: Options,
        sink: Sink,
        late: Sink | None = None,
        clock: Callable[[], float] = time.time,
        removal: Removal | None = None,
    ) -> None:
        self.store, self.flow, self.options, self.sink, self.late, self.clock = (
            store,
            flow,
            options,
            sink,
            late,
            clock,
        )
        self.lock = threading.RLock()
        self._removal = removal
        # Before this start takes an incarnation, which would fence off the one that runs.
        check_format(store, flow)
        self.incarnation = Incarnation(store)
        self.manifests = Manifests(store, durable=options.fsync)
        self.control = ControlStream(store)
        self.history = History(store)
        self.flushing = False
        self._seen: set[str] = set()  # the entries that this incarnation has taken
        try:
            self.query = identify(store, flow, self.incarnation)
            self.last = self._last_manifest()
            self.committed = self.last.epoch < 0 or self.manifests.committed(self.last.epoch)
            self.garbage = garbage.Collector(
                store,
                self.manifests,
                self.last,
                options.retain,
                self.incarnation.number,
                store.delete if removal is None else removal.remove,
            )
        except BaseException:
            self.incarnation.release()
            raise
        self.observer = Observer(operator.name for operator in flow.operators)
        for epoch in self.manifests.epochs():
            with contextlib.suppress(StateError):
                self.observer.recall(self.manifests.read(epoch))
        # An earlier incarnation may have frozen an epoch that it did not commit.
        self.frozen = max([self.last.epoch, *self.manifests.epochs("frozen.json")])

    def _last_manifest(self) -> Manifest:
        epochs = self.manifests.epochs()
        if epochs:
            return self.manifests.read(epochs[-1])
        start = Configuration.initial(self.options.bins, self.options.workers)
        return Manifest(
            epoch=-1,
            incarnation=self.incarnation.number,
            configurations={operator.name: start for operator in self.flow.operators},
            state={operator.name: {} for operator in self.flow.operators},
            watermarks=[None] * (self.depth + 1),
            progress={
                edge.number: watermark.Progress(None, self.clock()) for edge in self.flow.timed_edges()
            },
        )

    @property
    def depth(self) -> int:
        """The greatest depth of an operator."""
        return max(self.flow.depth(i) for i in range(len(self.flow.operators)))

    def begin(self, epoch: int) -> bool:
        """Whether ``epoch`` is to be run.

        If it was prepared already, its publication is completed and it is not.
        """
        if epoch == self.last.epoch or (epoch == self.last.epoch + 1 and not self.committed):
            if not self.committed:
                self._publish(self.last)
            return epoch == self.last.epoch + 1
        if epoch == self.last.epoch + 1:
            return True
        raise CheckpointError(
            f"Spark asks for epoch {epoch}, but the last epoch in {self.store.name('')} is "
            f"{self.last.epoch}, so only {self.last.epoch} or {self.last.epoch + 1} can be: Spark's own "
            "checkpoint and Sterna's do not belong together"
        )

    def load_initial(self, state: dict[str, dict[int, dict[str, list[RunRef]]]]) -> None:
        """Takes state that was written before the first epoch."""
        self.last = replace(self.last, state={**self.last.state, **state})
        self.manifests.prepare(self.last)

    # Freeze

    def freeze(self, epoch: int) -> Decision:
        """Fixes everything about an epoch; see the module's docstring."""
        crash_point("before-freeze", epoch)
        with self.lock:
            stored = self.manifests.frozen(epoch)
            if stored is not None:
                decision = Decision.from_json(stored)
                self.observer.replayed()
            else:
                decision = self._decide(epoch)
                self.incarnation.check()
                self.manifests.freeze(epoch, decision.to_json())
            self.frozen = epoch
        crash_point("after-freeze", epoch)
        return decision

    def _decide(self, epoch: int) -> Decision:
        now = self.clock()
        marks = [self._next_watermark(now), *self.last.watermarks][: self.depth + 1]
        names = [name for name in self.control.names() if name not in set(self.last.consumed)]
        fresh, bad, unfinished = self.control.read(names, now)
        names = [name for name in names if name not in unfinished]
        pending = [Entry.from_json(entry) for entry in self.last.pending]
        # A store may carry out a writer's request twice, the second time after the entry was removed.
        seen = self._seen.union((entry.name for entry in pending), (one.name for one in self.last.migrations))
        fresh = [entry for entry in fresh if entry.name not in seen]
        frozen = freeze_entries(
            epoch,
            self.last.configurations,
            pending,
            fresh,
            now,
            marks[0],
            self.last.migrations,
            self._knowledge(),
        )
        events = [
            {"kind": "applied", "entry": entry.to_json(), "epoch": epoch, "time": now}
            for entry in frozen.applied
        ]
        events += [
            {"kind": "refused", "entry": entry.to_json(), "epoch": epoch, "time": now, "reason": reason}
            for entry, reason in frozen.refused
        ]
        events += [
            {"kind": "withdrawn", "entry": entry.to_json(), "epoch": epoch, "time": now, "reason": reason}
            for entry, reason in frozen.withdrawn
        ]
        events += [
            {"kind": "refused", "entry": {"name": name}, "epoch": epoch, "time": now, "reason": reason}
            for name, reason in bad
        ]
        return Decision(epoch, frozen.configurations, marks, frozen.pending, events, names, frozen.migrations)

    def _knowledge(self) -> Knowledge:
        last = self.last
        return Knowledge(
            self.query,
            lambda migration, name, current: self.observer.draw(migration, name, current, last),
            self.statistics,
            self.observer.before(),
            self.timed,
        )

    @property
    def timed(self) -> bool:
        """Whether event time passes at all."""
        return self.options.watermark_delay is not None and bool(self.flow.timed_edges())

    def statistics(self, operator: str) -> Statistics:
        """What is known about an operator's bins and the last epochs."""
        return self.observer.statistics(operator, self.last)

    def _next_watermark(self, now: float) -> int | None:
        if self.flushing:
            return watermark.END_OF_TIME
        if self.options.watermark_delay is None:
            return self.last.watermarks[0]
        return watermark.advance(
            self.last.progress,
            self.last.watermarks[0],
            self.options.watermark_delay,
            self.options.idle_timeout,
            now,
        )

    # Plan

    def plan(self, decision: Decision, same_host: Callable[[str, int, int], bool]) -> list[OperatorPlan]:
        """What each operator's workers start with.

        ``same_host(operator, source, target)`` tells where state may be linked.
        """
        plans = []
        for index, operator in enumerate(self.flow.operators):

            def linked(source: int, target: int, name: str = operator.name) -> bool:
                return self.options.share_host_state and same_host(name, source, target)

            plans.append(
                plan_operator(
                    index,
                    self.last.state[operator.name],
                    self.last.configurations[operator.name],
                    decision.configurations[operator.name],
                    [spec.name for spec in operator.tables],
                    linked,
                )
            )
        return plans

    def horizons(self, manifest: Manifest, index: int) -> dict[str, int | None]:
        """For each table of an operator the event time before which its rows have expired.

        That holds for the epoch after a manifest's, and for those who read its state.
        """
        return frontiers.horizons(self.flow, index, manifest.watermarks)

    def previous_frontier(self, index: int) -> int | None:
        """The event-time frontier of an operator at the last committed epoch."""
        return frontiers.frontier(self.flow, index, self.last.watermarks)

    # Commit

    def commit(
        self, decision: Decision, plans: list[OperatorPlan], receipts: list[dict[str, Any]], took: float = 0.0
    ) -> Manifest:
        """Concludes an epoch; see the module's docstring."""
        crash_point("after-job", decision.epoch)
        kept = check_receipts(self.flow, decision, receipts)
        self.incarnation.check()
        manifest = self._conclude(decision, plans, kept, took)
        # Before the manifest: after it, a crash would lose the events. Before it, a replay writes the same
        # ones again.
        events = events_of(self.flow, decision, plans, manifest, self.last.configurations)
        if events:
            self.history.record(decision.epoch, events)
        self.manifests.prepare(manifest)
        with self.lock:
            self.last, self.committed = manifest, False
            self.observer.remember(manifest)
            for index, operator in enumerate(self.flow.operators):
                self.observer.learn(operator.name, [r for (at, _), r in kept.items() if at == index])
        crash_point("after-prepare", decision.epoch)
        self._publish(manifest)
        return manifest

    def _publish(self, manifest: Manifest) -> None:
        for sink, parts in ((self.sink, "sink"), (self.late, "late")):
            if any(sink is None or not sink.takes(part) for part in manifest.outputs.get(parts, [])):
                raise CheckpointError(
                    f"the output of epoch {manifest.epoch} was prepared for another kind of {parts} than "
                    "this one: start the query once with that one, so that the epoch is published, and "
                    "change it then"
                )
        self.sink.publish(manifest.epoch, manifest.outputs.get("sink", []))
        if self.late is not None:
            self.late.publish(manifest.epoch, manifest.outputs.get("late", []))
        crash_point("after-publish", manifest.epoch)
        self.incarnation.check()
        self.manifests.commit(manifest.epoch, self.incarnation.number)
        with self.lock:
            self.committed = True
        crash_point("after-commit", manifest.epoch)
        self.control.remove(manifest.consumed)
        for epoch, outputs in self.garbage.collect(manifest):
            self.sink.forget(epoch, outputs.get("sink", []))
            if self.late is not None:
                self.late.forget(epoch, outputs.get("late", []))

    def _conclude(
        self, decision: Decision, plans: list[OperatorPlan], receipts: Receipts, took: float
    ) -> Manifest:
        self._seen.update(decision.consumed)
        listed = set(self.control.names()) if decision.consumed or self.last.consumed else set()
        consumed = [name for name in [*self.last.consumed, *decision.consumed] if name in listed]
        manifest = conclude(self.flow, self.last, decision, plans, receipts, self.clock(), took)
        facts = {**manifest.facts, "timed": self.timed}
        return replace(manifest, incarnation=self.incarnation.number, consumed=consumed, facts=facts)

    # Between epochs

    def submit(self, entry: Entry) -> None:
        """Takes a wish from this process: refused at once if it can't be."""
        with self.lock:
            last, frozen = self.last, self.frozen
        if "event" in entry.when and not self.timed:
            raise UpdateRefused(NO_EVENT_TIME)
        # Without the lock: a strategy of the user's own takes as long as it takes, and the freeze checks
        # again.
        before = asking.waiting(self.control, last)
        if entry.target is not None:
            entry = asking.check_migration(
                entry, last, frozen, before, lambda name: self.observer.statistics(name, last)
            )
        else:
            asking.check_control(entry, last, [one.name for one in before], self.history.outcomes)
        with self.lock:
            asking.check_epoch(entry, self.frozen)
            self.control.append(replace(entry, query=self.query, written=self.clock()))

    def wants_epoch(self) -> bool:
        """Whether there is something to do even if no data comes.

        That is due control entries, or notifications that would fire.
        """
        with self.lock:
            now = self.clock()
            return waiting.wants_epoch(self.last, self.control, now, self._next_watermark(now))

    def close(self) -> None:
        """Lets the next start have the checkpoint, once files that are to go are gone."""
        try:
            if self._removal is not None:
                self._removal.close()
        finally:
            self.incarnation.release()
