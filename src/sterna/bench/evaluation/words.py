"""How amounts are said, and how two of them compare: the judgements that choose the page's sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sterna.bench.evaluation.entries import Entry
from sterna.readable import DASH, ratio

ALIKE = 1.15
"""Amounts within this factor of each other are called about the same: rounds differ by more than that."""
VISIBLE = 1.25
"""A latency within this factor of the quiet time's is not told apart from it."""
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def factor(value: float | None) -> str:
    """How many times as much, with two figures behind the point where it matters.

    >>> factor(1.394), factor(15.656), factor(None)
    ('1.39×', '15.7×', '–')
    """
    if value is None:
        return DASH
    return f"{value:.2f}×" if value < 9.995 else ratio(value)


def share(value: float | None) -> str:
    """A share as a percentage."""
    return DASH if value is None else f"{value:.1%}".replace("%", " %")


def power(number: float) -> str:
    """A power of two as such, any other number as it is.

    >>> power(4096), power(1), power(12)
    ('2¹²', '2⁰', '12')
    """
    whole = int(number)
    if whole > 0 and whole & (whole - 1) == 0:
        return f"2{str(whole.bit_length() - 1).translate(SUPERSCRIPTS)}"
    return f"{number:,.0f}"


def short(number: float) -> str:
    """A large number in few characters.

    >>> short(4_194_304), short(64e6), short(85_742), short(512)
    ('4.19M', '64M', '85.7k', '512')
    """
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}" if number < 1e9 else f"{number / size:,.0f}{unit}"
    return f"{number:,.0f}"


def changed(value: float) -> str:
    """What a ratio of an amount to what it was before means.

    >>> changed(1.1), changed(1.62), changed(0.4)
    ('stays about the same (1.10×)', 'grows (1.62×)', 'falls (0.40×)')
    """
    if 1 / ALIKE <= value <= ALIKE:
        return f"stays about the same ({factor(value)})"
    return f"{'grows' if value > 1 else 'falls'} ({factor(value)})"


def spread(entry: Entry, name: str, say: Callable[[float | None], str]) -> str:
    """A median, with the least and the greatest of all rounds."""
    middle, least, most = (entry.maybe(name, which) for which in ("median", "least", "greatest"))
    if middle is None:
        return DASH
    if least is None or most is None or least == most:
        return say(middle)
    return f"{say(middle)} ({say(least)} to {say(most)})"


def code(name: str) -> str:
    """A name as it is typed."""
    return f"`{name}`"


def listed(items: Iterable[str], word: str = "and") -> str:
    """Several things in a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    every = list(items)
    return f" {word} ".join(part for part in (", ".join(every[:-1]), *every[-1:]) if part)


def capital(sentence: str) -> str:
    """A sentence with a capital letter."""
    return sentence[:1].upper() + sentence[1:]
