"""How many workers a load needs, hour by hour: from files, or made up.

A load is averaged over hours. Its lowest hundredth is met by the fewest workers, its highest by the most, and
what lies between in proportion: without this cut a single spike would leave everything else with the fewest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sterna.errors import InvalidInput
from sterna.planning.history import series

Floats = npt.NDArray[np.float64]
HOUR = 3600.0


@dataclass(frozen=True)
class Trace:
    """The workers that a load needs.

    Attributes:
        name: whose load it is.
        counts: so many workers, one hour after the other.
    """

    name: str
    counts: tuple[int, ...]

    @property
    def half(self) -> int:
        """The first hour of the later half: what comes before it is known, and may be learnt from."""
        return len(self.counts) // 2


def of_folder(folder: str, fewest: int, most: int) -> list[Trace]:
    """The loads of all CSV files of a folder, by name."""
    paths = sorted(Path(folder).glob("*.csv"))
    if not paths:
        raise InvalidInput(f"there is no CSV file in {folder}")
    return [Trace(path.stem, needed(hourly(path), fewest, most)) for path in paths]


def made_up(days: int, fewest: int, most: int, seed: int) -> Trace:
    """A load that rises and falls with the day, is lower at weekends, and has noise and spikes."""
    random = np.random.default_rng(seed)
    hours = np.arange(24 * days)
    daily = 1 + 0.6 * np.sin(2 * np.pi * (hours - 9) / 24)
    weekly = np.where(hours // 24 % 7 < 5, 1.0, 0.7)
    noise = random.lognormal(0, 0.15, len(hours))
    spikes = np.where(random.random(len(hours)) < 0.01, random.uniform(1.5, 3, len(hours)), 1.0)
    return Trace(f"made up, seed {seed}", needed(daily * weekly * noise * spikes, fewest, most))


def hourly(path: Path) -> Floats:
    """The mean load of each whole hour."""
    times, values = series(path)
    step = times[1] - times[0] if len(times) > 1 else HOUR
    each = max(1, round(HOUR / step))
    if len(values) < 2 * each:
        raise InvalidInput(f"{path} must have two hours at least, to learn from the one and try the other")
    whole = len(values) // each * each
    return np.asarray(np.reshape(values[:whole], (-1, each)).mean(axis=1))


def needed(loads: Floats, fewest: int, most: int) -> tuple[int, ...]:
    """Workers in proportion; see the module's docstring.

    Example:
        >>> needed(np.array([0.0, 5.0, 10.0]), 8, 16)
        (8, 12, 16)
    """
    low, high = np.quantile(loads, [0.01, 0.99])
    if high <= low:
        raise InvalidInput("the load never changes, so there is nothing to plan")
    part = np.clip((loads - low) / (high - low), 0, 1)
    return tuple(int(count) for count in np.rint(fewest + part * (most - fewest)))
