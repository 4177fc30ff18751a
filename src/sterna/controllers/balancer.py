"""The balancer: about as many rows for every worker, where the load of bins drifts.

In: a view. Out: a target of the bins that should change hands, or why not. It waits until a worker has clearly more than its share in several epochs in a row
(hysteresis: it levels to less than what makes it act), lets a while pass after every move (cool-down), and does not move bytes that do not
pay. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sterna.configuration import Configuration
from sterna.controllers import options
from sterna.controllers.verdict import Verdict
from sterna.controllers.view import Standing, View
from sterna.controllers.worth import bill, too_dear
from sterna.errors import InvalidInput, check_whole
from sterna.readable import duration
from sterna.statistics import Floats
from sterna.strategies import Strategy
from sterna.targets import explicit

CHANCE = 3.0
"""By how many standard deviations a worker's rows must differ from the mean: less than that is chance."""

HELPS = 0.05
"""By how much of the mean the fullest worker must get less; otherwise no plan helps."""

Owners = npt.NDArray[np.int32]


class Plan(Protocol):
    """A plan: for each bin its worker."""

    @property
    def assignment(self) -> Any:
        """The owners of the bins."""


Planner = Callable[[Owners, Floats, Floats, int, float], Plan]


def least_moved(assignment: Owners, sizes: Floats, loads: Floats, workers: int, tau: float) -> Plan:
    """The least state moved for this balance (``planning.general``), or for the most even one there is.

    >>> least_moved(np.zeros(4, np.int32), np.ones(4), np.array([3.0, 1, 1, 1]), 2, 0.1).assignment.tolist()
    [1, 0, 0, 0]
    """
    from sterna import planning  # noqa: PLC0415 - SciPy takes a while to load, and most queries never ask for a plan

    owners = assignment.astype(np.int64)
    try:
        return planning.general(owners, sizes, loads, workers, tau, seconds=0)
    except planning.Unbalanceable:
        return planning.general(owners, sizes, loads, workers, "least", seconds=0)


@dataclass(frozen=True)
class Balancer:
    """See ``balancer``."""

    above: float = 1.2
    tau: float = 0.1
    epochs: int = 3
    cool_down: float = 30.0
    pays_back: float = 300.0
    plan: Planner = least_moved
    strategy: Strategy | None = None
    operator: str | None = None
    name: str = "balancer"

    def __call__(self, view: View) -> Verdict:
        """A verdict about the first operator that should be levelled, or about the last one that need not be."""
        names = list(view.operators) if self.operator is None else [self.operator]
        verdicts = [self._look(view, view.operators[name]) for name in names]
        for wanted in (lambda one: one.target is not None, lambda one: one.declined):
            found = next((one for one in verdicts if wanted(one)), None)
            if found is not None:
                return found
        return Verdict("; ".join(one.why for one in verdicts))

    def _look(self, view: View, standing: Standing) -> Verdict:
        name = standing.name
        too_early = self._too_early(view, standing)
        if too_early is not None:
            return Verdict(f"{name} {too_early}")
        loads = standing.loads(self.epochs)
        total = np.sum(loads, axis=0)
        fullest, mean = int(np.argmax(total)), float(total.mean())
        ratio = min(float(one.max() / one.mean()) for one in loads)
        if ratio <= self.above:
            return Verdict(f"{name} is level: its fullest worker has {_times(total.max() / mean)} the mean")
        if total[fullest] - mean <= CHANCE * np.sqrt(mean):
            return Verdict(f"{name}: {mean:,.0f} rows for a worker are too few to tell load from chance")
        said = f"{name}: worker {fullest} has {_times(total[fullest] / mean)} the mean load"
        waited = view.quiet(name)
        if waited < self.cool_down:
            return Verdict(f"{said}; {duration(self.cool_down - waited)} of the cool-down are left")
        return self._planned(view, standing, said)

    def _too_early(self, view: View, standing: Standing) -> str | None:
        """Why nothing can be said of an operator; ``None`` if something can."""
        under_way, seen = view.moving(standing.name), len(standing.last(self.epochs))
        if standing.configuration.workers < 2:
            return "has one worker"
        if under_way is not None:
            return f"is in migration {under_way.name}"
        if seen < self.epochs:
            return f"got rows in {seen} epochs so far, and {self.epochs} are needed"
        return None

    def _planned(self, view: View, standing: Standing, said: str) -> Verdict:
        here, rows = standing.configuration, standing.rows(self.epochs)
        plan = self.plan(here.owners, standing.bytes, rows, here.workers, self.tau)
        wanted = Configuration(here.bits, here.workers, self._owners(plan, here))
        before = np.bincount(here.owners, rows, here.workers)
        after = np.bincount(wanted.owners, rows, here.workers)
        facts = {
            "before": round(float(before.max() / before.mean()), 3),
            "after": round(float(after.max() / after.mean()), 3),
        }
        if before.max() - after.max() < HELPS * before.mean():
            why = f"{said}, and no plan helps{_too_hot(rows, before.mean())}"
            return Verdict(why, operator=standing.name, declined=True, facts=facts)
        away = np.flatnonzero(here.owners != wanted.owners)
        cost = bill(view, {standing.name: wanted})
        slowest = float(np.mean([max(one.busy) for one in standing.last(self.epochs)])) * 1e3
        gained = slowest * float(1 - after.max() / before.max())
        dear = too_dear(view, cost, gained, self.pays_back)
        if dear is not None:
            return Verdict(f"{said}; {dear}", operator=standing.name, declined=True, facts=facts)
        return Verdict(
            f"{said}; with {cost.bins} bins moved it is {_times(facts['after'])}",
            explicit(zip(away.tolist(), wanted.owners[away].tolist(), strict=True)),
            self.strategy,
            standing.name,
            facts=facts,
        )

    def _owners(self, plan: Plan, here: Configuration) -> Owners:
        """The plan's owners, checked: it may be somebody's own."""
        owners = np.asarray(getattr(plan, "assignment", None))
        if owners.shape != (here.bins,) or not np.issubdtype(owners.dtype, np.integer):
            raise InvalidInput(
                f"plan must return something with an assignment of {here.bins} whole numbers, not {plan!r}"
            )
        if owners.min() < 0 or owners.max() >= here.workers:
            raise InvalidInput(
                f"plan uses worker {int(owners.max() if owners.max() >= here.workers else owners.min())}, "
                f"and there are {here.workers} workers, numbered from 0"
            )
        return owners.astype(np.int32)


def _too_hot(rows: Floats, mean: float) -> str:
    hottest = int(np.argmax(rows))
    if rows[hottest] <= mean:
        return ""
    share = _times(rows[hottest] / mean)
    return f": bin {hottest} alone has {share} the mean of a worker; more bins may part it"


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times"


def balancer(
    *,
    above: float = 1.2,
    tau: float = 0.1,
    epochs: int = 3,
    cool_down: str | float = "30 seconds",
    pays_back: str | float = "5 minutes",
    plan: Planner | None = None,
    strategy: Strategy | None = None,
    operator: str | None = None,
    name: str = "balancer",
) -> Balancer:
    """A controller that gives every worker about as many rows.

    Args:
        above: it acts when the fullest worker has more than so many times the mean.
        tau: to what share above the mean a plan should level; less than ``above`` - 1, so that it does not act again at once.
        epochs: in how many epochs in a row that must have been so.
        cool_down: how long it waits after a migration of the operator, and after its own last word.
        pays_back: within how long the time that epochs gain must make up for the time that moving takes.
        plan: what to move: a function of (assignment, sizes, loads, workers, tau) that returns something with an ``assignment``; by default the least
            state, as ``sterna.planning.general`` finds it.
        strategy: how to move; all at once by default.
        operator: the operator to balance; all of them by default, one at a time.
        name: what it is called in the history.
    """
    least = options.number("tau", tau, -1e-12)
    if options.number("above", above, 1.0) <= 1 + least:
        raise InvalidInput(f"above={above} must be more than 1 + tau={1 + tau}: it would never come to rest")
    check_whole("epochs", epochs, 1)
    if plan is not None and not callable(plan):
        raise InvalidInput(
            f"plan must be a function of (assignment, sizes, loads, workers, tau), not {plan!r}"
        )
    return Balancer(
        above,
        tau,
        epochs,
        options.span("cool_down", cool_down),
        options.span("pays_back", pays_back),
        plan or least_moved,
        options.strategy(strategy),
        options.name("operator", operator),
        options.name("name", name) or "balancer",
    )
