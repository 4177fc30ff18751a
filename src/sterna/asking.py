"""The checks of a wish: what can't be is refused when it is asked for.

They run in the query's own process or in another. Pure, as of a manifest. In: the wish, the manifest, what
waits in the control stream, and whom to ask for statistics. Out: the wish, with bins numbered as they are
now, or ``UpdateRefused`` with a reason. What changes between this and the freeze, the freeze refuses.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from sterna.configuration import Configuration
from sterna.control import ControlStream, Entry, checked_cause
from sterna.errors import InvalidInput, UpdateRefused
from sterna.freezing import NO_EVENT_TIME, not_begun
from sterna.migration import SETTLING, check_rollback, conflicting, under_way
from sterna.rehearsal import REHEARSAL_SECONDS, rehearse
from sterna.state.manifest import Manifest
from sterna.statistics import Statistics
from sterna.strategies import built_in, from_json

FARTHEST_EPOCHS = 10_000_000
"""How far ahead an epoch may be: weeks."""


def operators(operator: str | None, last: Manifest) -> list[str]:
    """The operators that a wish for one of them, or for all, is for."""
    if operator is None:
        return list(last.configurations)
    if operator not in last.configurations:
        raise InvalidInput(f"operator {operator!r} does not exist; there are {sorted(last.configurations)}")
    return [operator]


def waiting(control: ControlStream, last: Manifest) -> list[Entry]:
    """All wishes that have not been granted yet."""
    fresh, *_ = control.read(name for name in control.names() if name not in set(last.consumed))
    return [*(Entry.from_json(entry) for entry in last.pending), *fresh]


def behind(waits: Mapping[str, Any], last: Manifest) -> list[str]:
    """The names of the migrations that a pending wish is queued behind, those under way first.

    There are none if it waits for its time.
    """
    entry = Entry.from_json(dict(waits))
    if entry.if_busy != "queue" or not _due(entry, last):
        return []
    names = set(operators(entry.operator, last))
    earlier = [Entry.from_json(one) for one in last.pending]
    earlier = earlier[: [one.name for one in earlier].index(entry.name)]
    return [
        *(one.name for one in conflicting(last.migrations, names)),
        *(one.name for one in earlier if _due(one, last) and names & set(operators(one.operator, last))),
    ]


def _due(entry: Entry, last: Manifest) -> bool:
    """Whether a wish to migrate could have begun with the last epoch."""
    now = last.facts.get("time", 0.0)
    return entry.action == "migrate" and entry.due(last.epoch, now, last.watermarks[0])


def check_migration(
    entry: Entry,
    last: Manifest,
    frozen: int,
    before: Iterable[Entry],
    statistics: Callable[[str], Statistics],
    *,
    elsewhere: bool = False,
) -> Entry:
    """A wish for a migration.

    Args:
        entry: the wish.
        last: the last manifest.
        frozen: the newest epoch that can't change any more.
        before: the wishes that wait.
        statistics: of an operator.
        elsewhere: whether the query runs in another process, which may know strategies that this one does
            not.
    """
    assert entry.target is not None
    names = operators(entry.operator, last)
    checked_cause(entry.cause)
    check_epoch(entry, frozen)
    if "event" in entry.when and last.facts.get("timed") is False:
        raise UpdateRefused(NO_EVENT_TIME)
    entry = replace(entry, target=entry.target.numbered(last.configurations[names[0]].bits))
    for name in names:
        known = statistics(name)
        way = _way(entry, name, last.configurations[name], list(before), known)
        if way is not None and not (elsewhere and not built_in(entry.strategy)):
            _check_strategy(entry, *way, known)
    busy = conflicting(last.migrations, names)
    if busy and not entry.when and entry.if_busy == "refuse":
        raise UpdateRefused(under_way(busy))
    return entry


def check_epoch(entry: Entry, frozen: int) -> None:
    """Refuses what is wanted for an epoch that can't change any more."""
    epoch = entry.when.get("epoch")
    if epoch is not None and epoch <= frozen:
        raise UpdateRefused(
            f"epoch {epoch} is already frozen; the earliest epoch that can still change is {frozen + 1}"
        )
    if epoch is not None and epoch > frozen + FARTHEST_EPOCHS:
        raise UpdateRefused(
            f"epoch {epoch} is {epoch - frozen:,} epochs away; a time is written as 2026-12-01T03:00:00Z"
        )


def _way(
    entry: Entry, name: str, current: Configuration, before: list[Entry], known: Statistics
) -> tuple[Configuration, Configuration] | None:
    """From where to where; ``None`` if that depends on which wishes are granted first.

    Refuses what can't be reached from anywhere.
    """
    assert entry.target is not None
    start = _after(current, name, [one for one in before if one.surely_before(entry)])
    try:
        return start, entry.target.resolve(start, known)
    except UpdateRefused:
        entry.target.resolve(_after(current, name, before), known)
        return None


def _check_strategy(entry: Entry, start: Configuration, target: Configuration, known: Statistics) -> None:
    """Refuses a strategy that nobody knows, or one of the user's own that gets nowhere."""
    from_json(entry.strategy)
    if not built_in(entry.strategy):
        rehearse(entry.strategy, start, target, known, REHEARSAL_SECONDS)


def _after(current: Configuration, operator: str, entries: list[Entry]) -> Configuration:
    """The configuration once these entries have been applied."""
    for entry in sorted(entries, key=lambda one: one.name):
        if entry.target is not None and entry.operator in (None, operator):
            with contextlib.suppress(UpdateRefused):
                current = entry.target.resolve(current)
    return current


def check_control(
    entry: Entry, last: Manifest, waiting: Iterable[str], over: Callable[[], Mapping[str, str]]
) -> None:
    """A wish to pause, resume, cancel or roll back; ``over`` tells how migrations of the past have ended."""
    name = entry.migration or ""
    migration = {one.name: one for one in last.migrations}.get(name)
    if migration is None and name in waiting:
        # One that no epoch has seen yet may begin with the next one; one that has been put off waits.
        if entry.action != "cancel" and name in {one["name"] for one in last.pending}:
            raise UpdateRefused(not_begun(name))
        return
    status = migration.status if migration is not None else over().get(name)
    if status is None:
        raise UpdateRefused(f"there is no migration {name!r}")
    if migration is None and entry.action == "rollback":
        if status == "refused":
            raise UpdateRefused(f"migration {name} never began (refused): there is nothing to roll back")
        raise UpdateRefused(
            f"migration {name} is over ({status}): it never began, or ended more than {SETTLING} epochs ago; "
            "ask for a migration to where the bins should be"
        )
    if migration is not None and entry.action == "rollback":
        check_rollback(last.migrations, migration, last.configurations)
    if (migration is None or not migration.active) and entry.action != "rollback":
        raise UpdateRefused(f"migration {name} is over ({status}): nothing to {entry.action}")
