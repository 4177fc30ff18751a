"""How large the load of a query is, and how sure that is.

It is a mean over all the epochs for which it has been the same, with a band that follows its noise. Pure.

An input is never quite even. A short window follows a change at once, but takes every gust for one; a long
one is calm, but late. So the window grows by itself: it reaches back to the last change of the load, that is
to where the mean before and the mean after differ by more than the noise explains (the point at which they
differ most, again and again, until none is left). The noise of an epoch is taken from how much it differs
from the few before it, in the middle, which a change or two do not alter.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from sterna.controllers.view import View

Floats = npt.NDArray[np.float64]

HORIZON = 64
"""How many epochs back it looks."""

CHANGED = 4.0
"""By how many standard deviations two means must differ to be two loads."""

SURE = 3.0
"""Within how many standard deviations the load is taken to be."""

FEW = 8
"""Of so few epochs the greatest difference counts, not the one in the middle: it might be small by chance."""

LAGS = (1, 2, 3, 4)
"""How far from each other the epochs are that are compared.

Neighbours alone may be alike by chance for a while.
"""

EVEN = 0.02
"""Epochs that differ by less than this part are not two loads, however even the others are."""


@dataclass(frozen=True)
class Load:
    """The load of a query.

    Attributes:
        rate: rows a second.
        noise: the standard deviation of the rate of one epoch, as a part of the rate.
        epochs: how many epochs the rate is the mean of.
        seconds: how long they took.
        apart: by how many standard deviations it differs from the load before it; ``None`` if none is known.
    """

    rate: float
    noise: float = 0.0
    epochs: float = float(HORIZON)
    seconds: float = float("inf")
    apart: float | None = None

    @property
    def band(self) -> float:
        """By which part of it the rate may be off."""
        return float(SURE * self.noise / np.sqrt(self.epochs))

    def alike(self, rate: float, epochs: float) -> bool:
        """Whether another rate, the mean of so many epochs, may be of the same load."""
        apart = np.hypot(self.rate / np.sqrt(self.epochs), rate / np.sqrt(epochs))
        return bool(abs(self.rate - rate) <= SURE * self.noise * apart)


def measured(view: View) -> Load | None:
    """The load of the input; ``None`` if too few epochs have been seen to tell."""
    gaps = [(after.time - before.time, after.cost.rows) for before, after in pairwise(view.since_start)]
    items = [(gap, rows) for gap, rows in reversed(gaps) if gap > 0]
    if not items:
        return None
    seconds, rows = (np.array(column, np.float64) for column in zip(*items, strict=True))
    # The noise may have grown lately; that it has become less takes longer to believe.
    noise = max(_noise(rows / seconds), _noise((rows / seconds)[:HORIZON]))
    period = float(np.median(seconds[:HORIZON]))
    idle = view.now - view.samples[-1].time
    if idle > period:  # an epoch is overdue: nothing comes
        seconds, rows = np.concatenate([[idle], seconds]), np.concatenate([[0.0], rows])
    of_a_second = max(noise, EVEN) * np.sqrt(period)
    same = _same(rows[:HORIZON], seconds[:HORIZON], of_a_second)
    took = float(seconds[:same].sum())
    rate, apart = float(rows[:same].sum()) / took, None
    if same < len(rows):
        older, lasted = rows[same:][:HORIZON], seconds[same:][:HORIZON]
        many = _same(older, lasted, of_a_second)
        before = (float(older[:many].sum()), float(lasted[:many].sum()))
        apart = _apart(rate, took, before[0] / before[1], before[1], of_a_second)
    return Load(rate, noise, took / period, took, apart)


def _noise(rates: Floats) -> float:
    """The standard deviation of one epoch, as a part of the mean.

    It is no less than it may be, by so few epochs.
    """
    apart = np.concatenate([_differences(rates, lag) for lag in LAGS])
    if len(rates) <= FEW:
        return float(apart.max(initial=0.0) / np.sqrt(2))
    # What lies in the middle is 0.67 of a standard deviation, and known to 1.2 of its own, divided by the
    # root of their number; differences of two vary by the root of two more.
    unsure = 1 + 1.2 / np.sqrt(len(rates))
    return float(np.median(apart) / 0.6745 * unsure / np.sqrt(2)) if len(apart) else 0.0


def _differences(rates: Floats, lag: int) -> Floats:
    """By which part of their mean epochs differ that are so far from each other; of those with rows."""
    means = (rates[lag:] + rates[:-lag]) / 2
    return np.asarray(np.abs(rates[lag:] - rates[:-lag])[means > 0] / means[means > 0])


def _apart(rate: float, seconds: float, other: float, lasted: float, noise: float) -> float:
    """By how many standard deviations two rates differ that were measured for so long."""
    deviation = noise * float(np.hypot(rate / np.sqrt(seconds), other / np.sqrt(lasted)))
    return float(abs(rate - other) / max(deviation, 1e-12))


def _same(rows: Floats, seconds: Floats, noise: float) -> int:
    """Of how many of the epochs, the newest first, the load has been the same.

    ``noise`` is that of one second.
    """
    many = len(rows)
    while many > 1:
        came, took = np.cumsum(rows[:many]), np.cumsum(seconds[:many])
        old = took[-1] - took[:-1]
        after, before = came[:-1] / took[:-1], (came[-1] - came[:-1]) / old
        # Where both parts are long, a difference counts for more: so it is greatest where the load has
        # changed.
        at = int(np.argmax(np.abs(after - before) * np.sqrt(took[:-1] * old)))
        if _apart(after[at], took[at], before[at], old[at], noise) <= CHANGED:
            break
        many = at + 1
    return many
