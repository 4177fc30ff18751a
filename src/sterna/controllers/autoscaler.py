"""The autoscaler: as many workers as the input needs, after DS2.

It goes by the load that is measured or by one that is predicted. In: a view. Out: a number of workers, or why
not. It comes to rest: it acts by a load that is sure (``load``), a step that would undo the last one at the
same load is not taken, a change of the load is followed by at most ``steps`` steps (``rest``), between two of
them it lets the new number show what it can do (cool-down), and it goes down only to where there is room
above (hysteresis). Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from sterna.controllers import options
from sterna.controllers.ds2 import Need, needs, parallelism
from sterna.controllers.load import HORIZON, Load, measured
from sterna.controllers.rescaling import dear, most_workers, rested, workers_of
from sterna.controllers.rest import EPOCHS, unrest
from sterna.controllers.sample import Sample
from sterna.controllers.verdict import Verdict
from sterna.controllers.view import View
from sterna.errors import InvalidInput, check_whole
from sterna.readable import duration
from sterna.strategies import Strategy
from sterna.targets import rescale

LOOKS = 16
"""At how many moments of the time ahead a forecast is looked at."""

SURE_ENOUGH = 0.1
"""A load that is known to this part is sure, however narrow the tolerance."""

LONG_ENOUGH = 0.75 * HORIZON
"""After so many epochs a load is as sure as it gets."""

Forecast = Callable[[float], Any]


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
    load: Forecast | None = None
    ahead: float = 0.0

    def __call__(self, view: View) -> Verdict:
        """How many workers all operators should have."""
        under_way = view.moving()
        if under_way is not None:
            return Verdict(f"migration {under_way.name} is under way")
        load = self._load(view)
        if load is None:
            return Verdict("the rate of the input is not known yet")
        seen = self._seen(view, load)
        if load.rate and len(seen) < EPOCHS:
            return Verdict(
                f"{len(seen)} quiet epochs with rows and this number of workers were seen, "
                f"and {EPOCHS} are needed"
            )
        found = needs(seen, load.rate)
        here = workers_of(view)
        most = most_workers(view, self.most)
        wanted = min(self._wanted(load, found, here), most)
        told = _told(load, found)
        if wanted == here:
            more = parallelism(found, self.utilisation)
            right = f"{here} workers are right" if more <= most else f"{here} of {more} workers are there"
            return Verdict(f"{right}: {told}")
        waited = rested(view)
        if waited < self.cool_down:
            left = duration(self.cool_down - waited)
            return Verdict(f"{wanted} workers would be right: {told}; {left} of the cool-down are left")
        return self._step(view, wanted, load, found)

    def _load(self, view: View) -> Load | None:
        """What has to be got through: what comes, what waits, and what is predicted."""
        if not view.samples or view.now - view.since_start[0].time < self.window / 2:
            return None
        seen = measured(view)
        if seen is None:
            return None
        rate = seen.rate + (view.backlog or 0) / self.catch_up
        predicted = self._predicted(view.now)
        return Load(predicted) if predicted > rate else replace(seen, rate=rate)

    def _predicted(self, now: float) -> float:
        if self.load is None:
            return 0.0
        moments = [now + self.ahead * look / LOOKS for look in range(LOOKS + 1)]
        predicted = [self.load(moment) for moment in (moments if self.ahead else [now])]
        for one in predicted:
            if isinstance(one, bool) or not isinstance(one, Real) or not 0 <= float(one) < math.inf:
                raise InvalidInput(f"load must return rows a second, from 0 on, not {one!r}")
        return float(max(predicted))

    def _seen(self, view: View, load: Load) -> tuple[Sample, ...]:
        """The epochs that tell what the present number of workers can do.

        They are the quiet ones of this load or of the window, or the last few of those.
        """
        here = view.workers
        quiet = [
            sample
            for sample in view.samples
            if sample.cost.rows and not sample.cost.bins and sample.workers == here
        ]
        reach = max(self.window, load.seconds if math.isfinite(load.seconds) else 0.0)
        recent = [sample for sample in quiet if sample.time > view.now - reach]
        return tuple(recent if len(recent) >= EPOCHS else quiet[-EPOCHS:])

    def _wanted(self, load: Load, found: list[Need], here: int) -> int:
        """How many workers there should be: more, fewer, or as many as there are.

        Up when the workers are busier than wanted, for certain; down when fewer of them would have room to
        spare, for certain.
        """
        need = sum(one.workers for one in found)
        up, down = self.utilisation * (1 + self.tolerance), self.utilisation * (1 - self.tolerance)
        # What is off by no more than this, and is followed down, is not followed up again.
        sure = not load.rate or load.band <= max(up / down - 1, SURE_ENOUGH) or load.epochs >= LONG_ENOUGH
        whole = load.seconds >= self.window * (1 - 1e-9)
        half = load.seconds >= self.window / 2 and load.epochs >= EPOCHS
        at_least, more = need * (1 - load.band), parallelism(found, self.utilisation)
        wanted = here
        if more > here and at_least > up * here and (whole or half) and (sure or at_least > here):
            wanted = more
        elif whole and sure and math.ceil(need * (1 + load.band) / down - 1e-9) < here:
            wanted = parallelism(found, down)
        return min(max(wanted, self.least), self.most)

    def _step(self, view: View, wanted: int, load: Load, found: list[Need]) -> Verdict:
        here = workers_of(view)
        need = sum(one.workers for one in found)
        facts = {
            "rate": round(load.rate, 3),
            "epochs": round(load.epochs, 1),
            "need": round(need, 3),
            "from": here,
            "to": wanted,
        }
        why = f"{here} → {wanted} workers: {_told(load, found)}"
        refusal = None
        if self.least <= here <= self.most:
            refusal = unrest(
                view,
                load,
                wanted - here,
                most=self.steps,
                near=2 * (self.cool_down + self.window),
                pressed=need * (1 - load.band) > here,
            )
            # Without enough workers rows wait for ever: then no price is too high.
            if refusal is None and need < here:
                refusal = dear(view, wanted, self.pays_back)
        if refusal is not None:
            return Verdict(f"{why}; {refusal}", declined=True, facts=facts)
        return Verdict(why, rescale(wanted), self.strategy, facts=facts)


def _told(load: Load, found: list[Need]) -> str:
    """The load in a few words."""
    each = ", ".join(
        f"{need.operator} {need.workers:.2f}"
        + ("" if need.true_rate is None else f" at {need.true_rate:,.0f} rows/s a worker")
        for need in found
    )
    rate = f"{load.rate:,.0f} rows/s ±{100 * load.band:.0f} %"
    return f"{rate} keep busy {each}" if each else rate


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
        tolerance: it goes up when they are busier than this part above that, and down only if they would be
            less busy than this part below.
        window: for how long a load must have been the same before it is followed down; up after half as long,
            if that is a few epochs. A noisy one is watched longer, until its mean is sure.
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
        options.number("utilisation", utilisation, above=0, most=1),
        options.number("tolerance", tolerance, most=0.9),
        _positive("window", window),
        options.span("cool_down", cool_down),
        options.span("pays_back", pays_back),
        _positive("catch_up", catch_up),
        steps,
        options.strategy(strategy),
        options.name("name", name) or "autoscaler",
    )


def predicted(
    load: Forecast, *, ahead: str | float, most: int, name: str = "predicted", **others: Any
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
    return options.number(option, options.span(option, value), above=0)
