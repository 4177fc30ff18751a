"""Whether another step of an autoscaler would lead to rest. Pure."""

from __future__ import annotations

import math

from sterna.controllers.load import Load
from sterna.controllers.verdict import ASKED, Said
from sterna.controllers.view import View

CHANGE = 0.25
"""Two loads that differ by no more than this part are the same.

So are those whose difference the noise explains.
"""

CLEAR = 6.0
"""By how many standard deviations a load must differ from the one before it for a step to be taken back."""

EPOCHS = 3
"""In how many epochs the present number of workers must have shown what it can do."""


def unrest(
    view: View, load: Load, direction: int, *, most: int, near: float, pressed: bool = False
) -> str | None:
    """Why another step would not lead to rest; ``None`` if it may be taken.

    Args:
        view: the query, as the autoscaler sees it.
        load: the load that the step is for.
        direction: of the step: more workers or fewer.
        most: how many steps a change of the load may take.
        near: two steps within so many seconds are for the same change.
        pressed: whether there are too few workers, for certain: then the last step may be undone.
    """
    steps = [one for one in view.said if one.outcome == ASKED and "rate" in one.facts]
    if not steps:
        return None
    if _direction(steps[-1]) * direction < 0:
        if not pressed and _unchanged(steps[-1], load, view.now):
            return "it would undo the last step at the same load"
        return None
    taken, moment, current = 0, view.now, load
    for step in reversed(steps):
        soon = moment - step.time <= near
        if _direction(step) * direction < 0 or not (soon or _alike(step, current)):
            break
        taken, moment = taken + 1, step.time
        current = Load(float(step.facts["rate"]), load.noise, _epochs(step))
    if taken >= most:
        return f"{taken} steps were taken for this load already"
    return None


def _direction(step: Said) -> int:
    return int(step.facts["to"]) - int(step.facts["from"])


def _epochs(step: Said) -> float:
    """Of how many epochs the load of a step was the mean; earlier versions did not say."""
    return float(step.facts.get("epochs", EPOCHS))


def _alike(step: Said, load: Load) -> bool:
    before = float(step.facts["rate"])
    return abs(load.rate - before) <= CHANGE * max(before, 1e-9) or load.alike(before, _epochs(step))


def _unchanged(step: Said, load: Load, now: float) -> bool:
    """Whether the load is what it was at a step: it has been so ever since, or it has not clearly changed."""
    if abs(load.rate - float(step.facts["rate"])) <= CHANGE * max(float(step.facts["rate"]), 1e-9):
        return True
    if math.isfinite(load.seconds) and now - step.time < load.seconds:
        return True
    return _alike(step, load) if load.apart is None else load.apart < CLEAR
