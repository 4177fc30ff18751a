"""What the driver has seen of the last epochs, and the strategies that decide by it.

Held in memory: after a restart the durations and the heat of the retained epochs are read again.
A strategy is drawn from where it was left; if a decision was replayed rather than made, it begins again from
the configuration that the replay led to.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sterna import strategies
from sterna.configuration import Configuration
from sterna.drawing import Draws
from sterna.errors import InvalidInput
from sterna.heat import Heat, remembered
from sterna.migration import Migration, StrategyMissing
from sterna.rehearsal import REMEMBERED
from sterna.spread import Spread
from sterna.state.manifest import Manifest
from sterna.statistics import EpochCost, Recent, Statistics, bin_bytes

BEFORE = 64
"""How many quiet epochs tell what an epoch takes before a migration."""


class _Remembered:
    """The last epochs, in a new tuple with each: other threads go through the one that they have.

    Apart from the observer, so that a strategy's thread, which looks at them, does not keep that alive.
    """

    def __init__(self) -> None:
        self.epochs: tuple[EpochCost, ...] = ()

    def add(self, cost: EpochCost) -> None:
        self.epochs = (*self.epochs, cost)[-REMEMBERED:]

    def recent(self) -> Recent:
        return Recent(lambda: self.epochs)


class Observer:
    """See the module's docstring."""

    def __init__(self, operators: Iterable[str]) -> None:
        self._heat = {name: Heat() for name in operators}
        self._remembered = _Remembered()
        self._steps: dict[tuple[str, str, bool], Draws] = {}

    def remember(self, manifest: Manifest) -> None:
        """Takes note of what an epoch took."""
        cost = EpochCost.of(manifest.epoch, manifest.facts)
        if cost is not None:
            self._remembered.add(cost)
        under_way = {migration.name for migration in manifest.migrations if migration.active}
        self._steps = {key: steps for key, steps in self._steps.items() if key[0] in under_way}

    def recall(self, manifest: Manifest) -> None:
        """Takes note of an epoch of an earlier start: what it took, and where its rows went."""
        self.remember(manifest)
        for operator in self._heat:
            self.learn(operator, remembered(operator, manifest.facts))

    def learn(self, operator: str, receipts: list[dict[str, Any]]) -> None:
        """Takes note of where the rows of an operator went."""
        self._heat[operator].learn(receipts)

    def before(self) -> Spread:
        """What the last epochs without moves took."""
        return Spread.of([one.milliseconds for one in self._remembered.epochs if not one.bins][-BEFORE:])

    def statistics(self, operator: str, manifest: Manifest) -> Statistics:
        """What is known about an operator."""
        configuration = manifest.configurations[operator]
        return Statistics(
            bin_bytes(manifest.state.get(operator, {}), configuration),
            self._heat[operator].rows(configuration.bins),
            self._remembered.recent(),
            self._heat[operator].keys,
        )

    def replayed(self) -> None:
        """Forgets how far strategies were drawn."""
        self._steps.clear()

    def draw(
        self, migration: Migration, operator: str, current: Configuration, manifest: Manifest
    ) -> strategies.Step | None:
        """The next step of a migration; ``UpdateRefused`` if its strategy fails."""
        key = (migration.name, operator, migration.back)
        if key not in self._steps:
            known, target = self.statistics(operator, manifest).at(current.bins), migration.target[operator]
            try:
                self._steps[key] = Draws(migration.strategy, current, target, known)
            except InvalidInput as error:
                raise StrategyMissing(
                    f"{error}; register it and resume the migration, or cancel it"
                ) from error
        return self._steps[key].next()
