"""Does a migration cost anything afterwards?

Method. Two queries with the same state and workers. In rounds, in an order that is reversed every other
round, the maximum rate of both is measured; then one of them moves a quarter of its state there and back, bin
by bin, while the other gets as much input and moves nothing; then as many rounds again. What is looked at is
by how much the one is faster or slower than the other in a round, so that a machine that changes in between
does not count. ``change`` is the mean of that afterwards minus the mean before, with its 95 % interval
(Welch's t).
"""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any

from sterna.bench import ceiling, harness
from sterna.bench.phases import Phase
from sterna.bench.place import Place, filled
from sterna.bench.trial import Part, trial

if TYPE_CHECKING:
    from sterna.bench.laboratory import Laboratory


# The 97.5 % quantile of Student's t for 1, 2, 3, … degrees of freedom; beyond them that of the normal
# distribution, nearly.
QUANTILES = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


def afterwards(lab: Laboratory) -> dict[str, Any]:
    """See the module's docstring."""
    state = lab.sizes.afterwards
    size = (state.keys, state.payload, 2**state.power)
    places = {
        name: filled(lab.spark, str(lab.root / f"{name}"), *size, lab.sizes.pressure, lab.say)
        for name in ("control", "moved")
    }
    rounds = max(2, lab.rounds)
    before = [_round(lab, places, number, rounds) for number in range(rounds)]
    lab.say("moving there and back")
    steps, rate = 0, places["moved"].rate
    for _ in ("there", "back"):
        first = places["moved"].first
        (found,), _ = trial(
            lab.spark,
            places["moved"],
            [Part(2**state.power, ["matched"])],
            lab.sizes.sweep,
            rate=rate,
            settings_folder=str(lab.root),
        )
        steps += found["matched"]["steps"]
        _feed(lab, places["control"], rate, (places["moved"].first - first) / rate)
    after = [_round(lab, places, number, rounds) for number in range(rounds)]
    change, low, high = interval([_lead(one) for one in before], [_lead(one) for one in after])
    result = {
        "keys": state.keys,
        "bins": 2**state.power,
        "strategy": "matched",
        "steps": steps,
        "before": before,
        "after": after,
        "change": round(change, 4),
        "interval": [round(low, 4), round(high, 4)],
    }
    goals = {"interval_contains_zero": low <= 0 <= high, "interval_width": round(high - low, 4)}
    return {"results": [result], "goals": goals}


def _feed(lab: Laboratory, place: Place, rate: float, seconds: float) -> None:
    """As much input as the other one had."""
    result = harness.run(
        lab.spark,
        place.subject(),
        place.folder,
        [Phase("nothing moves", seconds)],
        rate=rate,
        records=place.records,
        first=place.first,
        window=lab.sizes.sweep.window,
        settings_folder=str(lab.root),
    )
    place.first = result["next_record"]


def _round(lab: Laboratory, places: dict[str, Place], number: int, rounds: int) -> dict[str, float]:
    lab.say(f"rows a second, round {number + 1} of {rounds}")
    out = {}
    for name in list(places) if number % 2 == 0 else reversed(list(places)):
        place, pressure = places[name], lab.sizes.pressure
        found = ceiling.maximum_rate(
            lab.spark,
            place.subject(),
            place.folder,
            place.records,
            first=place.first,
            epoch_seconds=pressure.epoch,
            warm=pressure.warm,
            seconds=pressure.seconds,
        )
        place.first = found.next_record
        out[name] = round(found.rate, 1)
    return {name: out[name] for name in places}


def _lead(one: dict[str, float]) -> float:
    """By which share the migrated query is faster than the other."""
    return one["moved"] / one["control"] - 1


def interval(before: list[float], after: list[float]) -> tuple[float, float, float]:
    """The difference of two means, and its 95 % interval; at least two values each.

    Example:
        >>> change, low, high = interval([0.0, 0.02, -0.02], [0.1, 0.12, 0.08])
        >>> round(change, 2), low > 0
        (0.1, True)
    """
    change = statistics.mean(after) - statistics.mean(before)
    parts = [statistics.variance(values) / len(values) for values in (before, after)]
    if not sum(parts):
        return change, change, change
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(values) - 1) for part, values in zip(parts, (before, after), strict=True)
    )
    # A little wide rather than narrow: for fewer degrees of freedom, rounded down.
    quantile = QUANTILES[min(max(int(freedom), 1), len(QUANTILES)) - 1]
    width = quantile * math.sqrt(sum(parts))
    return change, change - width, change + width
