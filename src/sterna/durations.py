"""Durations as people write them: seconds as a number, or text.

Text is ``"10 seconds"``, ``"5 minutes"`` and so on, as Spark takes them.
"""

from __future__ import annotations

import math
import re

from sterna.errors import InvalidInput

UNITS = {
    "microsecond": 1e-6,
    "us": 1e-6,
    "millisecond": 1e-3,
    "ms": 1e-3,
    "second": 1.0,
    "s": 1.0,
    "minute": 60.0,
    "min": 60.0,
    "hour": 3600.0,
    "h": 3600.0,
    "day": 86400.0,
    "d": 86400.0,
    "week": 604800.0,
}
UNCLEAR = {
    "m": "'m' could be minutes or milliseconds: write {0}min or {0}ms",
    "u": "microseconds are 'us': write {0}us",
}
"""Letters that people write for a unit, each with what to write instead."""


def seconds(duration: str | float) -> float:
    """A duration in seconds.

    >>> seconds("5 minutes"), seconds(2), seconds("250ms")
    (300.0, 2.0, 0.25)
    """
    if isinstance(duration, int | float) and not isinstance(duration, bool):
        value = float(duration)
    else:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", str(duration).lower())
        unit = match.group(2) if match else ""
        if match is not None and unit in UNCLEAR:
            raise InvalidInput(f"{duration!r} is not a duration: {UNCLEAR[unit].format(match.group(1))}")
        # Words have a plural; with an s more or less, a short name is another unit or none.
        word = unit.removesuffix("s")
        unit = word if len(word) > 3 else unit
        if match is None or unit not in UNITS:
            raise InvalidInput(
                f"{duration!r} is not a duration; write it as '200 ms', '10 seconds' or '5 minutes', or as a "
                "number (not text) of seconds"
            )
        value = float(match.group(1)) * UNITS[unit]
    if not 0 <= value < math.inf:
        raise InvalidInput(f"a duration can be neither negative nor endless: {duration!r}")
    return value
