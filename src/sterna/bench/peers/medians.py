"""What several rounds come to: medians, and Sterna's ratio to each peer.

The ratio is taken round by round, or, where rounds are missing because they failed, of the medians.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any


def rates(found: dict[str, list[float]], rounds: int) -> dict[str, Any]:
    """Of each system's records a second, a figure for each of so many rounds, without those that failed.

    Example:
        >>> told = rates({"sterna": [300.0, 200.0, 100.0], "flink": [100.0, 50.0, 100.0], "spark": []}, 3)
        >>> told["sterna_records_per_second"], told["flink_rounds"], told["ratio_to_flink"]
        (200, [100, 50, 100], 3.0)
        >>> rates({"sterna": [300.0, 200.0, 100.0], "flink": [100.0]}, 3)["ratio_to_flink"]
        2.0
        >>> rates({"sterna": [300.0, 100.0], "flink": [100.0, 50.0]}, 3)["ratio_to_flink"]  # of which rounds?
        2.67
    """
    out: dict[str, Any] = {}
    for name, measured in found.items():
        if measured:
            out[f"{name}_records_per_second"] = round(statistics.median(measured))
            out[f"{name}_rounds"] = [round(rate) for rate in measured]
    mine = found.get("sterna", [])
    for name, theirs in found.items():
        if name == "sterna" or not mine or not theirs or not all(theirs):
            continue
        if len(mine) == len(theirs) == rounds:
            ratio = statistics.median(a / b for a, b in zip(mine, theirs, strict=True))
        else:
            ratio = statistics.median(mine) / statistics.median(theirs)
        out[f"ratio_to_{name}"] = round(ratio, 2)
    return out


def laps(name: str, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The medians of a system's laps, as ``Lap.to_json`` tells them.

    A figure that was not seen counts as larger than all that were, and ``wrong_keys`` is the largest.
    """

    def middle(pick: Callable[[dict[str, Any]], float | None]) -> float | None:
        values = [math.inf if value is None else value for value in map(pick, rounds)]
        median = statistics.median(values)
        return None if median == math.inf else round(median, 2)

    return {
        "system": name,
        **{
            f"{when}_{what}": middle(lambda one, when=when, what=what: one[when][what])  # type: ignore[misc]
            for when in ("before", "during")
            for what in ("p50_ms", "p99_ms", "max_ms")
        },
        "completed_seconds": middle(lambda one: one["completed_seconds"]),
        "back_seconds": middle(lambda one: one["back_seconds"]),
        "increase_ms": middle(lambda one: one["increase_ms"]),
        "wrong_keys": max(one["wrong_keys"] for one in rounds),
        "rounds": rounds,
    }
