"""Axes of charts: from an amount to a place between 0 and 1, and where the ticks are.

An amount outside an axis is placed at its end, so a latency of 0 on a logarithmic axis is at the bottom of
it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_LEAST = 0.1
"""Nothing below a tenth of a millisecond is told apart."""


@dataclass(frozen=True)
class LogAxis:
    """A logarithmic axis between two positive amounts.

    >>> axis = LogAxis.over([0.0, 40.0, 7_000.0])
    >>> (axis.low, axis.high), axis.ticks()
    ((20.0, 10000.0), [100.0, 1000.0, 10000.0])
    >>> axis.place(0), axis.place(10_000), axis.place(99_999)
    (0.0, 1.0, 1.0)
    """

    low: float
    high: float

    @classmethod
    def over(cls, values: Iterable[float]) -> LogAxis:
        """An axis that shows all of these that are positive, with some air, and at least one decade."""
        positive = [max(value, _LEAST) for value in values if value > 0]
        if not positive:
            return cls(1.0, 1000.0)
        low = max(_round(min(positive) / 1.2, up=False), _LEAST)
        high = max(_round(min(max(positive), 1e300) * 1.2, up=True), 10 * low)
        return cls(low, high)

    def place(self, value: float) -> float:
        """Where a value is."""
        value = min(max(value, self.low), self.high)
        return math.log(value / self.low) / math.log(self.high / self.low)

    def ticks(self) -> list[float]:
        """The powers of ten, or, where there are few of them, also their doubles and fives.

        At most seven or so.
        """
        first, last = math.ceil(_log10(self.low)), math.floor(_log10(self.high))
        if last - first < 2:
            steps = [float(f"{m}e{e}") for e in range(first - 1, last + 1) for m in (1, 2, 5)]
            return [step for step in steps if self.low <= step <= self.high]
        return [float(f"1e{e}") for e in range(first, last + 1, math.ceil((last - first) / 6))]


@dataclass(frozen=True)
class Axis:
    """An axis from 0 to ``high``.

    >>> Axis(45.0).ticks(5), Axis(45.0).place(9)
    ([0.0, 10.0, 20.0, 30.0, 40.0], 0.2)
    """

    high: float

    def place(self, value: float) -> float:
        """Where a value is."""
        return min(max(value / self.high, 0.0), 1.0)

    def ticks(self, most: int) -> list[float]:
        """Round amounts at equal distances from 0 on."""
        step = _round(self.high / most, up=True)
        return [step * i for i in range(int(self.high / step * (1 + 1e-9)) + 1)]


def _log10(value: float) -> float:
    """The logarithm, free of the last digit's noise, so that 1000 is 3 and not a bit less."""
    return round(math.log10(value), 9)


def _round(value: float, *, up: bool) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = math.floor(_log10(value))
    steps = [float(f"{m}e{e}") for e in (power, power + 1) for m in (1, 2, 5)]
    if up:
        return next(step for step in steps if step >= value * (1 - 1e-9))
    return max(step for step in steps if step <= value * (1 + 1e-9))
