"""The balancer: about as many rows for every worker, where the load of bins drifts.

In: a view. Out: a target of the bins that should change hands, or why not. It waits until a worker has
clearly more than its share in several epochs in a row (hysteresis: it levels to less than what makes it act),
goes by the epochs since the load last moved (``steady``), lets a while pass after every move (cool-down),
longer after one that did not bring what was promised, and does not move bytes that do not pay. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sterna.configuration import Configuration
from sterna.controllers import options
from sterna.controllers.chance import likely
from sterna.controllers.hot import hottest
from sterna.controllers.plans import Planner, least_moved, placed
from sterna.controllers.promise import Failure, failed
from sterna.controllers.steady import Steady
from sterna.controllers.verdict import Verdict
from sterna.controllers.view import Standing, View
from sterna.controllers.worth import bill, too_dear
from sterna.errors import InvalidInput, check_whole
from sterna.readable import duration
from sterna.strategies import Strategy
from sterna.targets import explicit

CHANCE = 3.0
"""By how many standard deviations a worker's rows must differ from the mean: less than that is chance."""

HELPS = 0.05
"""By how much of the mean the fullest worker must get less; otherwise no plan helps."""

MOVING = 2
"""After so many times ``epochs`` epochs it acts on a load that keeps moving."""

DOUBLINGS = 6
"""How many times the cool-down doubles, at most, while plans fail."""


@dataclass(frozen=True)
class Balancer:
    """See ``balancer``. Times are in seconds."""

    above: float = 1.2
    tau: float | str = 0.1
    epochs: int = 3
    cool_down: float = 30.0
    pays_back: float = 300.0
    plan: Planner = least_moved
    strategy: Strategy | None = None
    operator: str | None = None
    name: str = "balancer"

    def __call__(self, view: View) -> Verdict:
        """A verdict about the first operator to be levelled, or about the last one that need not be."""
        names = list(view.operators) if self.operator is None else [self.operator]
        verdicts = [self._look(view, view.operators[name]) for name in names]
        for wanted in (lambda one: one.target is not None, lambda one: one.declined):
            found = next((one for one in verdicts if wanted(one)), None)
            if found is not None:
                return found
        return Verdict("; ".join(one.why for one in verdicts))

    def _look(self, view: View, standing: Standing) -> Verdict:
        name, steady = standing.name, Steady(standing, MOVING * self.epochs)
        stays = self._too_early(view, standing) or self._level(standing) or self._unsure(standing, steady)
        if stays is not None:
            return Verdict(f"{name}{stays}")
        epochs = self._tell(standing, steady)
        total = np.sum(standing.loads(epochs), axis=0)
        fullest, mean = int(np.argmax(total)), float(total.mean())
        said = f"{name}: worker {fullest} has {_times(total[fullest] / mean)} the mean load"
        failure = failed(view, standing, self.epochs, steady)
        rest = self.cool_down * 2 ** min(0 if failure is None else failure.plans, DOUBLINGS)
        if failure is not None and not failure.told and not failure.moved:
            return _disappointed(said, failure, rest, name)
        waited = view.quiet(name)
        if waited < rest:
            return Verdict(f"{said}; {duration(rest - waited)} of the cool-down are left")
        return self._planned(view, standing, epochs, said, 0 if failure is None else failure.plans)

    def _tell(self, standing: Standing, steady: Steady) -> int:
        """How many epochs tell the load as it is."""
        # Of epochs before a move it is less sure what each bin got, and what its worker would have got.
        return max(self.epochs, min(steady.epochs, standing.unmoved))

    def _level(self, standing: Standing) -> str | None:
        """Why no worker has too much; ``None`` if one had in all of the last epochs."""
        ratio = min(float(one.max() / one.mean()) for one in standing.loads(self.epochs))
        if ratio > self.above:
            return None
        calmest = f"the most even of the last {self.epochs} epochs"
        return f" is level: its fullest worker had {_times(ratio)} the mean in {calmest}"

    def _unsure(self, standing: Standing, steady: Steady) -> str | None:
        """Why it may be that no worker has too much; ``None`` if one has for sure."""
        if steady.epochs < self.epochs and not self._matters(standing, steady):
            return f": its load has just moved, and {self.epochs} epochs of it are needed"
        total = np.sum(standing.loads(self._tell(standing, steady)), axis=0)
        most, mean = float(total.max()), float(total.mean())
        if most <= self.above * mean:
            return f" is level: its fullest worker has {_times(most / mean)} the mean"
        if most - mean <= CHANCE * np.sqrt(mean):
            return f": {mean:,.0f} rows for a worker are too few to tell load from chance"
        return None

    def _matters(self, standing: Standing, steady: Steady) -> bool:
        """Whether a worker has had too much for so long that it matters, though the load keeps moving."""
        many = MOVING * self.epochs
        loads = standing.loads(many)
        too_much = len(loads) == many and all(one.max() > self.above * one.mean() for one in loads)
        return too_much and steady.keeps_moving(many)

    def _too_early(self, view: View, standing: Standing) -> str | None:
        """Why nothing can be said of an operator; ``None`` if something can."""
        under_way, seen = view.moving(standing.name), len(standing.last(self.epochs))
        if standing.configuration.workers < 2:
            return " has one worker"
        if under_way is not None:
            return f" is in migration {under_way.name}"
        if seen < self.epochs:
            return f" got rows in {seen} epochs so far, and {self.epochs} are needed"
        return None

    def _planned(self, view: View, standing: Standing, epochs: int, said: str, failures: int) -> Verdict:
        """What a plan by the last epochs makes of it; ``failures`` plans in a row have failed before."""
        here, keys = standing.configuration, standing.keys(epochs)
        rows = likely(standing.rows(epochs), epochs, keys, here)
        before = np.bincount(here.owners, rows, here.workers)
        hot = hottest(rows, keys, here, self.tau)
        facts: dict[str, Any] = {"before": _ratio(before), **({} if hot is None else hot.facts)}
        told = "" if hot is None else hot.words
        try:
            plan = self.plan(here.owners, standing.bytes, rows, here.workers, self.tau)
        except InvalidInput as error:
            why = _and(f"{said}, and there is no plan: {error}", ";", told)
            return Verdict(why, operator=standing.name, declined=True, facts=facts)
        wanted = placed(plan, here)
        after = np.bincount(wanted.owners, rows, here.workers)
        since = standing.samples[-epochs].cost.epoch
        facts = {
            **facts,
            "after": _ratio(after),
            "since": since,
            **({"failed": failures} if failures else {}),
        }
        if before.max() - after.max() < HELPS * before.mean():
            why = _and(f"{said}, and no plan helps", ":", told)
            return Verdict(why, operator=standing.name, declined=True, facts=facts)
        cost = bill(view, {standing.name: wanted})
        slowest = float(np.mean([max(one.busy) for one in standing.last(epochs)])) * 1e3
        gained = slowest * float(1 - after.max() / before.max())
        dear = too_dear(view, cost, gained, self.pays_back)
        if dear is not None:
            return Verdict(f"{said}; {dear}", operator=standing.name, declined=True, facts=facts)
        why = f"{said}; with {cost.bins} bins moved it is {_times(facts['after'])}"
        return Verdict(_and(why, ":", told), _target(here, wanted), self.strategy, standing.name, facts=facts)


def _target(here: Configuration, wanted: Configuration) -> Any:
    away = np.flatnonzero(here.owners != wanted.owners)
    return explicit(zip(away.tolist(), wanted.owners[away].tolist(), strict=True))


def _disappointed(said: str, failure: Failure, rest: float, operator: str) -> Verdict:
    facts = {
        "promised": round(failure.promised, 3),
        "came": round(failure.came, 3),
        "failed": failure.plans,
    }
    why = f"{said}; {failure}. The next plan waits for {duration(rest)}"
    return Verdict(why, operator=operator, declined=True, facts=facts)


def _and(text: str, mark: str, more: str) -> str:
    return f"{text}{mark} {more}" if more else text


def _ratio(loads: npt.NDArray[Any]) -> float:
    return round(float(loads.max() / loads.mean()), 3)


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times"


def balancer(
    *,
    above: float = Balancer.above,
    tau: float | str = Balancer.tau,
    epochs: int = Balancer.epochs,
    cool_down: str | float = Balancer.cool_down,
    pays_back: str | float = Balancer.pays_back,
    plan: Planner | None = None,
    strategy: Strategy | None = None,
    operator: str | None = None,
    name: str = "balancer",
) -> Balancer:
    """A controller that gives every worker about as many rows.

    Args:
        above: it acts when the fullest worker has more than so many times the mean; 1.2 by default.
        tau: to what share above the mean a plan should level; less than ``above`` - 1, so that it does not
            act again at once; a tenth by default. ``"least"``: as even as can be.
        epochs: in how many epochs in a row, three by default, that must have been so, and of one load; of a
            load that keeps moving, in twice as many. It goes by all the epochs since the load last moved, as
            far as 32 or twice as many go back.
        cool_down: how long it waits after a migration of the operator, and after its own last word, half a
            minute by default; twice as long for each plan in a row that did not bring what it had promised,
            unless the load has moved since and stayed for twice ``epochs``.
        pays_back: within how long, five minutes by default, the time that epochs gain must make up for the
            time that moving takes.
        plan: what to move: a function of (assignment, sizes, loads, workers, tau) that returns something with
            an ``assignment``; by default the least state, as ``sterna.planning.general`` finds it. If it
            raises ``InvalidInput`` there is no plan, and the history tells why.
        strategy: how to move; all at once by default.
        operator: the operator to balance; all of them by default, one at a time.
        name: what it is called in the history.
    """
    evenest = isinstance(tau, str) and tau == "least"
    extra = "least" if evenest else options.number("tau", tau, or_else=", or 'least'")
    most = options.number("above", above, above=1)
    if not isinstance(extra, str) and most <= 1 + extra:
        raise InvalidInput(
            f"above={above} must be more than 1 + tau={1 + extra:g}: it would never come to rest"
        )
    check_whole("epochs", epochs, 1)
    if plan is not None and not callable(plan):
        raise InvalidInput(
            f"plan must be a function of (assignment, sizes, loads, workers, tau), not {plan!r}"
        )
    return Balancer(
        most,
        extra,
        epochs,
        options.span("cool_down", cool_down),
        options.span("pays_back", pays_back),
        plan or least_moved,
        options.strategy(strategy),
        options.name("operator", operator),
        options.name("name", name) or "balancer",
    )
