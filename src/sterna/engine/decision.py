"""The decision of an epoch: what is fixed, durably, before anything of the epoch runs.

It is the same on every replay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sterna.configuration import Configuration
from sterna.control import Entry
from sterna.migration import Migration


@dataclass(frozen=True)
class Decision:
    """One epoch's freeze.

    Attributes:
        configurations: for each operator its configuration at this epoch.
        watermarks: the watermark at this epoch, the one before, and so on.
        pending: control entries that go on waiting.
        events: what the freeze did with control entries, for the history.
        consumed: names of the control entries it read.
        migrations: those under way, and those that ended lately, after the step of this epoch.
    """

    epoch: int
    configurations: dict[str, Configuration]
    watermarks: list[int | None]
    pending: list[Entry] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    consumed: list[str] = field(default_factory=list)
    migrations: list[Migration] = field(default_factory=list)

    def frontier(self, depth: int) -> int | None:
        """The event-time frontier of an operator that has ``depth`` operators before it."""
        return self.watermarks[min(depth, len(self.watermarks) - 1)]

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
        return {
            "epoch": self.epoch,
            "configurations": {name: c.to_json() for name, c in self.configurations.items()},
            "watermarks": self.watermarks,
            "pending": [entry.to_json() for entry in self.pending],
            "events": self.events,
            "consumed": self.consumed,
            "migrations": [migration.to_json() for migration in self.migrations],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Decision:
        """The inverse of ``to_json``."""
        return cls(
            epoch=data["epoch"],
            configurations={name: Configuration.from_json(c) for name, c in data["configurations"].items()},
            watermarks=list(data["watermarks"]),
            pending=[Entry.from_json(entry) for entry in data["pending"]],
            events=list(data["events"]),
            consumed=list(data["consumed"]),
            migrations=[Migration.from_json(one) for one in data["migrations"]],
        )
