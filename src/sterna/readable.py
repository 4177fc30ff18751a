"""Amounts as people read them: three figures and a unit that fits.

Every function takes ``None`` and what is no finite number for "not known" and answers with a dash, so that a
table with gaps needs no special cases.

>>> duration(0.085), duration(2.314), duration(754)
('85 ms', '2.31 s', '12 min 34 s')
>>> size(98_304_000), count(12_500), ratio(1.375), count(None)
('98.3 MB', '12,500', '1.4×', '–')
"""

from __future__ import annotations

import math

DASH = "–"
_SIZES = ("kB", "MB", "GB", "TB", "PB")


def known(value: float | None) -> float | None:
    """The value, if it is a finite number that is not negative."""
    if value is None or not math.isfinite(value) or value < 0:
        return None
    return float(value)


def figures(value: float) -> str:
    """Three significant figures, and no more than that behind the point."""
    if value >= 99.95:
        return f"{value:,.0f}"
    if value >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}"


def duration(seconds: float | None) -> str:
    """Seconds, in milliseconds below one and in minutes above ninety."""
    seconds = known(seconds)
    if seconds is None:
        return DASH
    if seconds == 0:
        return "0 ms"
    if seconds < 0.9995:
        milliseconds = seconds * 1000
        return f"{milliseconds:.0f} ms" if milliseconds >= 9.5 else f"{milliseconds:.1f} ms"
    if seconds < 90:
        return f"{figures(seconds)} s"
    whole = round(seconds)
    return f"{whole // 60:,} min {whole % 60:02d} s"


def milliseconds(value: float | None) -> str:
    """A duration that is given in milliseconds."""
    value = known(value)
    return DASH if value is None else duration(value / 1000)


def size(number: float | None) -> str:
    """Bytes, in powers of a thousand."""
    number = known(number)
    if number is None:
        return DASH
    if number < 999.5:
        return f"{number:.0f} B"
    unit = ""
    for unit in _SIZES:  # noqa: B007 - the last one is used
        number /= 1000
        if number < 999.5:
            break
    return f"{figures(number)} {unit}"


def count(number: float | None) -> str:
    """A whole number, its thousands apart."""
    number = known(number)
    return DASH if number is None else f"{number:,.0f}"


def ratio(value: float | None) -> str:
    """How many times as much."""
    value = known(value)
    if value is None:
        return DASH
    return f"{value:.1f}×" if value < 99.95 else f"{value:,.0f}×"


def times(value: float | None, reference: float | None) -> float | None:
    """How many times ``reference`` the value is, where both are known and that means something.

    >>> times(30, 10), times(30, 0), times(None, 10)
    (3.0, None, None)
    """
    value, reference = known(value), known(reference)
    if value is None or not reference:
        return None
    return known(value / reference)
