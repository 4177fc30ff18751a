"""What a controller sees of a query: the last epochs, the operators as they are now, and the time. Immutable.

Everything comes from manifests (``sample``) and from the history, so that the driver and another process that
reads the checkpoint see the same. The load of a worker is the rows that reached it, as counted. Where bins
have moved since, it is worked out from the rows of the bins as if these had been where they are now: a move
leaves no stale imbalance behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import pairwise, takewhile
from types import MappingProxyType

import numpy as np

from sterna.configuration import Configuration
from sterna.controllers.sample import Sample, Worked
from sterna.controllers.verdict import Said
from sterna.keys import Keys
from sterna.migration import Migration
from sterna.rehearsal import prices
from sterna.state.manifest import Manifest
from sterna.statistics import EpochCost, Floats, Statistics, TableRefs, bin_bytes


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

    @cached_property
    def _placed(self) -> int:
        return hash(self.configuration)

    def moved_since(self, epoch: Worked) -> bool:
        """Whether bins were elsewhere in an epoch than they are now."""
        return epoch.placed != self._placed

    @property
    def unmoved(self) -> int:
        """In how many of the last epochs in which rows reached it bins were where they are now."""
        seen = reversed(self.samples)
        return sum(1 for _ in takewhile(lambda one: not self.moved_since(one.operators[self.name]), seen))

    def rows(self, epochs: int) -> Floats:
        """About how many rows each bin gets in an epoch: the mean of the last ones."""
        here, seen = self.configuration, self.last(epochs)
        total = np.zeros(here.bins)
        for one in seen:
            total += one.by_bin(here.bins, None if self.moved_since(one) else here.owners)
        return total / max(len(seen), 1)

    def keys(self, epochs: int) -> Keys:
        """The heaviest keys and the rows that they get in an epoch: the mean of the last ones."""
        seen = self.last(epochs)
        total = reduce(Keys.after, (one.keys for one in seen), Keys.none())
        return total.scaled(1 / max(len(seen), 1))

    def loads(self, epochs: int) -> list[Floats]:
        """For each of the last epochs the rows that each worker got.

        Where bins have moved since, it is about how many it would have got as they are now.
        """
        return [self._load(one) for one in self.last(epochs)]

    def _load(self, epoch: Worked) -> Floats:
        here = self.configuration
        if not self.moved_since(epoch):
            return np.array(epoch.rows, np.float64)
        return np.asarray(np.bincount(here.owners, epoch.by_bin(here.bins), here.workers), np.float64)


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
        """For how many seconds an operator has been left alone.

        For so long nothing of it was moved, and this controller has said nothing about it.
        """
        times = [one.time for one in self.said if one.operator in (None, operator)]
        return self.now - max([*times, self.settled.get(operator, -np.inf)])

    @property
    def since_start(self) -> tuple[Sample, ...]:
        """The epochs since the query was last started."""
        return tuple(one for one in self.samples if one.incarnation == self.samples[-1].incarnation)

    def rate(self, seconds: float, until: float = 0.0) -> float | None:
        """How many rows a second came from the sources, in the ``seconds`` that end ``until`` seconds ago.

        ``None`` if no epoch was seen then.

        The rows of an epoch are taken to have come, evenly, between the end of the one before and its own.
        The time in which the query was stopped does not count.
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
        """How many milliseconds longer an epoch gets for each byte that moves in it.

        That is as the last moves were, or a guess.
        """
        known: Sequence[EpochCost] = [sample.cost for sample in self.samples]
        return prices(Statistics(np.zeros(1), np.zeros(1), known))[2]
