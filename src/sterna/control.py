"""The control stream: the durable log of wished changes, and what becomes of them when an epoch is frozen.

An entry is a small JSON file under ``control/`` in the checkpoint location, with a name of its own, so any number of writers may
append at once on any filesystem; the freeze puts them in order (by name: time, then a random part). An entry says which operators it is for
(all by default), the target, and when: as soon as possible, at an epoch, at a wall-clock time, or at an event time.

``freeze_entries`` is the pure heart: given the configurations at t-1, what is pending and what is new, it returns the configurations
at t, what stays pending and what was refused and why. It never half-applies an entry.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from sterna.configuration import Configuration, Target
from sterna.errors import InvalidInput, StateError, UpdateRefused
from sterna.state.store import Store

DIRECTORY = "control"
When = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One wish.

    Attributes:
        name: unique; entries are taken in the order of their names.
        target: the wanted configuration.
        when: ``{}`` for as soon as possible, ``{"epoch": n}``, ``{"wall": seconds}`` or ``{"event": microseconds}``.
        operator: the operator it is for; ``None`` for all.
        cause: why, in the writer's words.
    """

    name: str
    target: Target
    when: When = field(default_factory=dict)
    operator: str | None = None
    cause: str = "user"

    def due(self, epoch: int, now: float, watermark: int | None) -> bool:
        """Whether it is to be applied when ``epoch`` is frozen."""
        if "epoch" in self.when:
            return bool(self.when["epoch"] == epoch)
        if "wall" in self.when:
            return bool(self.when["wall"] <= now)
        if "event" in self.when:
            return watermark is not None and bool(self.when["event"] <= watermark)
        return True

    def wants_epoch(self, now: float, watermark: int | None) -> bool:
        """Whether an epoch should be run for it although no data comes; one that names an epoch wants all epochs until then."""
        return "epoch" in self.when or self.due(0, now, watermark)

    def surely_before(self, other: Entry) -> bool:
        """Whether this entry, which was there first, is applied before the other one, whatever happens."""
        kind = next(iter(self.when), None)
        return kind is None or (kind in other.when and bool(self.when[kind] <= other.when[kind]))

    def to_json(self) -> dict[str, Any]:
        """The form that is stored."""
        return {
            "name": self.name,
            "target": self.target.to_json(),
            "when": self.when,
            "operator": self.operator,
            "cause": self.cause,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Entry:
        """The inverse of ``to_json``; ``UpdateRefused`` if it is no entry."""
        try:
            operator = _checked_operator(data.get("operator"))
            when = _checked_when(dict(data["when"]))
            return cls(
                str(data["name"]),
                Target.from_json(data["target"]),
                when,
                operator,
                str(data.get("cause", "")),
            )
        except UpdateRefused:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UpdateRefused(f"this is not a control entry: {error!r}") from error


def _checked_operator(name: Any) -> str | None:
    if name is None or isinstance(name, str):
        return name
    raise UpdateRefused(f"an entry's operator must be a name, not {name!r}")


def _checked_when(when: When) -> When:
    if len(when) > 1 or not set(when) <= {"epoch", "wall", "event"}:
        raise UpdateRefused(f"an entry's time must be one of epoch, wall or event, not {when}")
    for kind, value in when.items():
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not number or (kind == "epoch" and value != int(value)):
            raise UpdateRefused(f"an entry's time must be a number, and an epoch a whole one, not {when}")
    return when


def new_name(now: float | None = None) -> str:
    """A unique name that sorts by time."""
    return f"{int((time.time() if now is None else now) * 1e6):018d}-{uuid.uuid4().hex[:12]}"


@dataclass(frozen=True)
class EventTime:
    """A moment in event time, for ``at=``."""

    microseconds: int


def event_time(moment: datetime | str) -> EventTime:
    """When the event-time frontier passes this moment.

    >>> event_time("1970-01-01T00:00:01Z")
    EventTime(microseconds=1000000)
    """
    return EventTime(int(_instant(moment) * 1e6))


def parse_when(at: int | str | datetime | EventTime | None) -> When:
    """The ``when`` of an entry from what users write: nothing, an epoch, a wall-clock time, or ``event_time(...)``."""
    if at is None:
        return {}
    if isinstance(at, EventTime):
        return {"event": at.microseconds}
    if isinstance(at, bool):
        raise InvalidInput(f"at={at!r} is neither an epoch nor a time")
    if isinstance(at, int):
        if at < 0:
            raise UpdateRefused(f"epoch {at} does not exist: epochs count from 0")
        return {"epoch": at}
    return {"wall": _instant(at)}


def _instant(moment: datetime | str) -> float:
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment.replace("Z", "+00:00"))
        except ValueError as error:
            raise InvalidInput(f"{moment!r} is not a time; write it as 2026-12-01T03:00:00Z") from error
    if not isinstance(moment, datetime):
        raise InvalidInput(f"at={moment!r} is neither an epoch nor a time")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return moment.timestamp()


@dataclass(frozen=True)
class Frozen:
    """The outcome of freezing the control stream at an epoch."""

    configurations: dict[str, Configuration]
    pending: list[Entry]
    applied: list[Entry]
    refused: list[tuple[Entry, str]]


def freeze_entries(
    epoch: int,
    configurations: Mapping[str, Configuration],
    pending: Iterable[Entry],
    fresh: Iterable[Entry],
    now: float,
    watermark: int | None,
) -> Frozen:
    """Applies what is due at ``epoch``, keeps what is not, refuses what can't be."""
    current = dict(configurations)
    waiting: list[Entry] = []
    applied: list[Entry] = []
    refused: list[tuple[Entry, str]] = []
    for entry in sorted([*pending, *fresh], key=lambda entry: entry.name):
        names = [entry.operator] if entry.operator is not None else list(current)
        if any(name not in current for name in names):
            refused.append(
                (entry, f"operator {entry.operator!r} does not exist; there are {sorted(current)}")
            )
        elif entry.when.get("epoch", epoch) < epoch:
            refused.append((entry, f"epoch {entry.when['epoch']} is already frozen; the next one is {epoch}"))
        elif not entry.due(epoch, now, watermark):
            # Bins are numbered as of now; if their number changes before the entry is due, it is rewritten then.
            waiting.append(replace(entry, target=entry.target.numbered(current[names[0]].bits)))
        else:
            try:
                resolved = {name: entry.target.resolve(current[name]) for name in names}
            except InvalidInput as error:
                refused.append((entry, str(error)))
                continue
            current.update(resolved)
            applied.append(entry)
    return Frozen(current, waiting, applied, refused)


class ControlStream:
    """The files under ``control/``; see the module's docstring."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def append(self, entry: Entry) -> None:
        """Makes an entry durable."""
        self._store.write_document(f"{DIRECTORY}/{entry.name}.json", entry.to_json())

    def names(self) -> list[str]:
        """The names of the entries that are there, in order."""
        return [name[: -len(".json")] for name in self._store.list(DIRECTORY) if name.endswith(".json")]

    def read(self, names: Iterable[str]) -> tuple[list[Entry], list[tuple[str, str]]]:
        """These entries, and (name, reason) for each that is damaged or malformed."""
        entries, bad = [], []
        for name in names:
            try:
                data = self._store.read_document(f"{DIRECTORY}/{name}.json")
                entries.append(replace(Entry.from_json(data), name=name))
            except FileNotFoundError:
                continue
            except (StateError, InvalidInput) as error:
                bad.append((name, str(error)))
        return entries, bad

    def remove(self, names: Iterable[str]) -> None:
        """Forgets entries whose outcome is committed."""
        self._store.delete([f"{DIRECTORY}/{name}.json" for name in names])
