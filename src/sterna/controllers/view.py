"""What a controller sees of a query: the last epochs, the operators as they are now, and the time. Immutable.

Everything comes from manifests and from the history, so that the driver and another process that reads the checkpoint see the same. A *sample* is what the
manifest of one epoch tells: its rows, its duration, and for each operator how many rows reached each worker and each part of the hash space, and how
long each worker was busy. Loads are always counted as if the bins had been where they are now: a move leaves no stale imbalance behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from sterna.configuration import Configuration
from sterna.controllers.verdict import Said
from sterna.migration import Migration
from sterna.rehearsal import prices
from sterna.state.manifest import Manifest
from sterna.statistics import EpochCost, Floats, Heat, Statistics, TableRefs, bin_bytes


@dataclass(frozen=True)
class Worked:
    """What the workers of one operator did in one epoch.

    Attributes:
        rows: how many rows reached each worker.
        busy: for how many seconds each worker was working on them.
        heat: where in the hash space the rows were, as receipts tell it.
    """

    rows: tuple[int, ...]
    busy: tuple[float, ...]
    heat: tuple[str, ...] = ()

    def by_bin(self, bins: int) -> Floats:
        """About how many rows each bin got."""
        heat = Heat()
        heat.learn({"heat": text} for text in self.heat)
        return heat.rows(bins)


@dataclass(frozen=True)
class Sample:
    """One committed epoch.

    Attributes:
        cost: its number, its duration, the rows of its sources, what moved in it.
        time: when it ended, by the driver's clock.
        operators: what the workers of each operator did.
        incarnation: in which start of the query it was.
    """

    cost: EpochCost
    time: float
    operators: Mapping[str, Worked]
    incarnation: int = 0

    @classmethod
    def of(cls, manifest: Manifest) -> Sample | None:
        """What a manifest tells; ``None`` if it is that of no epoch."""
        facts = manifest.facts
        cost = EpochCost.of(manifest.epoch, facts)
        if cost is None:
            return None
        operators = {}
        for name, configuration in manifest.configurations.items():
            told = [facts["workers"][f"{name}/{worker}"] for worker in range(configuration.workers)]
            operators[name] = Worked(
                tuple(rows for rows, *_ in told),
                tuple(sum(ms) / 1e3 for *_, ms in told),
                tuple(facts["heat"].get(name, ())),
            )
        return cls(cost, facts["time"], MappingProxyType(operators), manifest.incarnation)

    @property
    def workers(self) -> dict[str, int]:
        """How many workers each operator had."""
        return {name: len(one.rows) for name, one in self.operators.items()}


@dataclass(frozen=True)
class Standing:
    """One operator as it is now.

    Attributes:
        name: its name.
        configuration: where its bins are.
        samples: the epochs in which rows reached it, the newest last.
        state: the references of its workers, from which sizes are estimated.
    """

    name: str
    configuration: Configuration
    samples: tuple[Sample, ...] = ()
    state: Mapping[int, TableRefs] = field(default_factory=dict)

    @cached_property
    def bytes(self) -> Floats:
        """About how many bytes of state each bin has."""
        sizes = bin_bytes(self.state, self.configuration)
        sizes.setflags(write=False)
        return sizes

    def last(self, epochs: int) -> tuple[Worked, ...]:
        """What its workers did in the last epochs in which rows reached it, the newest last."""
        return tuple(sample.operators[self.name] for sample in self.samples[-epochs:])

    def rows(self, epochs: int) -> Floats:
        """About how many rows each bin gets in an epoch: the mean of the last ones."""
        seen = self.last(epochs)
        total = np.zeros(self.configuration.bins)
        for one in seen:
            total += one.by_bin(self.configuration.bins)
        return total / max(len(seen), 1)

    def loads(self, epochs: int) -> list[Floats]:
        """For each of the last epochs the rows that each worker would get as bins are now."""
        here = self.configuration
        rows = [one.by_bin(here.bins) for one in self.last(epochs)]
        return [np.asarray(np.bincount(here.owners, one, here.workers), np.float64) for one in rows]


@dataclass(frozen=True)
class View:
    """What a controller gets.

    Attributes:
        now: the time, by the driver's clock.
        samples: the last epochs, the newest last.
        operators: the operators as they are now, by name.
        migrations: those under way.
        settled: when the last migration of an operator ended, where one did.
        said: what this controller said before, the newest last.
        backlog: how many rows wait at the sources, where they tell.
        cores: on how many cores Spark could run tasks, and since when; ``None`` where that is not known.
    """

    now: float
    samples: tuple[Sample, ...]
    operators: Mapping[str, Standing]
    migrations: tuple[Migration, ...] = ()
    settled: Mapping[str, float] = field(default_factory=dict)
    said: tuple[Said, ...] = ()
    backlog: int | None = None
    cores: tuple[int, float] | None = None

    @classmethod
    def of(
        cls,
        last: Manifest,
        samples: Iterable[Sample],
        now: float,
        *,
        settled: Mapping[str, float] | None = None,
        backlog: int | None = None,
        cores: tuple[int, float] | None = None,
    ) -> View:
        """A query as of its last manifest."""
        seen = tuple(samples)
        operators = {
            name: Standing(
                name,
                configuration,
                tuple(one for one in seen if name in one.operators and any(one.operators[name].rows)),
                last.state.get(name, {}),
            )
            for name, configuration in last.configurations.items()
        }
        return cls(
            now,
            seen,
            MappingProxyType(operators),
            tuple(one for one in last.migrations if one.active),
            MappingProxyType(dict(settled or {})),
            (),
            backlog,
            cores,
        )

    @property
    def workers(self) -> dict[str, int]:
        """How many workers each operator has."""
        return {name: one.configuration.workers for name, one in self.operators.items()}

    def moving(self, operator: str | None = None) -> Migration | None:
        """The migration of an operator, or of any, that is under way."""
        return next((one for one in self.migrations if operator is None or operator in one.target), None)

    def quiet(self, operator: str) -> float:
        """For how many seconds nothing was moved of an operator, and this controller has said nothing about it."""
        times = [one.time for one in self.said if one.operator in (None, operator)]
        return self.now - max([*times, self.settled.get(operator, -np.inf)])

    @property
    def since_start(self) -> tuple[Sample, ...]:
        """The epochs since the query was last started."""
        return tuple(one for one in self.samples if one.incarnation == self.samples[-1].incarnation)

    def rate(self, seconds: float, until: float = 0.0) -> float | None:
        """How many rows a second came from the sources, in the ``seconds`` that end ``until`` seconds ago; ``None`` if no epoch was seen then.

        The rows of an epoch are taken to have come, evenly, between the end of the one before and its own. The time in which the query was
        stopped does not count.
        """
        end, begin = self.now - until, self.now - until - seconds
        samples = self.since_start
        if len(samples) < 2 or samples[0].time >= end:
            return None
        begin = max(begin, samples[0].time)
        rows = 0.0
        for before, sample in pairwise(samples):
            overlap = min(end, sample.time) - max(begin, before.time)
            if overlap > 0:
                rows += sample.cost.rows * overlap / (sample.time - before.time)
        return rows / (end - begin)

    def period(self) -> float:
        """How many seconds lie between the ends of two epochs, in the middle."""
        gaps = [after.time - before.time for before, after in pairwise(self.samples)]
        took = [sample.cost.milliseconds / 1e3 for sample in self.samples]
        return max(float(np.median(gaps or took or [0.0])), 1e-3)

    def price(self) -> float:
        """How many milliseconds longer an epoch gets for each byte that moves in it: as the last moves were, or a guess."""
        known: Sequence[EpochCost] = [sample.cost for sample in self.samples]
        return prices(Statistics(np.zeros(1), np.zeros(1), known))[1]
