"""Whether a move pays: the time that epochs gain by it, against the time that moving the bytes takes.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sterna.configuration import Configuration
from sterna.controllers.view import View
from sterna.readable import duration, milliseconds, size


@dataclass(frozen=True)
class Bill:
    """What a move costs.

    Attributes:
        bins, bytes: what moves.
        milliseconds: how much longer epochs get by it, all together.
    """

    bins: int
    bytes: float
    milliseconds: float

    def __str__(self) -> str:
        return f"{self.bins:,} bins, {size(self.bytes)}, about {milliseconds(self.milliseconds)}"


def bill(view: View, targets: dict[str, Configuration]) -> Bill:
    """What it costs to get the operators to these configurations, of as many bins as they have."""
    bins, moved = 0, 0.0
    for name, target in targets.items():
        here = view.operators[name]
        away = here.configuration.owners != target.owners
        bins += int(np.count_nonzero(away))
        moved += float(here.bytes[away].sum())
    return Bill(bins, moved, moved * view.price())


def too_dear(view: View, cost: Bill, gained: float, pays_back: float) -> str | None:
    """Why a move is not worth it; ``None`` if it is.

    Args:
        view: the query.
        cost: what it costs.
        gained: how many milliseconds an epoch gets shorter.
        pays_back: within how many seconds that must make up for the cost.
    """
    total = gained * pays_back / view.period()
    if cost.milliseconds <= total:
        return None
    return (
        f"not worth moving {cost} of epoch time: it gains {milliseconds(gained)} an epoch, "
        f"{milliseconds(total)} in {duration(pays_back)}"
    )
