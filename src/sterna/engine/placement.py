"""Where workers sit: slots pinned to executors where there are several, anywhere where there is one.

The exchange of an epoch is a join with the anchor: Spark runs a task where its cached partition is, so the
tasks of a slot keep running on one executor. When the number of slots changes, a new anchor is made, and
asked where each slot landed; every worker gets a seat on the executor that it had, where there is one.

Executors come and go. A new anchor is also made when workers have run elsewhere than in their seats for some
epochs, when an executor without a slot has run tasks while others have several slots, and without the slots
of an executor that is drained. Placement is a hint: if an executor is lost, Spark caches the slot elsewhere,
and correctness never depends on any of this.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

from sterna.dataflow import Dataflow
from sterna.engine.anchor import Anchor, Slot
from sterna.engine.draining import held, is_one_of
from sterna.engine.epoch import Placement, Seats, plain_seats
from sterna.errors import InvalidInput
from sterna.state.manifest import Manifest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TRIES = 3
PATIENCE = 3
"""For how many epochs in a row slots must be badly placed before new ones are made."""


class Pinned:
    """The exchange through the anchor."""

    def __init__(self) -> None:
        self.anchor: Anchor | None = None

    def exchange(self, frame: DataFrame) -> DataFrame:
        """Sends each message to the executor of its slot."""
        assert self.anchor is not None
        joined = frame.join(self.anchor.frame.hint("shuffle_hash"), "slot")
        return joined.select(*frame.columns)

    def slots(self) -> DataFrame:
        """One row at each slot, to run something there."""
        assert self.anchor is not None
        return self.anchor.frame


class Placer:
    """Seats the workers of each epoch."""

    def __init__(self, spark: SparkSession, flow: Dataflow) -> None:
        self._spark, self._flow = spark, flow
        # With a single executor there is nothing to pin.
        master = spark.sparkContext.master or ""
        single = master.startswith("local") and not master.startswith("local-cluster")
        self.pinned = None if single else Pinned()
        self._seats: Seats = ()
        self._workers: tuple[int, ...] = ()
        self._known: dict[tuple[str, int], str] = {}
        self._leaving: dict[str, Callable[[], bool]] = {}
        self._avoided: frozenset[str] = frozenset()
        self._seen: list[frozenset[str]] = []
        self._tried: set[frozenset[str]] = set()
        self._renew = False

    def place(self, workers: tuple[int, ...], spark: SparkSession | None = None) -> Placement:
        """The seats of an epoch."""
        if self.pinned is None:
            return Placement(plain_seats(workers), lambda *_: True)
        anchor = self.pinned.anchor
        self._give_up_those_that_may_go()
        if anchor is None or anchor.count != max(workers) or self._renew:
            if anchor is not None:
                anchor.close()
            self.pinned.anchor = self._spread_anchor(spark or self._spark, max(workers))
            self._workers, self._renew = (), False
        if self._workers != workers:
            self._seats = tuple(
                seat([self._known.get((operator.name, w)) for w in range(count)], self._slots())
                for operator, count in zip(self._flow.operators, workers, strict=True)
            )
            self._workers = workers
        return Placement(self._seats, self._same_host)

    def _slots(self) -> list[Slot]:
        assert self.pinned is not None
        assert self.pinned.anchor is not None
        return self.pinned.anchor.slots

    def _spread_anchor(self, spark: SparkSession, count: int) -> Anchor:
        """An anchor whose slots are spread evenly over the executors that are not drained.

        They are as even as a few tries get them.
        """
        best: Anchor | None = None
        for _ in range(TRIES):
            with held(spark, self._avoided):
                anchor: Anchor | None = Anchor(spark, count)
            assert anchor is not None
            if best is None or self._badness(anchor) < self._badness(best):
                best, anchor = anchor, best
            if anchor is not None:
                anchor.close()
            if self._badness(best) <= (0, 1):
                break
        assert best is not None
        return best

    def _badness(self, anchor: Anchor) -> tuple[int, int]:
        drained = [slot for slot in anchor.slots if is_one_of(slot.executor, self._avoided)]
        return len(drained), _uneven(anchor.slots)

    def _same_host(self, operator: str, source: int, target: int) -> bool:
        index = self._flow.index(operator)
        hosts = {slot.key: slot.host for slot in self._slots()}
        before = self._known.get((operator, source))
        after = hosts.get(self._seats[index][target])
        return before is not None and after is not None and before.rsplit("/", 1)[0] == after

    def learn(self, manifest: Manifest) -> None:
        """Takes note of where workers ran."""
        for name, workers in manifest.hosts.items():
            for worker, where in workers.items():
                self._known[name, worker] = where
        if self.pinned is not None and self.pinned.anchor is not None and not self._renew:
            self._look(manifest)

    def _look(self, manifest: Manifest) -> None:
        """Makes new slots where executors that came are not used, or workers did not run where they sit.

        That must be so for some epochs. Slots are made once for the same executors.
        """
        at = {slot.key: slot.executor for slot in self._slots()}
        ran = {where for workers in manifest.hosts.values() for where in workers.values()}
        seats = zip(self._flow.operators, self._seats, strict=True)
        astray = any(
            self._known.get((operator.name, worker)) != at[slot]
            for operator, taken in seats
            for worker, slot in enumerate(taken)
        )
        others = {one for one in manifest.facts["executors"] if not is_one_of(one, self._avoided)}
        unused = others - set(at.values()) if len(set(at.values())) < len(at) else set()
        self._seen = [*self._seen, frozenset(ran | others)][-PATIENCE:] if astray or unused else []
        everyone = frozenset().union(*self._seen)
        if len(self._seen) == PATIENCE and everyone not in self._tried:
            self._tried.add(everyone)
            self._renew, self._seen = True, []

    def executors(self) -> dict[str, dict[str, int | bool]]:
        """The executors that have slots or have run workers.

        For each it tells how many slots, how many workers of all operators, and whether it is drained.
        """
        slots = [slot.executor for slot in self._slots()] if self.pinned and self.pinned.anchor else []
        ran = [
            self._known[operator.name, worker]
            for operator, count in zip(self._flow.operators, self._workers, strict=False)
            for worker in range(count)
            if (operator.name, worker) in self._known
        ]
        return {
            where: {
                "slots": slots.count(where),
                "workers": ran.count(where),
                "draining": is_one_of(where, self._leaving),
                "drained": is_one_of(where, self._avoided) and where not in slots,
            }
            for where in sorted({*slots, *ran, *self._avoided})
        }

    def to_be_emptied(self, executor: str) -> dict[str, list[int]]:
        """For each operator the workers that sit on an executor, or on any of a host.

        ``InvalidInput`` if it can't be emptied.
        """
        if self.pinned is None:
            raise InvalidInput(
                f"{executor!r} can't be drained: with one executor, there is no other to go to"
            )
        at = {slot.key: slot.executor for slot in self._slots()} if self.pinned.anchor else {}
        if not any(is_one_of(one, [executor]) for one in at.values()):
            raise InvalidInput(
                f"no slot is on executor {executor!r}; there are some on {sorted(set(at.values()))}"
            )
        gone = {*self._avoided, *self._leaving, executor}
        if all(is_one_of(one, gone) for one in at.values()):
            raise InvalidInput(f"{executor!r} can't be drained: no slot is on any other executor that stays")
        return {
            operator.name: [worker for worker, slot in enumerate(taken) if is_one_of(at[slot], [executor])]
            for operator, taken in zip(self._flow.operators, self._seats, strict=True)
        }

    def drain(self, executor: str, ready: Callable[[], bool]) -> None:
        """Has no slot on an executor, or on any of a host, from the epoch on that comes after ``ready``."""
        self._leaving[executor] = ready

    def wants_epoch(self) -> bool:
        """Whether slots are to be made anew as soon as there is an epoch."""
        return any(ready() for ready in list(self._leaving.values()))

    def _give_up_those_that_may_go(self) -> None:
        for executor, ready in list(self._leaving.items()):
            if ready():
                del self._leaving[executor]
                self._avoided |= {executor}
                self._renew = True

    def seat_of_leaver(self, operator: int, worker: int) -> int:
        """A slot from which the state of a worker is best read: its own, or one on its executor, or any."""
        if worker < self._workers[operator]:
            return self._seats[operator][worker]
        where = self._known.get((self._flow.operators[operator].name, worker))
        return next((slot.key for slot in self._slots() if slot.executor == where), self._slots()[0].key)

    def close(self) -> None:
        """Releases the slots."""
        if self.pinned is not None and self.pinned.anchor is not None:
            self.pinned.anchor.close()
            self.pinned.anchor = None


def _uneven(slots: list[Slot]) -> int:
    counts: dict[str, int] = defaultdict(int)
    for slot in slots:
        counts[slot.executor] += 1
    return max(counts.values()) - min(counts.values()) if counts else 0


def seat(known: list[str | None], slots: list[Slot]) -> tuple[int, ...]:
    """A slot for each worker: on the executor it had, if one is free there, otherwise any that is.

    >>> seat(["a", None, "b"], [Slot(10, "b"), Slot(11, "a"), Slot(12, "c")])
    (11, 12, 10)
    """
    free: dict[str, list[int]] = defaultdict(list)
    for slot in sorted(slots, key=lambda one: one.key):
        free[slot.executor].append(slot.key)
    seats = [free[where].pop(0) if where is not None and free.get(where) else None for where in known]
    # The fullest executors give their free slots first, so that newcomers spread.
    rest = sorted((-len(keys), key) for keys in free.values() for key in keys)
    spare = iter(key for _, key in rest)
    return tuple(next(spare) if place is None else place for place in seats)
