"""The autoscaler: as many workers as the input needs, after DS2, by the load that is measured or by one that is predicted.

In: a view. Out: a number of workers, or why not. It comes to rest: a step that would undo the last one at the same load is not taken, a change of
the load is followed by at most ``steps`` steps, between two of them it lets the new number show what it can do (cool-down), and it goes down only to where there
is room above (hysteresis). Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sterna.controllers import options
from sterna.controllers.ds2 import Need, needs, parallelism
from sterna.controllers.rescaling import dear, rested, workers_of
from sterna.controllers.verdict import ASKED, Said, Verdict
from sterna.controllers.view import Sample, View
from sterna.errors import InvalidInput, check_whole
from sterna.readable import duration
from sterna.strategies import Strategy
from sterna.targets import rescale

EPOCHS = 3
"""In how many epochs the present number of workers must have shown what it can do."""

CHANGE = 0.25
"""Two loads that differ by no more than this part are the same."""

LOOKS = 16
"""At how many moments of the time ahead a forecast is looked at."""

Load = Callable[[float], Any]


@dataclass(frozen=True)
class Autoscaler:
    """See ``autoscaler``."""

    most: int
    least: int = 1
    utilisation: float = 0.7
    tolerance: float = 0.1
    window: float = 30.0
    cool_down: float = 60.0
    pays_back: float = 600.0
    catch_up: float = 300.0
    steps: int = 3
    strategy: Strategy | None = None
    name: str = "autoscaler"
    load: Load | None = None
    ahead: float = 0.0

    def __call__(self, view: View) -> Verdict:
        """How many workers all operators should have."""
        under_way = view.moving()
        if under_way is not None:
            return Verdict(f"migration {under_way.name} is under way")
        rate = self._rate(view)
        if rate is None:
            return Verdict("the rate of the input is not known yet")
        seen = self._seen(view)
        if rate and len(seen) < EPOCHS:
            return Verdict(
                f"{len(seen)} quiet epochs with rows and this number of workers were seen, and {EPOCHS} are needed"
            )
        found = needs(seen, rate)
        here = workers_of(view)
        wanted = self._wanted(found, here)
        told = _told(rate, found)
        if wanted == here:
            more = parallelism(found, self.utilisation)
            right = (
                f"{here} workers are right" if more <= self.most else f"{here} of {more} workers are there"
            )
            return Verdict(f"{right}: {told}")
        waited = rested(view)
        if waited < self.cool_down:
            left = duration(self.cool_down - waited)
            return Verdict(f"{wanted} workers would be right: {told}; {left} of the cool-down are left")
        return self._step(view, wanted, rate, found)

    def _rate(self, view: View) -> float | None:
        """Rows a second that have to be got through: the greater half of the window, what waits, and what is predicted."""
        half = self.window / 2
        if not view.samples or view.now - view.since_start[0].time < half:
            return None
        seen = [rate for rate in (view.rate(half), view.rate(half, half)) if rate is not None]
        if not seen:
            return None
        waiting = (view.backlog or 0) / self.catch_up
        return max(max(seen) + waiting, self._predicted(view.now))

    def _predicted(self, now: float) -> float:
        if self.load is None:
            return 0.0
        moments = [now + self.ahead * look / LOOKS for look in range(LOOKS + 1)]
        predicted = [self.load(moment) for moment in (moments if self.ahead else [now])]
        for one in predicted:
            if isinstance(one, bool) or not isinstance(one, int | float) or not 0 <= one < math.inf:
                raise InvalidInput(f"load must return rows a second, from 0 on, not {one!r}")
        return float(max(predicted))

    def _seen(self, view: View) -> tuple[Sample, ...]:
        """The epochs that tell what the present number of workers can do: quiet ones of the window, or the last few of those."""
        here = view.workers
        quiet = [
            sample
            for sample in view.samples
            if sample.cost.rows and not sample.cost.bins and sample.workers == here
        ]
        recent = [sample for sample in quiet if sample.time > view.now - self.window]
        return tuple(recent if len(recent) >= EPOCHS else quiet[-EPOCHS:])

    def _wanted(self, found: list[Need], here: int) -> int:
        """Up when the workers are busier than wanted, down when fewer of them would have room to spare."""
        busy = sum(need.workers for need in found) / here
        up = parallelism(found, self.utilisation)
        down = parallelism(found, self.utilisation * (1 - self.tolerance))
        wanted = here
        if busy > self.utilisation * (1 + self.tolerance) and up > here:
            wanted = up
        elif down < here:
            wanted = down
        return min(max(wanted, self.least), self.most)

    def _step(self, view: View, wanted: int, rate: float, found: list[Need]) -> Verdict:
        here = workers_of(view)
        told = _told(rate, found)
        facts = {
            "rate": round(rate, 3),
            "need": round(sum(need.workers for need in found), 3),
            "from": here,
            "to": wanted,
        }
        why = f"{here} → {wanted} workers: {told}"
        outside = not self.least <= here <= self.most
        refusal = None if outside else self._at_rest(view, wanted - here, rate)
        # Without enough workers rows wait for ever: then no price is too high.
        if refusal is None and not outside and facts["need"] < here:
            refusal = dear(view, wanted, self.pays_back)
        if refusal is not None:
            return Verdict(f"{why}; {refusal}", declined=True, facts=facts)
        return Verdict(why, rescale(wanted), self.strategy, facts=facts)

    def _at_rest(self, view: View, direction: int, rate: float) -> str | None:
        """Why another step would not lead to rest; ``None`` if it may be taken."""
        steps = [one for one in view.said if one.outcome == ASKED and "rate" in one.facts]
        if not steps:
            return None
        if _direction(steps[-1]) * direction < 0:
            if _alike(steps[-1].facts["rate"], rate):
                return "it would undo the last step at the same load"
            return None
        taken, moment, load = 0, view.now, rate
        for step in reversed(steps):
            near = moment - step.time <= 2 * (self.cool_down + self.window)
            if _direction(step) * direction < 0 or not (near or _alike(step.facts["rate"], load)):
                break
            taken, moment, load = taken + 1, step.time, step.facts["rate"]
        if taken >= self.steps:
            return f"{taken} steps were taken for this load already"
        return None


def _direction(step: Said) -> int:
    return int(step.facts["to"]) - int(step.facts["from"])


def _alike(before: float, now: float) -> bool:
    return abs(now - before) <= CHANGE * max(before, 1e-9)


def _told(rate: float, found: list[Need]) -> str:
    """The load in a few words."""
    each = ", ".join(
        f"{need.operator} {need.workers:.2f}"
        + ("" if need.true_rate is None else f" at {need.true_rate:,.0f} rows/s a worker")
        for need in found
    )
    return f"{rate:,.0f} rows/s keep busy {each}" if each else f"{rate:,.0f} rows/s"


def autoscaler(
    *,
    most: int,
    least: int = 1,
    utilisation: float = 0.7,
    tolerance: float = 0.1,
    window: str | float = "30 seconds",
    cool_down: str | float = "1 minute",
    pays_back: str | float = "10 minutes",
    catch_up: str | float = "5 minutes",
    steps: int = 3,
    strategy: Strategy | None = None,
    name: str = "autoscaler",
) -> Autoscaler:
    """A controller that has as many workers as the input needs.

    Args:
        most: how many workers there may be; as many as Spark has cores, or fewer: more would take turns.
        least: how few.
        utilisation: which part of their time workers should be busy at most.
        tolerance: it goes up when they are busier than this part above that, and down only if they would be less busy than this part below.
        window: over how long the rate of the input is measured.
        cool_down: how long it waits after a migration, and after its own last word.
        pays_back: within how long a step must make up for the time that moving takes.
        catch_up: within how long rows that wait at the sources should be got through, where sources tell.
        steps: how many steps a change of the load may take.
        strategy: how to move; all at once by default.
        name: what it is called in the history.
    """
    low, high = options.workers("least", least), options.workers("most", most)
    if low > high:
        raise InvalidInput(f"least={least} is more than most={most}")
    check_whole("steps", steps, 1)
    return Autoscaler(
        high,
        low,
        options.number("utilisation", utilisation, 0, 1),
        options.number("tolerance", tolerance, -1e-12, 0.9),
        _positive("window", window),
        options.span("cool_down", cool_down),
        options.span("pays_back", pays_back),
        _positive("catch_up", catch_up),
        steps,
        options.strategy(strategy),
        options.name("name", name) or "autoscaler",
    )


def predicted(
    load: Load, *, ahead: str | float, most: int, name: str = "predicted", **others: Any
) -> Autoscaler:
    """An autoscaler that follows a predicted load; what is measured counts too, if it is more.

    Args:
        load: a function of a time (seconds since 1970) that returns rows a second.
        ahead: how far ahead it is looked at; at least as far as moving takes.
        most: how many workers there may be.
        name: what it is called in the history.
        **others: the other options of ``autoscaler``.
    """
    if not callable(load):
        raise InvalidInput(f"load must be a function of a time that returns rows a second, not {load!r}")
    scaler = autoscaler(most=most, name=name, **others)
    return replace(scaler, load=load, ahead=options.span("ahead", ahead))


def _positive(option: str, value: Any) -> float:
    return options.number(option, options.span(option, value), 0)
