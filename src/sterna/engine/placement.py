"""Where workers sit: slots pinned to executors where there are several, anywhere where there is one.

The *anchor* is a tiny DataFrame with one row and one partition a slot, cached on the executors. The exchange of an epoch is a join with it: Spark
runs a task where its cached partition is, so the tasks of a slot keep running on one executor. A slot's key is chosen so that Spark's hash partitioning
sends it to a partition of its own. When the number of slots changes, a new anchor is made, and asked where each slot
landed; every worker gets a seat on the executor that it had, where there is one.

Placement is a hint: if an executor is lost, Spark caches the slot elsewhere, and correctness never depends on any of this.
"""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from sterna.dataflow import Dataflow
from sterna.engine.epoch import Placement, Seats, plain_seats
from sterna.engine.where import executor
from sterna.state.manifest import Manifest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPREAD_SECONDS = 0.3
TRIES = 3


@dataclass(frozen=True)
class Slot:
    """A partition that is pinned to an executor."""

    key: int
    executor: str

    @property
    def host(self) -> str:
        """The host of the executor."""
        return self.executor.rsplit("/", 1)[0]


def _probe(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        where = pa.array([executor()] * batch.num_rows, pa.string())
        yield pa.RecordBatch.from_arrays([batch.column(0), where], names=["slot", "executor"])


def _spread(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    # Slow on purpose: while one executor is busy with a slot, the others get the next ones.
    for batch in batches:
        time.sleep(SPREAD_SECONDS)
        yield batch


class Anchor:
    """The cached DataFrame of a number of slots."""

    def __init__(self, spark: SparkSession, count: int) -> None:
        self.count = count
        self._spark = spark
        spark.conf.set("spark.sql.shuffle.partitions", str(count))
        candidates = spark.range(0, 40 * count + 40, 1, 1).select(F.col("id").cast("int").alias("slot"))
        rows = candidates.select("slot", F.pmod(F.hash("slot"), F.lit(count)).alias("partition")).collect()
        keys: dict[int, int] = {}
        for row in rows:
            keys.setdefault(row["partition"], row["slot"])
        chosen = sorted(keys.values())
        # Spark would take two anchors of one plan for the same cached data, so each has a mark of its own.
        marked = (
            candidates.where(F.col("slot").isin(chosen))
            .withColumn("mark", F.lit(uuid.uuid4().hex))
            .select("slot")
        )
        base = marked.repartition(count, "slot").mapInArrow(_spread, "slot int")
        # mapInArrow forgets how its input was partitioned; a join needs to know, so say it again (each row stays where it is).
        self.frame = base.repartition(count, "slot").persist()
        self.slots = [
            Slot(row["slot"], row["executor"])
            for row in self.frame.mapInArrow(_probe, "slot int, executor string").collect()
        ]

    def close(self) -> None:
        """Releases the slots."""
        self.frame.unpersist()


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

    def place(self, workers: tuple[int, ...], spark: SparkSession | None = None) -> Placement:
        """The seats of an epoch."""
        if self.pinned is None:
            return Placement(plain_seats(workers), lambda *_: True)
        anchor = self.pinned.anchor
        if anchor is None or anchor.count != max(workers):
            if anchor is not None:
                anchor.close()
            self.pinned.anchor = self._spread_anchor(spark or self._spark, max(workers))
            self._workers = ()
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
        """An anchor whose slots are spread evenly over the executors, as far as a few tries get that."""
        best: Anchor | None = None
        for _ in range(TRIES):
            anchor = Anchor(spark, count)
            if best is None or _uneven(anchor.slots) < _uneven(best.slots):
                best, anchor = anchor, best
            if anchor is not None:
                anchor.close()
            if _uneven(best.slots) <= 1:
                break
        assert best is not None
        return best

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
