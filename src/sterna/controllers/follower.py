"""The follower: as many workers as Spark has cores to run them, where executors come and go.

In: a view that knows the cores. Out: a number of workers, once the number of cores has been the same for a
while. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from sterna.configuration import MAX_WORKERS
from sterna.controllers import options
from sterna.controllers.rescaling import dear, most_workers, rested, workers_of
from sterna.controllers.verdict import Verdict
from sterna.controllers.view import View
from sterna.errors import InvalidInput
from sterna.readable import duration
from sterna.strategies import Strategy
from sterna.targets import rescale


@dataclass(frozen=True)
class Follower:
    """See ``follower``."""

    a_core: float = 1.0
    least: int = 1
    most: int = MAX_WORKERS
    settle: float = 10.0
    cool_down: float = 60.0
    pays_back: float = 600.0
    strategy: Strategy | None = None
    name: str = "follower"

    def __call__(self, view: View) -> Verdict:
        """How many workers there should be on the cores that there are."""
        under_way = view.moving()
        if view.cores is None:
            return Verdict("it is not known how many cores there are")
        if under_way is not None:
            return Verdict(f"migration {under_way.name} is under way")
        cores, since = view.cores
        here = workers_of(view)
        wanted = min(max(round(cores * self.a_core), self.least), most_workers(view, self.most))
        why = f"{here} → {wanted} workers: there are {cores} cores"
        if wanted == here:
            return Verdict(f"{here} workers are right for {cores} cores")
        waited = min(view.now - since - self.settle, rested(view) - self.cool_down)
        if waited < 0:
            return Verdict(f"{why}; in {duration(-waited)}, if that stays so")
        facts = {"cores": cores, "from": here, "to": wanted}
        # On fewer cores workers take turns: only a query that gains nothing by it stays as it is.
        refusal = dear(view, wanted, self.pays_back)
        if refusal is not None:
            return Verdict(f"{why}; {refusal}", declined=True, facts=facts)
        return Verdict(why, rescale(wanted), self.strategy, facts=facts)


def follower(
    *,
    workers_a_core: float = 1.0,
    least: int = 1,
    most: int = MAX_WORKERS,
    settle: str | float = "10 seconds",
    cool_down: str | float = "1 minute",
    pays_back: str | float = "10 minutes",
    strategy: Strategy | None = None,
    name: str = "follower",
) -> Follower:
    """A controller that has as many workers as Spark has cores.

    Executors that come are used, those that go are not missed.

    Args:
        workers_a_core: how many workers a core is good for.
        least: how few workers there may be.
        most: how many.
        settle: for how long the number of cores must have been the same.
        cool_down: how long it waits after the number of workers has changed, and after its own last word.
        pays_back: within how long a step must make up for the time that moving takes.
        strategy: how to move; all at once by default.
        name: what it is called in the history.
    """
    low, high = options.workers("least", least), options.workers("most", most)
    if low > high:
        raise InvalidInput(f"least={least} is more than most={most}")
    return Follower(
        options.number("workers_a_core", workers_a_core, above=0),
        low,
        high,
        options.span("settle", settle),
        options.span("cool_down", cool_down),
        options.span("pays_back", pays_back),
        options.strategy(strategy),
        options.name("name", name) or "follower",
    )
