"""When a migration may end, told by its last epochs.

Only epochs that came one after the other while it ran count: not the time for which it was paused, or over
before it was rolled back, nor the time for which the query was down. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise, takewhile

from sterna.errors import StateError
from sterna.migration import RUNNING, Migration
from sterna.state.manifest import Manifest
from sterna.strategies import built_in

LOOKED_AT = 8
"""So many epochs tell how fast it goes."""


@dataclass(frozen=True)
class Moment:
    """A migration at the end of an epoch.

    Attributes:
        epoch: the epoch.
        incarnation: the start of the query that ran it.
        time: when it ended.
        seconds: how long it took.
        migration: the migration; ``None`` where it had not begun.
    """

    epoch: int
    incarnation: int
    time: float
    seconds: float
    migration: Migration | None

    @classmethod
    def of(cls, manifest: Manifest, name: str) -> Moment | None:
        """From a manifest, if it tells of times."""
        facts = manifest.facts
        if "time" not in facts or "ms" not in facts:
            return None
        migration = next((one for one in manifest.migrations if one.name == name), None)
        return cls(manifest.epoch, manifest.incarnation, facts["time"], facts["ms"] / 1e3, migration)


class Moments:
    """The last epochs of a migration; each manifest is read once, as someone may ask many times a second."""

    def __init__(self, name: str, read: Callable[[int], Manifest]) -> None:
        self._name, self._read = name, read
        self._known: dict[int, Moment | None] = {}

    def until(self, last: Manifest) -> Iterable[Moment]:
        """Those up to the last epoch, the newest first, as far as they are retained."""
        epochs = range(last.epoch, max(last.epoch - LOOKED_AT, 0) - 1, -1)
        known = {epoch: self._known[epoch] for epoch in epochs if epoch in self._known}
        known[last.epoch] = Moment.of(last, self._name)
        self._known = known
        for epoch in epochs:
            if epoch not in known:
                try:
                    known[epoch] = Moment.of(self._read(epoch), self._name)
                except StateError:  # no longer retained, or damaged
                    known[epoch] = None
            moment = known[epoch]
            if moment is None:
                return
            yield moment


def seconds_left(moments: Iterable[Moment], left: int) -> float | None:
    """How long it takes to move so many bins more; ``None`` where nothing tells.

    ``moments`` are the last epochs, the newest first.
    """
    found = iter(moments)
    newest = next(found, None)
    if newest is None or newest.migration is None or newest.migration.status != RUNNING:
        return None
    now = newest.migration
    if not left or not now.steps:
        return None
    run = [newest, *takewhile(lambda one: _same_run(one, newest), found)]
    spans = [after.time - before.time for after, before in pairwise(run)]
    # Between two epochs the query may wait for its trigger, so what an epoch takes by itself is second best.
    epoch = sum(spans) / len(spans) if spans else newest.seconds
    first = run[-1].migration
    assert first is not None
    bins, steps = now.bins - first.bins, now.steps - first.steps
    # Both count what moved there and what moved back, so their ratio is that of a step in either direction.
    each = bins / steps if steps > 0 and bins > 0 else now.bins / now.steps
    coming = max(math.ceil(left / each), 1)
    a_step = 1.0 + now.gap
    if _may_wait(now):
        a_step = max(a_step, (newest.epoch - run[-1].epoch) / max(steps, 1))
    return epoch * (max(now.next_epoch - newest.epoch, 1) + (coming - 1) * a_step)


def _may_wait(migration: Migration) -> bool:
    """Whether its strategy may leave out epochs besides those between all steps."""
    return "latency" in migration.strategy or not built_in(migration.strategy)


def _same_run(one: Moment, newest: Moment) -> bool:
    """Whether a migration ran from an epoch until the newest, in one direction, without a break."""
    then, now = one.migration, newest.migration
    return (
        then is not None
        and now is not None
        and then.status == RUNNING
        and then.back == now.back
        and one.incarnation == newest.incarnation
    )
