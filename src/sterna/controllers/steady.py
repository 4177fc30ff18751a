"""Since when the rows of an operator have been spread over its bins as they are now. Pure.

A mean over epochs of two loads is that of none, and a plan by it levels neither. So a plan is made by the
epochs since the load last moved, and only held to its word while the load has not: back to where the shares
that bins had before and after differ by more than chance explains (the point at which they differ most, again
and again, until none is left). What chance explains is what rows that come one by one would differ by
(Poisson), or what neighbouring epochs do differ by, in the middle, if that is more. The rate does not matter
here, only how it is spread; nor does it matter which worker has a bin, so a move of bins is no move of the
load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sterna.controllers.sample import PARTS, Sample
from sterna.controllers.view import Standing
from sterna.heat import spread
from sterna.statistics import Floats

HORIZON = 32
"""How many epochs back it looks for a move of the load, unless more are asked for."""

MOVED = 4.0
"""By how many standard deviations two spreads must differ to be two loads."""

ALIKE = 0.1
"""Spreads that differ by less than this part are one load, however many rows tell.

Receipts tell the rows of a bin to a twentieth.
"""

NEAR, FAR = (1, 2), (1, 2, 3, 4)
"""How far from each other the epochs are whose difference is taken for noise.

For a plan, near ones: its epochs should be alike. Whether the plan was wrong or the load has moved, the far
ones tell: a load that moves all the time is not followed.
"""

FEW = 4
"""There must be so many times as many epochs as those are apart."""

TINY = 1e-12
"""Instead of zero."""


class Steady:
    """The load of an operator and how long it has been the same.

    Args:
        standing: the operator.
        least: how many epochs back it looks at least.
    """

    def __init__(self, standing: Standing, least: int = 0) -> None:
        self._name, self._samples = standing.name, standing.samples
        self._horizon = max(HORIZON, least)
        self._parts = min(standing.configuration.bins, PARTS)

    @cached_property
    def _counts(self) -> Floats:
        return self._by_part(self._samples[-self._horizon :])

    def _by_part(self, samples: Sequence[Sample]) -> Floats:
        """The rows of each bin, or part of the hash space, in each epoch, the newest first."""
        rows = [spread(one.operators[self._name].by_part, self._parts) for one in reversed(samples)]
        return np.array(rows, np.float64).reshape(-1, self._parts)

    @cached_property
    def epochs(self) -> int:
        """For how many epochs in which rows came the load has been the same, as far as it looks back."""
        return self._same(self._counts)

    def keeps_moving(self, epochs: int) -> bool:
        """Whether the load has moved more than once in the last epochs."""
        return self.epochs < epochs and self.epochs + self._same(self._counts[self.epochs :]) < epochs

    def _same(self, counts: Floats) -> int:
        """Of how many of these epochs, the newest first, the load has been the same."""
        many = len(counts)
        while many > 1:
            came = np.cumsum(counts[:many], axis=0)
            apart = _apart(came[:-1], came[-1] - came[:-1], self._near)
            at = int(np.argmax(apart))
            if apart[at] <= MOVED:
                break
            many = at + 1
        return many

    @cached_property
    def _near(self) -> Noise:
        return self._noise(NEAR)

    def moved_since(self, first: int, last: int) -> bool:
        """Whether the load was another one in the epochs from ``first`` to ``last``; not if none is known."""
        then = [one for one in self._samples if first <= one.cost.epoch <= last]
        if not then:
            return False
        now = self._counts[: self.epochs].sum(axis=0, keepdims=True)
        before = self._by_part(then).sum(axis=0, keepdims=True)
        return bool(_apart(now, before, self._noise(FAR))[0] > MOVED)

    def _noise(self, lags: Sequence[int]) -> Noise:
        """What epochs differ by that are so far from each other; no less than rows that come one by one."""
        shares, rows = _shares(self._counts), _some(self._counts.sum(axis=1))
        alone = float(np.square(_shares(self._counts.sum(axis=0))).sum())
        # A move or two in few epochs must not be among most of the pairs.
        found = [
            np.square(shares[lag:] - shares[:-lag]).sum(axis=1) / (1 / rows[lag:] + 1 / rows[:-lag])
            for lag in lags
            if lag == 1 or FEW * lag <= len(rows)
        ]
        differ = np.concatenate(found) if len(rows) > 1 else np.zeros(1)
        low, middle = np.quantile(np.cbrt(differ), (0.25, 0.5))
        # A quarter of what is normal lies 0.67 of its standard deviation below the middle, or lower.
        own = ((middle - low) / (0.6745 * middle)) ** 2 if middle else 0.0
        return Noise(max(1 - alone, middle**3, TINY), max(2 * alone / 9, own, TINY))


@dataclass(frozen=True)
class Noise:
    """What epochs of one load differ by.

    Attributes:
        square: the sum of the squares by which their shares differ, for one row.
        varies: the variance of its cube root, as a part of it; that is about normal (Wilson and Hilferty).
    """

    square: float
    varies: float


def _apart(rows: Floats, others: Floats, noise: Noise) -> Floats:
    """By how many standard deviations the spreads of these rows differ, each; 0 if too little to matter."""
    one, other = _shares(rows), _shares(others)
    differ = np.square(one - other).sum(axis=1)
    matters = differ > ALIKE**2 * np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    usual = noise.square * (1 / _some(rows.sum(axis=1)) + 1 / _some(others.sum(axis=1)))
    return np.where(matters, (np.cbrt(differ / usual) - 1 + noise.varies) / np.sqrt(noise.varies), 0.0)


def _some(rows: Floats) -> Floats:
    return np.maximum(rows, 1.0)


def _shares(rows: Floats) -> Floats:
    """The part of all rows that each has, in the last dimension."""
    return np.asarray(rows / _some(rows.sum(axis=-1, keepdims=True)), np.float64)
