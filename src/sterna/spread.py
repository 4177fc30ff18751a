"""A distribution of durations in a few numbers: counts in logarithmic buckets.

It is small enough to be kept with every manifest. A bucket is 2 % wide. ``percentile`` gives the upper edge
of a bucket, so it is never too good by more than that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

WIDTH = math.log(1.02)


@dataclass(frozen=True)
class Spread:
    """Durations in milliseconds; adding makes a new one."""

    counts: Mapping[int, int] = field(default_factory=dict)
    largest: float = 0.0

    @classmethod
    def of(cls, durations: Iterable[float]) -> Spread:
        """The distribution of some durations."""
        out = cls()
        for duration in durations:
            out = out.plus(duration)
        return out

    def plus(self, duration: float) -> Spread:
        """With one more."""
        bucket = math.ceil(math.log(max(duration, 0.01)) / WIDTH)
        counts = {**self.counts, bucket: self.counts.get(bucket, 0) + 1}
        return Spread(counts, max(self.largest, duration))

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(self.counts.values())

    def percentile(self, percent: float) -> float | None:
        """What so many percent stay within; ``None`` if there are none."""
        wanted = self.count * percent / 100
        seen = 0
        for bucket, count in sorted(self.counts.items()):
            seen += count
            if seen >= wanted:
                return min(math.exp(bucket * WIDTH), self.largest)
        return None

    def summary(self) -> dict[str, Any]:
        """What people want to know of it."""
        if not self.counts:
            return {"epochs": 0}
        p50, p99 = self.percentile(50), self.percentile(99)
        assert p50 is not None
        assert p99 is not None
        return {
            "epochs": self.count,
            "p50_ms": round(p50, 1),
            "p99_ms": round(p99, 1),
            "max_ms": round(self.largest, 1),
        }

    def to_json(self) -> list[Any]:
        """The stored form."""
        return [sorted(self.counts.items()), self.largest]

    @classmethod
    def from_json(cls, data: Any) -> Spread:
        """The inverse of ``to_json``."""
        counts, largest = data
        return cls({int(bucket): int(count) for bucket, count in counts}, float(largest))
