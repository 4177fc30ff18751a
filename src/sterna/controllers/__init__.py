"""When to move, and where to.

Controllers are functions of what is known about a query that answer with a target, or with the reason for
staying. ``query.start(..., controllers=[...])`` asks them after every epoch; ``sterna advise`` asks them from
outside. A controller of your own is any function of a ``View``.
"""

from __future__ import annotations

from sterna.controllers.autoscaler import autoscaler, predicted
from sterna.controllers.balancer import balancer
from sterna.controllers.follower import follower
from sterna.controllers.sample import Sample, Worked
from sterna.controllers.schedule import schedule
from sterna.controllers.verdict import Said, Verdict, advice_only
from sterna.controllers.view import Standing, View

__all__ = [
    "Said",
    "Sample",
    "Standing",
    "Verdict",
    "View",
    "Worked",
    "advice_only",
    "autoscaler",
    "balancer",
    "follower",
    "predicted",
    "schedule",
]
