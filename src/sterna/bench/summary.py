"""From the durations of epochs to figures.

Rows a second are all rows over all the time of the measured epochs, so an epoch that compacts or takes a
snapshot weighs what it weighed. The median is of all measured epochs; ``rounds`` gives the median of each
round, so that a reader sees how much of a difference is noise.
"""

from __future__ import annotations

import statistics
from typing import Any

from sterna.bench.rig import Lane


def pooled(lane: Lane) -> list[float]:
    """The durations of all rounds together, in milliseconds."""
    return [value for round_ in lane.rounds for value in round_]


def median(lane: Lane) -> float:
    """The median epoch, in milliseconds."""
    return statistics.median(pooled(lane))


def rows_per_second(lane: Lane, rows: int) -> float:
    """Rows a second over all measured epochs."""
    times = pooled(lane)
    return rows * len(times) / (sum(times) / 1000)


def figures(lane: Lane, rows: int, prefix: str = "") -> dict[str, Any]:
    """What is reported of one lane."""
    times = pooled(lane)
    return {
        f"{prefix}rows_per_second": round(rows_per_second(lane, rows)),
        f"{prefix}epoch_ms_p50": round(median(lane), 1),
        f"{prefix}epoch_ms_min": round(min(times), 1),
        f"{prefix}epoch_ms_max": round(max(times), 1),
        f"{prefix}epochs": len(times),
        f"{prefix}rounds": [round(statistics.median(round_), 1) for round_ in lane.rounds],
    }
