"""What the manifest of one epoch tells a controller. Immutable.

That is its rows, its duration, and what the workers of each operator did. For each operator: how many rows
reached each worker, how long it was busy with them, where in the hash space they were, and the heaviest keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from sterna.heat import Owners, counted, laid_out, parted
from sterna.keys import Keys
from sterna.state.manifest import Manifest
from sterna.statistics import EpochCost, Floats

PARTS = 1024
"""In how many parts of the hash space rows are told at least cost."""


@dataclass(frozen=True)
class Worked:
    """What the workers of one operator did in one epoch.

    Attributes:
        rows: how many rows reached each worker.
        busy: for how many seconds each worker was working on them.
        heat: where in the hash space the rows were, as the receipt of each worker tells it.
        keys: the heaviest keys.
        placed: tells configurations apart: it is the same as long as no bin moves.
    """

    rows: tuple[int, ...]
    busy: tuple[float, ...]
    heat: tuple[str | None, ...] = ()
    keys: Keys = field(default_factory=Keys.none)
    placed: int | None = None

    def by_bin(self, bins: int, owners: Owners | None = None) -> Floats:
        """About how many rows each bin got; all bins of a worker together as many as it got.

        Args:
            bins: how many bins there are.
            owners: the worker of each bin in that epoch, if that is known: it helps where bins are finer than
                what receipts tell.
        """
        cells = counted(self.heat, self.rows)
        if owners is not None and bins > cells.shape[1] and len(cells) == len(self.rows):
            return laid_out(cells, owners, self.keys)
        return parted(cells.sum(axis=0), bins, self.keys)

    @cached_property
    def by_part(self) -> Floats:
        """About how many rows each part of the hash space got, whichever workers they reached.

        It is worked out once: reading the receipts of many workers takes milliseconds.
        """
        rows = self.by_bin(PARTS)
        rows.setflags(write=False)
        return rows


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
                tuple(facts.get("heat", {}).get(name, ())),
                Keys.from_json(facts.get("heavy", {}).get(name)),
                hash(configuration),
            )
        return cls(cost, facts["time"], MappingProxyType(operators), manifest.incarnation)

    @property
    def workers(self) -> dict[str, int]:
        """How many workers each operator had."""
        return {name: len(one.rows) for name, one in self.operators.items()}
