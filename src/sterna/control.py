"""The control stream: the durable log of wished changes, and what becomes of them when an epoch is frozen.

An entry is a small JSON file under ``control/`` in the checkpoint location, with a name of its own, so any
number of writers may append at once on any filesystem; the freeze puts them in order (by name: time, then a
random part). An entry asks for a migration: which operators it is for (all by default), the target, the
strategy, and when: as soon as possible, at an epoch, at a wall-clock time, or at an event time. Or it asks to
pause, resume, cancel or roll back a migration. It may be signed for one query, whose driver refuses entries
signed for others.
"""

from __future__ import annotations

import contextlib
import math
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

import numpy as np

from sterna.errors import DamagedError, InvalidInput, StateError, UpdateRefused, short
from sterna.state.store import Store
from sterna.targets import Target, check_keys

DIRECTORY = "control"
FIELDS = (
    *("name", "action", "target", "migration", "strategy", "if_busy", "when", "operator", "cause", "query"),
    "written",
)
"""What an entry may have."""
ACTIONS = ("migrate", "pause", "resume", "cancel", "rollback")
IF_BUSY = ("refuse", "queue", "merge")
LARGEST = 32 << 20
"""How many bytes an entry may have: a map of 2^20 bins takes half of that."""

LONGEST_CAUSE = 10_000
"""How many letters the reason for an entry may have: every manifest carries it while the migration lasts."""

NEAR_EPOCHS = 64
"""How many epochs are run without data to come to the one that an entry names.

A later one has to be brought by data.
"""

CLOCKS_APART = 60.0
"""By how many seconds a writer's clock may be ahead of the driver's."""

UNFINISHED_SECONDS = 5.0
"""For how long an entry that looks damaged may still be being written."""

UNREADABLE_SECONDS = 60.0
"""For how long an entry that can't be read is tried again: a store may not answer for a moment."""

RETRY_SECONDS = 1.0
"""How long nobody makes an epoch happen for an entry that could not be read."""

When = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One wish.

    Attributes:
        name: unique; entries are taken in the order of their names.
        target: the wanted configuration.
        when: ``{}`` for as soon as possible, ``{"epoch": n}``, ``{"wall": seconds}`` or ``{"event":
            microseconds}``.
        operator: the operator it is for; ``None`` for all.
        cause: why, in the writer's words.
        strategy: how to move, as ``strategies.to_json`` writes it.
        if_busy: what to do if one of its operators is being migrated: ``refuse``, ``queue`` or ``merge``.
        action: ``migrate``, or what to do with ``migration``.
        migration: the name of another entry's migration.
        query: the identity of the query it is for; ``None`` for whoever finds it.
        written: the writer's clock.
    """

    name: str
    target: Target | None
    when: When = field(default_factory=dict)
    operator: str | None = None
    cause: str = "user"
    strategy: dict[str, Any] = field(default_factory=lambda: {"name": "all_at_once"})
    if_busy: str = "refuse"
    action: str = "migrate"
    migration: str | None = None
    query: str | None = None
    written: float | None = None

    def due(self, epoch: int, now: float, watermark: int | None) -> bool:
        """Whether it is to be applied when ``epoch`` is frozen."""
        if "epoch" in self.when:
            return bool(self.when["epoch"] <= epoch)
        if "wall" in self.when:
            return bool(self.when["wall"] <= now)
        if "event" in self.when:
            return watermark is not None and bool(self.when["event"] <= watermark)
        return True

    def wants_epoch(self, epoch: int, now: float, watermark: int | None) -> bool:
        """Whether this epoch should be run for it although no data comes.

        One that names an epoch wants some until then.
        """
        return self.due(epoch + NEAR_EPOCHS if "epoch" in self.when else epoch, now, watermark)

    def surely_before(self, other: Entry) -> bool:
        """Whether this entry, which was there first, is applied before the other one, whatever happens."""
        kind = next(iter(self.when), None)
        return kind is None or (kind in other.when and bool(self.when[kind] <= other.when[kind]))

    def to_json(self) -> dict[str, Any]:
        """The form that is stored."""
        return {
            "name": self.name,
            "action": self.action,
            "target": None if self.target is None else self.target.to_json(),
            "migration": self.migration,
            "strategy": self.strategy,
            "if_busy": self.if_busy,
            "when": self.when,
            "operator": self.operator,
            "cause": self.cause,
            "query": self.query,
            "written": self.written,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Entry:
        """The inverse of ``to_json``; ``UpdateRefused`` if it is no entry."""
        try:
            check_keys("an entry", data, FIELDS)
            action = _one_of("action", data.get("action", "migrate"), ACTIONS)
            strategy = _checked_strategy(data.get("strategy"))
            return cls(
                str(data["name"]),
                Target.from_json(data["target"]) if action == "migrate" else None,
                _checked_when(dict(data["when"])),
                _checked_name("operator", data.get("operator")),
                checked_cause(data.get("cause", "")),
                strategy,
                _one_of("if_busy", data.get("if_busy", "refuse"), IF_BUSY),
                action,
                _checked_name("migration", data.get("migration")),
                _checked_name("query", data.get("query")),
                _checked_moment(data.get("written")),
            )
        except UpdateRefused:
            raise
        except KeyError as error:
            raise UpdateRefused(f"an entry needs {error}") from error
        except (TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise UpdateRefused(f"this is not a control entry: {short(error)}") from error


def _one_of(what: str, value: Any, known: tuple[str, ...]) -> str:
    if value not in known:
        raise UpdateRefused(f"an entry's {what} must be one of {', '.join(known)}, not {short(value)}")
    return str(value)


def _checked_strategy(strategy: Any) -> dict[str, Any]:
    if strategy is None:
        return {"name": "all_at_once"}
    if not isinstance(strategy, Mapping) or not isinstance(strategy.get("name"), str):
        raise UpdateRefused(
            f'an entry\'s strategy must be like {{"name": "fluid"}}, and not {short(strategy)}'
        )
    return dict(strategy)


def _checked_name(what: str, name: Any) -> str | None:
    if name is None or isinstance(name, str):
        return name
    raise UpdateRefused(f"an entry's {what} must be a name, not {short(name)}")


def _checked_moment(written: Any) -> float | None:
    """When an entry was written."""
    number = isinstance(written, int | float) and not isinstance(written, bool)
    if written is None or (number and math.isfinite(written)):
        return None if written is None else float(written)
    raise UpdateRefused(f"written must be the seconds since 1970, not {short(written)}")


def checked_cause(cause: Any) -> str:
    """The reason for an entry; ``UpdateRefused`` if it is too long, or no text."""
    if not isinstance(cause, str):
        raise UpdateRefused(f"an entry's cause must be text, not {short(cause)}")
    if len(cause) > LONGEST_CAUSE:
        raise UpdateRefused(f"an entry's cause has more than {LONGEST_CAUSE:,} letters")
    return cause


def _checked_when(when: When) -> When:
    if len(when) > 1 or not set(when) <= {"epoch", "wall", "event"}:
        raise UpdateRefused(f"an entry's time must be one of epoch, wall or event, not {short(when)}")
    for kind, value in when.items():
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not number or (kind == "epoch" and value != int(value)):
            raise UpdateRefused(
                f"an entry's time must be a number, and an epoch a whole one, not {short(when)}"
            )
    return when


def new_name(now: float | None = None) -> str:
    """A unique name that sorts by time."""
    return f"{int((time.time() if now is None else now) * 1e6):018d}-{uuid.uuid4().hex[:12]}"


def _written(name: str) -> float:
    """The time in a name; the beginning of time if there is none."""
    digits = name.partition("-")[0]
    return int(digits) / 1e6 if digits.isdecimal() else 0.0


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
    """The ``when`` of an entry from what users write.

    That is nothing, an epoch, a wall-clock time, or ``event_time(...)``.
    """
    if at is None:
        return {}
    if isinstance(at, EventTime):
        return {"event": at.microseconds}
    if isinstance(at, bool):
        raise InvalidInput(f"at={at!r} is neither an epoch nor a time")
    if isinstance(at, int | np.integer):
        if at < 0:
            raise UpdateRefused(f"epoch {at} does not exist: epochs count from 0")
        return {"epoch": int(at)}
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
        raise InvalidInput(
            f"{moment.isoformat()} has no time zone, so it can be several moments: write "
            f"{moment.isoformat()}Z, or give the datetime a tzinfo"
        )
    return moment.timestamp()


def told(when: When) -> str:
    """A time in words.

    >>> told({"wall": 0}), told({"epoch": 7}), told({}), told({"wall": 1e300})
    ('at 1970-01-01 00:00:00Z', 'at epoch 7', 'at once', 'at 1e+300 s since 1970')
    """
    if "epoch" in when:
        return f"at epoch {when['epoch']}"
    if not when:
        return "at once"
    ((kind, value),) = when.items()
    prefix, seconds = ("when event time passes", value / 1e6) if kind == "event" else ("at", value)
    try:
        return f"{prefix} {datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):  # beyond any calendar
        return f"{prefix} {seconds:g} s since 1970"


class ControlStream:
    """The files under ``control/``; see the module's docstring."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._failing: dict[
            str, tuple[float, float]
        ] = {}  # since when an entry can't be read, and the last try

    def append(self, entry: Entry) -> None:
        """Makes an entry durable."""
        self._store.write_document(f"{DIRECTORY}/{entry.name}.json", entry.to_json())

    def names(self) -> list[str]:
        """The names of the entries that are there, in order."""
        return [name[: -len(".json")] for name in self._store.list(DIRECTORY) if name.endswith(".json")]

    def read(
        self, names: Iterable[str], now: float | None = None
    ) -> tuple[list[Entry], list[tuple[str, str]], list[str]]:
        """These entries, those that are damaged, and those that may be read later.

        The second are (name, reason) for each entry that is damaged or malformed, the third are names. Where
        a file appears before all of it is there, it looks damaged at first: it gets some seconds. One that
        can't be read gets a minute.
        """
        entries, bad, unfinished = [], [], []
        for name in names:
            try:
                size = self._store.size(f"{DIRECTORY}/{name}.json")
                if size > LARGEST:
                    bad.append(
                        (name, f"it has {size:,} bytes, and {LARGEST:,} are the most that an entry may have")
                    )
                    continue
                data = self._store.read_document(f"{DIRECTORY}/{name}.json")
                entries.append(replace(Entry.from_json(data), name=name))
                self._failing.pop(name, None)
            except FileNotFoundError:
                continue
            except InvalidInput as error:
                bad.append((name, str(error)))
            except StateError as error:
                if now is not None and self._may_pass(name, error, now):
                    unfinished.append(name)
                else:
                    bad.append((name, str(error)))
        return entries, bad, unfinished

    def _may_pass(self, name: str, error: StateError, now: float) -> bool:
        """Whether what is wrong with an entry may be over soon."""
        since, _ = self._failing.get(name, (now, now))
        self._failing[name] = since, now
        if not isinstance(error, DamagedError):
            return now - since < UNREADABLE_SECONDS
        if -CLOCKS_APART <= now - _written(name) < UNFINISHED_SECONDS:
            return True
        # A local file appears with all that is in it; elsewhere the writer's clock may be behind.
        return not self._store.is_local and now - since < UNFINISHED_SECONDS

    def worth_reading(self, name: str, now: float) -> bool:
        """Whether an entry that is there should make an epoch happen: not if it could just not be read."""
        return name not in self._failing or now - self._failing[name][1] >= RETRY_SECONDS

    def remove(self, names: Iterable[str]) -> None:
        """Forgets entries whose outcome is committed.

        One that can't be deleted stays among those that are consumed, and does no harm there.
        """
        for name in names:
            self._failing.pop(name, None)
            with contextlib.suppress(StateError):
                self._store.delete([f"{DIRECTORY}/{name}.json"])
