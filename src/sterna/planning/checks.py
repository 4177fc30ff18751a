"""What callers give, checked.

What is wrong raises ``InvalidInput`` that names the entry and says what would be right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from sterna.configuration import MAX_WORKERS
from sterna.errors import InvalidInput, check_whole, short

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def check_tau(tau: Any) -> float:
    """A tau as a number, where ``"least"`` would have been right too."""
    return check_number("tau", tau, ", or 'least'")


def check_number(what: str, value: Any, others: str = "") -> float:
    """A number from 0 on; ``others`` says what else would be right."""
    number = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    if not 0 <= number < math.inf:
        raise InvalidInput(f"{what} is {value!r}: it must be a number from 0 on{others}")
    return number


def listed(what: str, values: Any) -> list[Any]:
    """All entries of a list, or of anything else that has some one after the other.

    Example:
        >>> listed("counts", 3)
        Traceback (most recent call last):
        sterna.errors.InvalidInput: counts is 3: it must be a list
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        raise InvalidInput(f"{what} is {values!r}: it must be a list")
    return list(values)


def whole(what: str, value: Any, least: int) -> int:
    """A whole number, Python's or NumPy's, not less than the least."""
    number = int(value) if isinstance(value, np.integer) else value
    check_whole(what, number, least)
    return int(number)


def numbers(what: str, values: Any, count: int | None = None, of: str = "bin") -> Floats:
    """Numbers from 0 on, as an array of their own: so many of them, or any number.

    Args:
        what: what each of them is.
        values: a list or an array; texts are no numbers, whatever they say, and what is masked is missing.
        count: how many there must be.
        of: what there is one for each of.

    Example:
        >>> numbers("size", [1, "2"], 2)
        Traceback (most recent call last):
        sterna.errors.InvalidInput: the size of bin 1 is '2': it must be a number from 0 on
    """
    array = np.asarray(values) if isinstance(values, np.ndarray) else np.array(values, np.object_)
    if array.ndim != 1:
        raise InvalidInput(f"the {what}s must be a list of numbers, one for each {of}")
    if count is not None and len(array) != count:
        raise InvalidInput(f"there are {count} {of}s and {len(array)} {what}s: each {of} must have one")
    given = array.tolist()
    plain = array.dtype.kind in "biuf"
    floats = array.astype(np.float64) if plain else np.array([float_of(one) for one in given], np.float64)
    wrong = ~(np.isfinite(floats) & (floats >= 0))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InvalidInput(f"the {what} of {of} {at} is {given[at]!r}: it must be a number from 0 on")
    _check_unmasked(what, values, of)
    with np.errstate(over="ignore"):
        if not np.isfinite(floats.sum()):
            raise InvalidInput(f"the {what}s add up to more than a number can hold")
    return floats


def workers_of(assignment: Any) -> Ints:
    """The worker of each bin, as an array of its own."""
    must = "the assignment must be a list of whole numbers, one for each bin"
    try:
        owners = np.asarray(assignment)
    except ValueError:  # lists of several lengths
        owners = np.array(assignment, np.object_)
    if owners.ndim != 1 or not len(owners):
        raise InvalidInput(must)
    _check_unmasked("worker", assignment, "bin")
    if owners.dtype.kind not in "iu":
        given = owners.tolist()
        others = [
            at for at, one in enumerate(given) if isinstance(one, bool) or not isinstance(one, Integral)
        ]
        if others:
            at = next((at for at in others if not float_of(given[at]).is_integer()), others[0])
            raise InvalidInput(f"the worker of bin {at} is {short(given[at])}: {must}")
    wrong = np.asarray((owners < 0) | (owners >= MAX_WORKERS), np.bool_)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InvalidInput(
            f"the worker of bin {at} is {owners[at]}: it must be a number from 0 to {MAX_WORKERS - 1}"
        )
    return owners.astype(np.int64)


def float_of(value: Any) -> float:
    """A number as a float; NaN for what is none: texts, complex numbers, lists, what is masked."""
    if isinstance(value, str | bytes | np.complexfloating) or value is np.ma.masked:
        return math.nan
    if isinstance(value, np.ndarray) and value.ndim:
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _check_unmasked(what: str, values: Any, of: str) -> None:
    masked = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else np.zeros(0, np.bool_)
    if masked.any():
        raise InvalidInput(f"the {what} of {of} {int(np.argmax(masked))} is masked: each {of} must have one")
