"""What controllers that change the number of workers share. Pure."""

from __future__ import annotations

import math

from sterna.controllers.view import View
from sterna.controllers.worth import bill, too_dear
from sterna.readable import duration
from sterna.targets import rescale


def workers_of(view: View) -> int:
    """How many workers the query has: those of the operator that has most."""
    return max(view.workers.values())


def most_workers(view: View, most: int) -> int:
    """How many workers there may be: no more than this, and a bin at least for each."""
    bins = min(one.configuration.bins for one in view.operators.values())
    return min(most, max(bins, workers_of(view)))


def rested(view: View) -> float:
    """For how many seconds the number of workers has been the same, and this controller has said nothing."""
    here = view.workers
    other = [sample.time for sample in view.samples if sample.workers != here]
    return view.now - max([*other, *(one.time for one in view.said)], default=-math.inf)


def dear(view: View, wanted: int, pays_back: float) -> str | None:
    """Why another number of workers is not worth moving to; ``None`` if it is.

    More workers make epochs shorter, by what each of them works less; fewer save the time of those that go.
    """
    here = workers_of(view)
    target = rescale(wanted)
    cost = bill(view, {name: target.resolve(one.configuration) for name, one in view.operators.items()})
    if wanted > here:
        busy = [sum(sum(one.busy) for one in sample.operators.values()) for sample in view.samples]
        gained = sum(busy) / max(len(busy), 1) * (1 / here - 1 / wanted) * 1e3
        return too_dear(view, cost, gained, pays_back)
    saved = (here - wanted) * pays_back
    held_up = cost.milliseconds / 1e3 * here
    if held_up <= saved:
        return None
    return (
        f"not worth moving {cost} of epoch time: {here} workers are held up for {duration(held_up)} "
        f"together, and {duration(saved)} of a worker are saved in {duration(pays_back)}"
    )
