"""Migrations under way: what is kept of each, and how a freeze takes them one step further.

What is kept is kept with every manifest. A migration begins when its control entry is due and ends when all
its operators are at their target, or it is cancelled, or its strategy fails to get it there. It is part of
the manifest, so a restarted query goes on with it. ``advance`` is pure but for ``draw``, which asks the
strategy for the next step; the decision that it leads to is made durable before anything moves.

An operator is in at most one migration at a time. Operators are taken one after the other, but
``all_at_once`` takes all of them in one step. For some epochs after its end a migration stays in the
manifest, to see what epochs take then; its last record is in the history.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sterna.configuration import Configuration
from sterna.errors import UpdateRefused
from sterna.spread import Spread
from sterna.strategies import Step
from sterna.targets import Target

SETTLING = 32
"""For how many epochs after its end a migration is still watched."""

MOST_RANGES = 1000
RUNNING, PAUSED = "running", "paused"
Draw = Callable[["Migration", str, Configuration], "Step | None"]
Configurations = dict[str, Configuration]


@dataclass(frozen=True)
class Migration:
    """One migration.

    Attributes:
        name: the name of its control entry.
        wish: the target as it was asked for.
        strategy: the strategy as it is written down.
        cause: why, in the asker's words.
        status: ``running``, ``paused``, or how it ended: ``done``, ``cancelled``, ``rolled back``,
            ``failed``, ``merged``.
        origin: where it began, for each operator.
        target: where it leads, for each operator.
        led: where it led before it was rolled back.
        next_epoch: the earliest epoch of the next step.
        bins, bytes, steps: what has moved so far, and in how many steps.
        started, ended: (epoch, time).
        back: whether it leads back to where another migration, or this one, began.
        reason: why it ended, where that is not plain.
        before, during, after: what epochs took.
    """

    name: str
    wish: dict[str, Any]
    strategy: dict[str, Any]
    cause: str
    origin: Configurations
    target: Configurations
    started: tuple[int, float]
    status: str = RUNNING
    gap: int = 0
    next_epoch: int = 0
    bins: int = 0
    bytes: int = 0
    steps: int = 0
    ended: tuple[int, float] | None = None
    back: bool = False
    reason: str = ""
    led: Configurations = field(default_factory=dict)
    before: Spread = field(default_factory=Spread)
    during: Spread = field(default_factory=Spread)
    after: Spread = field(default_factory=Spread)

    @property
    def active(self) -> bool:
        """Whether it is not over."""
        return self.status in (RUNNING, PAUSED)

    @property
    def _wanted(self) -> Configurations:
        """Where it was to lead, whether that was taken back or not."""
        return self.led or self.target

    @property
    def changed(self) -> bool:
        """Whether anything is different for its having been; not so if it was rolled back."""
        wanted = any(self.origin[name] != target for name, target in self._wanted.items())
        return self.status != "rolled back" and (self.bins > 0 or wanted)

    def left(self, configurations: Mapping[str, Configuration]) -> int:
        """How many bins are not where they should be."""
        return sum(
            int(np.count_nonzero(configurations[name].at_bits(target.bits).owners != target.owners))
            for name, target in self.target.items()
            if name in configurations
        )

    def reached(self, configurations: Mapping[str, Configuration]) -> bool:
        """Whether all operators are at their target."""
        return all(configurations[name] == target for name, target in self.target.items())

    def moves(self, most: int = MOST_RANGES) -> dict[str, list[str]]:
        """Which bins it was to move for each operator, as ranges that people can read.

        Where the number of bins changes, they are numbered as parts of the larger one.
        """
        out = {}
        for name, target in self._wanted.items():
            bits = max(self.origin[name].bits, target.bits)
            before, after = self.origin[name].at_bits(bits).owners, target.at_bits(bits).owners
            pairs = np.where(before != after, before.astype(np.int64) * (1 << 32) + after, -1)
            edges = [0, *(np.flatnonzero(np.diff(pairs)) + 1).tolist(), len(pairs)]
            ranges = [
                f"{a}-{b - 1}: {before[a]} → {after[a]}"
                for a, b in itertools.pairwise(edges)
                if pairs[a] >= 0
            ]
            out[name] = ranges if len(ranges) <= most else [*ranges[:most], f"and {len(ranges) - most} more"]
        return out

    def over(self, status: str, epoch: int, now: float, reason: str = "") -> Migration:
        """The same, ended."""
        return replace(self, status=status, ended=(epoch, now), reason=reason)

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
        return {
            "name": self.name,
            "wish": self.wish,
            "strategy": self.strategy,
            "cause": self.cause,
            "origin": {name: c.to_json() for name, c in self.origin.items()},
            "target": {name: c.to_json() for name, c in self.target.items()},
            "started": list(self.started),
            "status": self.status,
            "gap": self.gap,
            "next_epoch": self.next_epoch,
            "bins": self.bins,
            "bytes": self.bytes,
            "steps": self.steps,
            "ended": None if self.ended is None else list(self.ended),
            "back": self.back,
            "reason": self.reason,
            "led": {name: c.to_json() for name, c in self.led.items()},
            "before": self.before.to_json(),
            "during": self.during.to_json(),
            "after": self.after.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Migration:
        """The inverse of ``to_json``."""
        values = dict(data)
        for name in ("origin", "target"):
            values[name] = {key: Configuration.from_json(c) for key, c in data[name].items()}
        # What earlier versions wrote has no such entry.
        values["led"] = {key: Configuration.from_json(c) for key, c in data.get("led", {}).items()}
        for name in ("before", "during", "after"):
            values[name] = Spread.from_json(data[name])
        values["started"] = (data["started"][0], data["started"][1])
        values["ended"] = None if data["ended"] is None else (data["ended"][0], data["ended"][1])
        return cls(**values)

    def summary(self, configurations: Mapping[str, Configuration] | None = None) -> dict[str, Any]:
        """What people want to know of it."""
        out: dict[str, Any] = {
            "name": self.name,
            "status": self.status,
            "back": self.back,
            "cause": self.cause,
            "strategy": self.strategy,
            "target": self.wish,
            "operators": {
                name: {
                    "from": placement(self.origin[name]),
                    "to": placement(target),
                }
                for name, target in self._wanted.items()
            },
            "steps": self.steps,
            "bins": self.bins,
            "bytes": self.bytes,
            "started_epoch": self.started[0],
            "started": self.started[1],
            "ended_epoch": None if self.ended is None else self.ended[0],
            "ended": None if self.ended is None else self.ended[1],
            "reason": self.reason,
            "latency": {
                "before": self.before.summary(),
                "during": self.during.summary(),
                "after": self.after.summary(),
            },
        }
        if configurations is not None and self.active:
            out["bins_left"] = self.left(configurations)
        return out


def placement(configuration: Configuration) -> dict[str, Any]:
    """A configuration as a summary tells of it."""
    return {
        "bins": configuration.bins,
        "workers": configuration.workers,
        "bins_by_worker": configuration.owned().tolist(),
    }


class StrategyMissing(UpdateRefused):
    """A strategy of the user's own is not there after a restart."""


def conflicting(migrations: Iterable[Migration], operators: Iterable[str]) -> list[Migration]:
    """The migrations under way that have one of these operators."""
    wanted = set(operators)
    return [one for one in migrations if one.active and set(one.target) & wanted]


def under_way(busy: Sequence[Migration]) -> str:
    """Why another one has to wait."""
    return (
        f"migration {busy[0].name} is under way: cancel it or wait for it, "
        "or have this one queued or merged (if_busy)"
    )


def check_rollback(
    migrations: Sequence[Migration], migration: Migration, configurations: Mapping[str, Configuration]
) -> None:
    """Refuses to undo what came after a migration along with it, or to undo what is undone.

    ``migrations`` are in the order in which they began. One that is done has to be where it led; of one that
    ended on the way, nobody may have changed anything since.
    """
    if migration.back and (migration.active or migration.status == "rolled back"):
        how = "is being" if migration.active else "has been"
        raise UpdateRefused(f"migration {migration.name} {how} rolled back already")
    if migration.active or migration.ended is None:
        return
    place = [one.name for one in migrations].index(migration.name)
    later, earlier = (
        [one for one in some if set(one.target) & set(migration.target)]
        for some in (migrations[place + 1 :], migrations[:place])
    )
    there = migration.status == "done" and migration.reached(configurations)
    for one in later:
        if one.active or one.changed:
            raise UpdateRefused(
                f"migration {one.name} came after {migration.name}: rolling back would undo both"
            )
    for one in earlier:
        if one.active or (not there and one.back and (one.ended or (0, 0.0))[0] >= migration.ended[0]):
            raise UpdateRefused(
                f"migration {one.name} was rolled back after {migration.name}: it would be undone once more"
            )
    if migration.status == "done" and not there:
        raise UpdateRefused(f"what migration {migration.name} led to has changed since")


def advance(
    migration: Migration, configurations: Configurations, epoch: int, now: float, draw: Draw
) -> tuple[Migration, Configurations]:
    """Takes a migration one step further, if it is time."""
    if migration.status != RUNNING or epoch < migration.next_epoch:
        return migration, configurations
    current = dict(configurations)
    moved = 0
    for name, target in migration.target.items():
        if current[name] == target:
            continue
        before = current[name]
        try:
            # More bins move nothing; where fewer join those of several workers, all go to the owner of the
            # first.
            if before.bits != target.bits:
                current[name] = before.at_bits(target.bits)
            if np.array_equal(current[name].owners, target.owners):
                current[name] = target
                moved += changed(before, target)
                continue
            current[name] = _stepped(current[name], target, draw(migration, name, current[name]))
        except StrategyMissing as error:
            return replace(migration, status=PAUSED, reason=str(error)), configurations
        except UpdateRefused as error:
            return migration.over("failed", epoch, now, str(error)), configurations
        moved += changed(before, current[name])
        if migration.strategy.get("name") != "all_at_once":
            break
    stepped = replace(
        migration,
        steps=migration.steps + bool(moved),
        bins=migration.bins + moved,
        next_epoch=epoch + 1 + (migration.gap if moved else 0),
    )
    if stepped.reached(current):
        stepped = stepped.over("rolled back" if stepped.back else "done", epoch, now)
    return stepped, current


def changed(before: Configuration, after: Configuration) -> int:
    """How many bins have another owner."""
    bits = max(before.bits, after.bits)
    return int(np.count_nonzero(before.at_bits(bits).owners != after.at_bits(bits).owners))


def _stepped(current: Configuration, target: Configuration, step: Step | None) -> Configuration:
    """The configuration after a step, which must lead towards the target or be empty."""
    if step is None:
        raise UpdateRefused("the strategy ended before the target was reached")
    workers = max(current.workers, target.workers)
    if not step:
        return Configuration(current.bits, workers, current.owners)
    wish = Target("explicit", bits=current.bits, assignment=tuple((int(b), int(w)) for b, w in step))
    after = wish.resolve(Configuration(current.bits, workers, current.owners))
    if np.count_nonzero(after.owners != target.owners) >= np.count_nonzero(current.owners != target.owners):
        raise UpdateRefused(
            f"the strategy makes no progress: it moved {len(step)} bins, and none of them is where the "
            "target wants it"
        )
    return target if np.array_equal(after.owners, target.owners) else after


def committed(
    migration: Migration, moved_bytes: int, milliseconds: float, epoch: int, now: float
) -> Migration:
    """The migration after an epoch that was run as decided."""
    if migration.ended is not None and migration.ended[0] < epoch:
        return replace(migration, after=migration.after.plus(milliseconds))
    if migration.ended is not None:
        migration = replace(migration, ended=(epoch, now))
    if not moving(migration, epoch):
        return migration  # paused or given up before this epoch: what moved in it is another's
    return replace(migration, bytes=migration.bytes + moved_bytes, during=migration.during.plus(milliseconds))


def moving(migration: Migration, epoch: int) -> bool:
    """Whether what moves in an epoch may be its doing."""
    over = migration.ended is not None and migration.ended[0] < epoch
    return not over and migration.status in (RUNNING, "done", "rolled back")


def settled(migration: Migration) -> bool:
    """Whether nothing more is to be learnt of it."""
    return not migration.active and migration.after.count >= SETTLING
