"""A number of workers for each time of the day.

In: a view, of which only the time and the number of workers matter, and the price of moving where fewer are
wanted. Out: a number of workers, once for each entry of the schedule: who rescales by hand in between is let
be until the next one. Pure.
"""

from __future__ import annotations

import zoneinfo
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta, timezone, tzinfo
from typing import Any

from sterna.controllers import options
from sterna.controllers.rescaling import dear, workers_of
from sterna.controllers.verdict import REFUSED, Verdict
from sterna.controllers.view import View
from sterna.errors import InvalidInput
from sterna.strategies import Strategy
from sterna.targets import rescale


@dataclass(frozen=True)
class Schedule:
    """See ``schedule``."""

    entries: tuple[tuple[time, int], ...]
    ahead: float = 0.0
    zone: tzinfo = field(default=timezone.utc)
    cool_down: float = 60.0
    strategy: Strategy | None = None
    name: str = "schedule"

    def __call__(self, view: View) -> Verdict:
        """How many workers there should be now, if the entry in force has not been followed yet."""
        since, wanted, until = self.in_force(view.now + self.ahead)
        here, moment = workers_of(view), since.isoformat()
        told = f"{wanted} workers since {since:%H:%M}"
        under_way = view.moving()
        if under_way is not None:
            return Verdict(f"migration {under_way.name} is under way")
        last = next((one for one in reversed(view.said) if one.facts.get("since") == moment), None)
        if last is not None and (last.outcome != REFUSED or view.now - last.time < self.cool_down):
            return Verdict(f"{told}: that has been said")
        followed = [one for one in view.samples if one.time >= since.timestamp() - self.ahead]
        if wanted == here or any(max(one.workers.values()) == wanted for one in followed):
            return Verdict(f"{told}, as it is or has been")
        why = f"{here} → {told}"
        facts = {"since": moment, "from": here, "to": wanted}
        refusal = None if wanted > here else dear(view, wanted, until.timestamp() - view.now)
        if refusal is not None:
            return Verdict(f"{why}; {refusal}", declined=True, facts=facts)
        return Verdict(why, rescale(wanted), self.strategy, facts=facts)

    def in_force(self, moment: float) -> tuple[datetime, int, datetime]:
        """Since when which number of workers is wanted at a moment, and until when."""
        local = datetime.fromtimestamp(moment, self.zone)
        starts = [self._on(local, day, at) for day in (-1, 0, 1) for at, _ in self.entries]
        place = bisect_right(starts, local) - 1
        return starts[place], self.entries[place % len(self.entries)][1], starts[place + 1]

    def _on(self, local: datetime, day: int, at: time) -> datetime:
        date = (local + timedelta(days=day)).date()
        return datetime.combine(date, at, self.zone)


def schedule(
    entries: Any,
    *,
    ahead: str | float = 0.0,
    zone: str = "UTC",
    cool_down: str | float = "1 minute",
    strategy: Strategy | None = None,
    name: str = "schedule",
) -> Schedule:
    """A controller that follows a schedule.

    Args:
        entries: for times of the day, such as ``{"07:30": 8, "20:00": 2}``, how many workers there should be
            from then on.
        ahead: how long before its time an entry is followed; at least as long as moving takes.
        zone: the time zone of the times.
        cool_down: how long it waits before it asks again for what was refused.
        strategy: how to move; all at once by default.
        name: what it is called in the history.
    """
    if not isinstance(entries, Mapping) or not entries:
        raise InvalidInput(f"entries must be a dict such as {{'07:30': 8, '20:00': 2}}, not {entries!r}")
    parsed = sorted((_time(at), options.workers(f"entries[{at!r}]", count)) for at, count in entries.items())
    if len({at for at, _ in parsed}) < len(parsed):
        raise InvalidInput(f"entries names a time twice: {entries!r}")
    return Schedule(
        tuple(parsed),
        options.span("ahead", ahead),
        _zone(zone),
        options.span("cool_down", cool_down),
        options.strategy(strategy),
        options.name("name", name) or "schedule",
    )


def _time(text: Any) -> time:
    try:
        found = time.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"entries: {text!r} is not a time of the day; write it as 07:30") from error
    if found.tzinfo is not None:
        raise InvalidInput(f"entries: {text!r} has a time zone of its own; use zone=")
    return found


def _zone(name: Any) -> tzinfo:
    if name == "UTC":
        return timezone.utc
    try:
        return zoneinfo.ZoneInfo(name)
    except (TypeError, ValueError, OSError, zoneinfo.ZoneInfoNotFoundError) as error:
        raise InvalidInput(f"zone: there is no time zone {name!r}") from error
