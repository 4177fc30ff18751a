"""Freezing the control stream: what becomes of wishes and migrations when an epoch is frozen.

Pure, but that rehearsing a strategy of one's own ends after half a minute. In: the configurations and
migrations at t-1, what is pending and what is new, and whom to ask for statistics and steps. Out: those at t,
what stays pending, and what was refused and why. An entry is never applied by half.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from sterna import strategies
from sterna.configuration import Configuration
from sterna.control import CLOCKS_APART, Entry
from sterna.errors import InvalidInput, UpdateRefused
from sterna.migration import PAUSED, RUNNING, Draw, Migration, advance, check_rollback, conflicting, under_way
from sterna.rehearsal import REHEARSAL_SECONDS, rehearse
from sterna.spread import Spread
from sterna.statistics import Statistics

NO_EVENT_TIME = (
    "the query has no event time, so the moment would never come: key_by(..., time=...) and watermark_delay"
)

MOST_PAIRS = 1000


@dataclass(frozen=True)
class Frozen:
    """The outcome of freezing the control stream at an epoch."""

    configurations: dict[str, Configuration]
    pending: list[Entry]
    applied: list[Entry]
    refused: list[tuple[Entry, str]]
    withdrawn: list[tuple[Entry, str]] = field(default_factory=list)
    migrations: list[Migration] = field(default_factory=list)


@dataclass(frozen=True)
class Knowledge:
    """What a freeze may ask for.

    Attributes:
        query: the identity of the query.
        draw: the next step of a migration.
        statistics: of an operator.
        before: what epochs took lately.
        timed: whether event time passes at all.
    """

    query: str | None = None
    draw: Draw = field(default_factory=lambda: _first)
    statistics: Callable[[str], Statistics | None] = lambda _: None
    before: Spread = field(default_factory=Spread)
    timed: bool = True


def _first(migration: Migration, name: str, current: Configuration) -> strategies.Step | None:
    """The first step of a migration's strategy from where it is, where nothing is known."""
    strategy = strategies.from_json(migration.strategy)
    return next(iter(strategy(current, migration.target[name], Statistics.unknown(current.bins))), None)


def freeze_entries(
    epoch: int,
    configurations: Mapping[str, Configuration],
    pending: Iterable[Entry],
    fresh: Iterable[Entry],
    now: float,
    watermark: int | None,
    migrations: Iterable[Migration] = (),
    knowledge: Knowledge | None = None,
) -> Frozen:
    """Applies what is due at ``epoch``, and takes migrations a step further.

    What is not due is kept, and what can't be is refused.
    """
    freeze = _Freeze(epoch, dict(configurations), list(migrations), now, knowledge or Knowledge())
    waiting: dict[str, Entry] = {}
    applied: list[Entry] = []
    refused: list[tuple[Entry, str]] = []
    withdrawn: list[tuple[Entry, str]] = []
    known = list(pending)
    old = {entry.name for entry in known}
    entries = in_order([*known, *fresh])
    sound = [entry for entry in entries if freeze.may_be(entry, fresh=entry.name not in old)]
    asked = [entry for entry in sound if entry.due(epoch, now, watermark)]
    called_off = {entry.migration for entry in asked if entry.action == "cancel"}
    freeze.held = {entry.migration for entry in asked if entry.action in ("pause", "rollback")}
    for entry in entries:
        before = freeze.now_at()
        try:
            freeze.check(entry, fresh=entry.name not in old)
            due = entry.due(epoch, now, watermark)
            if due and entry.action != "migrate" and entry.migration in waiting:
                if entry.action == "cancel":
                    withdrawn.append((waiting.pop(entry.migration), "it was cancelled before it began"))
                elif entry.migration not in called_off:
                    refuse_not_begun(entry.migration)
                applied.append(entry)  # what is called off may be anything before
            elif not due or (entry.action == "migrate" and entry.name in called_off):
                waiting[entry.name] = freeze.kept(entry)
            elif freeze.apply(entry, [one for one in waiting.values() if one.due(epoch, now, watermark)]):
                applied.append(entry)
            else:
                waiting[entry.name] = freeze.kept(entry)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one wish, the query goes on
            freeze.go_back(before)
            refused.append((entry, str(error) if isinstance(error, InvalidInput) else repr(error)))
    freeze.go_on()
    return Frozen(freeze.current, list(waiting.values()), applied, refused, withdrawn, freeze.migrations)


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """By name, but what is to be done with a migration comes after it.

    That holds even if the clock of whoever asks for it is behind.
    """
    ordered = sorted(entries, key=lambda entry: entry.name)
    place = {entry.name: float(at) for at, entry in enumerate(ordered)}
    return sorted(
        ordered, key=lambda entry: max(place[entry.name], place.get(entry.migration or "", -1.0) + 0.5)
    )


def shortened(wish: dict[str, Any], most: int = MOST_PAIRS) -> dict[str, Any]:
    """A wish as every manifest carries it: of a long list of bins only the beginning."""
    pairs = wish.get("assignment", [])
    if len(pairs) <= most:
        return wish
    return {**wish, "assignment": pairs[:most], "more": len(pairs) - most}


def refuse_not_begun(name: str | None) -> NoReturn:
    """Refuses everything but to cancel a migration that waits."""
    raise UpdateRefused(not_begun(name))


def not_begun(name: str | None) -> str:
    """Why something can't be done with a migration that waits."""
    return f"migration {name} has not begun: it can be cancelled, and nothing else"


class _Freeze:
    """One freeze: entries are applied one after the other, then the migrations that were under way go on.

    Attributes:
        held: the names of migrations that take no step when they begin: they are to be paused or undone.
    """

    def __init__(
        self,
        epoch: int,
        current: dict[str, Configuration],
        migrations: list[Migration],
        now: float,
        knowledge: Knowledge,
    ) -> None:
        self.epoch, self.current, self.migrations, self.now = epoch, current, migrations, now
        self._knowledge = knowledge
        self._stepped: set[str] = set()
        self.held: set[str | None] = set()

    def now_at(self) -> tuple[dict[str, Configuration], list[Migration], set[str]]:
        """How far it is, for ``go_back``."""
        return dict(self.current), list(self.migrations), set(self._stepped)

    def go_back(self, before: tuple[dict[str, Configuration], list[Migration], set[str]]) -> None:
        """As if the entry that failed had not been."""
        self.current, self.migrations, self._stepped = before

    def may_be(self, entry: Entry, *, fresh: bool) -> bool:
        """Whether an entry is not refused for what it is."""
        try:
            self.check(entry, fresh=fresh)
        except InvalidInput:
            return False
        return True

    def check(self, entry: Entry, *, fresh: bool) -> None:
        if entry.query is not None and self._knowledge.query not in (None, entry.query):
            raise UpdateRefused(f"it is signed for query {entry.query}, and this is {self._knowledge.query}")
        # A wish that was accepted once is not refused because the driver's own clock has been set back.
        if fresh and entry.written is not None and not entry.written <= self.now + CLOCKS_APART:
            raise UpdateRefused(
                f"clocks disagree: it was written {entry.written - self.now:.0f} s after the driver's time"
            )
        if "event" in entry.when and not self._knowledge.timed:
            raise UpdateRefused(NO_EVENT_TIME)
        if any(name not in self.current for name in self._names(entry)):
            raise UpdateRefused(
                f"operator {entry.operator!r} does not exist; there are {sorted(self.current)}"
            )
        if fresh and entry.when.get("epoch", self.epoch) < self.epoch:
            raise UpdateRefused(
                f"epoch {entry.when['epoch']} is already frozen; the next one is {self.epoch}"
            )

    def kept(self, entry: Entry) -> Entry:
        """The entry as it waits: bins are numbered as of now.

        If their number changes before it is due, it is rewritten then.
        """
        if entry.target is None:
            return entry
        return replace(entry, target=entry.target.numbered(self.current[self._names(entry)[0]].bits))

    def apply(self, entry: Entry, queued: list[Entry]) -> bool:
        """Does what an entry asks for; ``False`` if it has to wait for another migration to end.

        It also waits for those that were queued before it: else one for all operators might never find all of
        them free.
        """
        if entry.action != "migrate":
            self._control(entry)
            return True
        names = self._names(entry)
        busy = conflicting(self.migrations, names)
        if entry.if_busy == "queue" and (busy or any(set(names) & set(self._names(one)) for one in queued)):
            return False
        if busy and entry.if_busy == "refuse":
            raise UpdateRefused(under_way(busy))
        self._begin(entry, busy)
        return True

    def _begin(self, entry: Entry, merged: list[Migration]) -> None:
        assert entry.target is not None
        known = self._knowledge
        strategy = strategies.from_json(entry.strategy)
        start = {name: self.current[name] for name in self._names(entry)}
        # Seen from where the others would have led; what they still had to do for operators that this one is
        # not for goes on as its own.
        heading = {name: c for other in merged for name, c in other.target.items()}
        target = {
            **heading,
            **{
                name: entry.target.resolve(heading.get(name, c), known.statistics(name))
                for name, c in start.items()
            },
        }
        # Who takes over what others had begun leads back to where they began.
        start = {
            **{name: self.current[name] for name in target},
            **{name: c for other in reversed(merged) for name, c in other.origin.items()},
        }
        if not strategies.built_in(entry.strategy):
            until = time.monotonic() + REHEARSAL_SECONDS
            for name, where in target.items():
                here = self.current[name]
                statistics = known.statistics(name) or Statistics.unknown(here.bins)
                rehearse(entry.strategy, here, where, statistics, until - time.monotonic())
        for other in merged:
            self._replace(other.over("merged", self.epoch, self.now, f"into {entry.name}"))
        migration = Migration(
            entry.name,
            shortened(entry.target.to_json()),
            entry.strategy,
            entry.cause,
            start,
            target,
            (self.epoch, self.now),
            gap=getattr(strategy, "gap", 0),
            before=known.before,
        )
        self.migrations.append(migration)
        if migration.reached(self.current):
            self._replace(migration.over("done", self.epoch, self.now, "nothing had to move"))
        elif entry.name not in self.held:
            self._step(migration)

    def _control(self, entry: Entry) -> None:
        migration = next((m for m in self.migrations if m.name == entry.migration), None)
        if migration is None:
            raise UpdateRefused(f"there is no migration {entry.migration!r} under way")
        if entry.action == "rollback":
            check_rollback(self.migrations, migration, self.current)
            back = replace(
                migration,
                status=RUNNING,
                target=migration.origin,
                led=migration.led or migration.target,
                back=True,
                ended=None,
                next_epoch=self.epoch,
                after=Spread(),
            )
            self._replace(back)
            if back.reached(self.current):
                self._replace(back.over("rolled back", self.epoch, self.now))
            return
        if not migration.active:
            raise UpdateRefused(
                f"migration {migration.name} is over ({migration.status}): nothing to {entry.action}"
            )
        if entry.action == "cancel":
            self._replace(migration.over("cancelled", self.epoch, self.now, f"by {entry.cause}"))
        else:
            status = PAUSED if entry.action == "pause" else RUNNING
            self._replace(replace(migration, status=status, reason=""))

    def go_on(self) -> None:
        """Takes the migrations that have not been in this freeze yet a step further."""
        for migration in list(self.migrations):
            if migration.name not in self._stepped:
                self._step(migration)

    def _step(self, migration: Migration) -> None:
        self._stepped.add(migration.name)
        stepped, self.current = advance(migration, self.current, self.epoch, self.now, self._knowledge.draw)
        self._replace(stepped)

    def _replace(self, migration: Migration) -> None:
        self.migrations = [migration if m.name == migration.name else m for m in self.migrations]

    def _names(self, entry: Entry) -> list[str]:
        return [entry.operator] if entry.operator is not None else list(self.current)
