"""How large the load of a query is, and how sure that is: a mean over all the epochs for which it has been the same, with a band that follows its noise. Pure.

An input is never quite even. A short window follows a change at once, but takes every gust for one; a long one is calm, but late. So the window grows by itself: it
reaches back to the last change of the load, that is to where the mean before and the mean after differ by more than the noise explains (the point at which they differ most, again and again, until none is left). The
noise of an epoch is taken from how much epochs differ from the ones before them, in the middle, which a change or two do not alter.
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
"""Of so few differences the greatest counts, not the one in the middle: it might be small by chance."""

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
    """

    rate: float
    noise: float = 0.0
    epochs: float = float(HORIZON)
    seconds: float = float("inf")

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
    items = [(gap, rows) for gap, rows in gaps if gap > 0][-HORIZON:]
    if not items:
        return None
    period = float(np.median([gap for gap, _ in items]))
    seconds, rows = (np.array(column, np.float64)[::-1] for column in zip(*items, strict=True))
    noise = _noise(rows / seconds)
    idle = view.now - view.samples[-1].time
    if idle > period:  # an epoch is overdue: nothing comes
        seconds, rows = np.concatenate([[idle], seconds]), np.concatenate([[0.0], rows])
    same = _same(rows, seconds, max(noise, EVEN) * np.sqrt(period))
    took = float(seconds[:same].sum())
    return Load(float(rows[:same].sum()) / took, noise, took / period, took)


def _noise(rates: Floats) -> float:
    """The standard deviation of one epoch, as a part of the mean."""
    means = (rates[1:] + rates[:-1]) / 2
    apart = np.abs(np.diff(rates))[means > 0] / means[means > 0]
    if not len(apart):
        return 0.0
    # Of the difference of two: the root of two times as much; and what lies in the middle is 0.67 of a standard deviation.
    return float((apart.max() if len(apart) < FEW else np.median(apart) / 0.6745) / np.sqrt(2))


def _same(rows: Floats, seconds: Floats, noise: float) -> int:
    """Of how many of the epochs, the newest first, the load has been the same; ``noise`` is that of one second."""
    many = len(rows)
    while many > 1:
        came, took = np.cumsum(rows[:many]), np.cumsum(seconds[:many])
        old = took[-1] - took[:-1]
        after, before = came[:-1] / took[:-1], (came[-1] - came[:-1]) / old
        # Where both parts are long, a difference counts for more: so it is greatest where the load has changed.
        at = int(np.argmax(np.abs(after - before) * np.sqrt(took[:-1] * old)))
        deviation = noise * np.hypot(after[at] / np.sqrt(took[at]), before[at] / np.sqrt(old[at]))
        if abs(after[at] - before[at]) <= CHANGED * deviation:
            break
        many = at + 1
    return many
