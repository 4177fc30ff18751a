"""Latencies of very many records: a histogram with logarithmic buckets, and a timeline by when they were due.

The records of an epoch are a contiguous range, due at an even pace and acknowledged at one moment, so their
latencies are spread evenly between two values. Both classes take such spans: the work is by epoch and never
by record.

A percentile is off by at most 1 % of its value (0.1 ms below 0.1 ms); the maximum is exact. Latencies are in
seconds, and one below zero, which only two clocks that disagree can make, counts as zero. What is longer than
an hour is in the last bucket.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np

LEAST, MOST, GROWTH = 1e-4, 3600.0, 1.02
EDGES = np.concatenate(
    [[0.0], LEAST * GROWTH ** np.arange(math.ceil(math.log(MOST / LEAST, GROWTH)) + 1), [math.inf]]
)
SLOT_SECONDS = 0.25


class Histogram:
    """Weights of latencies in buckets, each 2 % wider than the one before.

    Example:
        >>> histogram = Histogram()
        >>> histogram.record_span(0.1, 0.3, weight=1000)
        >>> round(histogram.percentile(50), 2), round(histogram.mean(), 2), histogram.max
        (0.2, 0.2, 0.3)
    """

    def __init__(self) -> None:
        self.weights = np.zeros(len(EDGES) - 1)
        self.max = 0.0

    @property
    def total(self) -> float:
        """The weight of everything recorded."""
        return float(self.weights.sum())

    def record(self, value: float, weight: float = 1.0) -> None:
        """Adds one latency, of so many records."""
        if weight <= 0:
            return
        value = max(value, 0.0)
        self.weights[np.searchsorted(EDGES, value, side="right") - 1] += weight
        self.max = max(self.max, value)

    def record_span(self, low: float, high: float, weight: float = 1.0) -> None:
        """Adds the latencies of ``weight`` records, spread evenly between two values."""
        if high - low < LEAST / 100 or high <= 0:
            self.record(high, weight)
            return
        if weight <= 0:
            return
        below = np.clip((EDGES - low) / (high - low), 0.0, 1.0)
        below[0] = 0.0  # what would be negative is in the first bucket
        self.weights += weight * np.diff(below)
        self.max = max(self.max, high)

    def percentile(self, percent: float) -> float:
        """The latency that so many per cent of the records do not exceed; 0 if nothing was recorded."""
        total = self.total
        if total == 0:
            return 0.0
        if percent >= 100:
            return self.max
        reached = np.cumsum(self.weights) >= total * percent / 100 * (1 - 1e-12)
        bucket = int(np.argmax(reached & (self.weights > 0)))
        if bucket == len(self.weights) - 1:
            return self.max
        low, high = float(EDGES[bucket]), float(EDGES[bucket + 1])
        return min(math.sqrt(low * high) if bucket else high, self.max)

    def mean(self) -> float:
        """The mean latency, to within a bucket's width; 0 if nothing was recorded."""
        centres = np.minimum((EDGES[:-1] + np.minimum(EDGES[1:], self.max)) / 2, self.max)
        return float(self.weights @ centres) / max(self.total, 1e-300)

    def merge(self, other: Histogram) -> None:
        """Adds all that another histogram holds."""
        self.weights += other.weights
        self.max = max(self.max, other.max)

    def summary(self) -> dict[str, float]:
        """How many records, and their latencies in milliseconds."""
        return {
            "records": round(self.total),
            "p50_ms": round(self.percentile(50) * 1e3, 1),
            "p99_ms": round(self.percentile(99) * 1e3, 1),
            "max_ms": round(self.max * 1e3, 1),
        }

    def to_json(self) -> dict[str, Any]:
        """The buckets that are not empty, by number."""
        used = np.flatnonzero(self.weights)
        return {"max": self.max, "buckets": {str(i): float(self.weights[i]) for i in used}}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Histogram:
        """What ``to_json`` gave."""
        histogram = cls()
        histogram.max = float(value["max"])
        for bucket, weight in value["buckets"].items():
            histogram.weights[int(bucket)] = weight
        return histogram


class Timeline:
    """Latencies by slots of the time at which records were due, whenever they were acknowledged.

    So a stall shows at its full length, as the slots in which records began to wait, and not as one slow
    moment at its end.
    """

    def __init__(self, begin: float, slot: float = SLOT_SECONDS) -> None:
        self.begin, self.slot = begin, slot
        self._spans: defaultdict[int, list[tuple[float, float, float]]] = defaultdict(list)

    def record(self, due_first: float, due_end: float, records: float, acknowledged: float) -> None:
        """Adds records that were due at an even pace, and acknowledged at one moment.

        They were due from ``due_first`` to before ``due_end``.
        """
        length = due_end - due_first
        if records <= 0:
            return
        if length <= 0:
            self._spans[self._slot(due_first)].append(
                (acknowledged - due_first, acknowledged - due_first, records)
            )
            return
        start, last = due_first, self._slot(due_first)
        while start < due_end:
            end = min(self.begin + (last + 1) * self.slot, due_end)
            if end > start:
                self._spans[last].append(
                    (acknowledged - end, acknowledged - start, records * (end - start) / length)
                )
                start = end
            last += 1

    def _slot(self, due: float) -> int:
        return math.floor((due - self.begin) / self.slot)

    def to_json(self) -> list[dict[str, float]]:
        """For each slot its start in seconds since the timeline's, and a summary of its records."""
        slots = []
        for number in sorted(self._spans):
            histogram = Histogram()
            for low, high, weight in self._spans[number]:
                histogram.record_span(low, high, weight)
            slots.append({"second": round(number * self.slot, 3), **histogram.summary()})
        return slots
