"""What happened to a query's configuration, and when.

There is a file for each epoch in which something did, under ``history/``. The latest ``KEEP`` of these are
kept, and as many of those that tell only of a step, and of those that tell what a controller said after an
epoch: a query that runs for years must not fill its checkpoint with its past, and a migration of many steps
must not drive out the others.
"""

from __future__ import annotations

from typing import Any

from sterna.errors import StateError
from sterna.state.manifest import Manifest
from sterna.state.store import Store

DIRECTORY = "history"
KEEP = 1000
CONTROLLER = "controller"
"""The kind of event that tells what a controller said."""

STEP, SAID = "-step.json", "-said.json"


class History:
    """The events of a query, oldest first."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def record(self, epoch: int, events: list[dict[str, Any]]) -> None:
        """Keeps the events of an epoch; doing so again after a crash changes nothing."""
        step = all(event["kind"] == "moved" for event in events)
        self._write(f"{epoch:012d}{STEP if step else '.json'}", events)

    def say(self, epoch: int, event: dict[str, Any]) -> None:
        """Keeps what a controller said after an epoch.

        There may be several such events, and they are read after those of the epoch.
        """
        before = [name for name in self._store.list(DIRECTORY) if name.startswith(f"{epoch:012d}.x")]
        number = int(before[-1][14:20]) + 1 if before else 0
        self._write(f"{epoch:012d}.x{number:06d}{SAID}", [event])

    def _write(self, name: str, events: list[dict[str, Any]]) -> None:
        self._store.write_document(f"{DIRECTORY}/{name}", {"events": events})
        names = self._store.list(DIRECTORY)
        for kind in (STEP, SAID, ""):
            old = [name for name in names if _kind(name) == kind][:-KEEP]
            self._store.delete(f"{DIRECTORY}/{name}" for name in old)

    def events(self) -> list[dict[str, Any]]:
        """All events; a damaged file is reported as an event, and hides no other."""
        out: list[dict[str, Any]] = []
        for name in self._store.list(DIRECTORY):
            try:
                out += self._store.read_document(f"{DIRECTORY}/{name}")["events"]
            except FileNotFoundError:  # driven out since it was listed
                continue
            except StateError as error:
                out.append({"kind": "damaged", "reason": str(error)})
        return out

    def damaged(self) -> list[str]:
        """What is wrong with each file that can't be read."""
        return [event["reason"] for event in self.events() if event["kind"] == "damaged"]

    def migrations(self) -> dict[str, dict[str, Any]]:
        """The last record of each migration that has ended, and what was refused, by name."""
        found: dict[str, dict[str, Any]] = {}
        for event in self.events():
            if event["kind"] == "migration":
                found[event["name"]] = {k: v for k, v in event.items() if k not in ("kind", "epoch")}
            elif event["kind"] in ("refused", "withdrawn"):
                entry = event["entry"]
                name = entry["name"]
                found[name] = {
                    "name": name,
                    **{key: entry[key] for key in ("cause", "strategy", "target") if entry.get(key)},
                    "status": "refused" if event["kind"] == "refused" else "cancelled",
                    "reason": event["reason"],
                    "started": event["time"],
                    "started_epoch": event["epoch"],
                }
        return found

    def said(self) -> list[dict[str, Any]]:
        """What controllers said, the oldest first."""
        return [event for event in self.events() if event["kind"] == CONTROLLER]

    def told(self, last: Manifest) -> list[dict[str, Any]]:
        """All of these and those of a manifest, in the order in which they began."""
        found = self.migrations() | {one.name: one.summary(last.configurations) for one in last.migrations}
        return sorted(found.values(), key=lambda one: (one["started"], one["name"]))

    def outcomes(self) -> dict[str, str]:
        """How each of them ended."""
        return {name: one["status"] for name, one in self.migrations().items()}


def _kind(name: str) -> str:
    return next((kind for kind in (STEP, SAID) if name.endswith(kind)), "")
