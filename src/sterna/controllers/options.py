"""Checks of controllers and their options: what is wrong raises ``InvalidInput`` that names it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

from sterna import strategies
from sterna.configuration import check_workers
from sterna.controllers.verdict import Controller, is_controller, name_of
from sterna.durations import seconds
from sterna.errors import InvalidInput
from sterna.strategies import Strategy


def number(
    option: str,
    value: Any,
    *,
    least: float = 0.0,
    above: float | None = None,
    most: float = math.inf,
    or_else: str = "",
) -> float:
    """A number within limits, of Python or NumPy; ``InvalidInput`` names the option and the limits.

    Args:
        option: what it is for.
        value: what was given.
        least: it must be no less than this.
        above: it must be greater than this; then ``least`` does not count.
        most: it must be no greater than this.
        or_else: what else would be right, for the message.

    >>> number("utilisation", 0.7, above=0, most=1)
    0.7
    """
    given = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    enough = given >= least if above is None else given > above
    if not (math.isfinite(given) and enough and given <= most):
        limits = f"from {least:g} on" if above is None else f"above {above:g}"
        limits += "" if most == math.inf else f" and up to {most:g}"
        raise InvalidInput(f"{option} must be a number {limits}{or_else}, not {value!r}")
    return given


def workers(option: str, value: Any) -> int:
    """A number of workers."""
    try:
        return check_workers(value)
    except InvalidInput as error:
        raise InvalidInput(f"{option}: {error}") from error


def span(option: str, value: Any) -> float:
    """A duration, in seconds.

    >>> span("cool_down", "2 minutes")
    120.0
    """
    try:
        return seconds(value if isinstance(value, bool) or not isinstance(value, Real) else float(value))
    except InvalidInput as error:
        raise InvalidInput(f"{option}: {error}") from error


def strategy(value: Any) -> Strategy | None:
    """A strategy that the control stream can name, or none."""
    if value is None:
        return None
    try:
        strategies.to_json(value)
    except InvalidInput as error:
        raise InvalidInput(f"strategy: {error}") from error
    checked: Strategy = value
    return checked


def name(option: str, value: Any) -> str | None:
    """A name, or none."""
    if value is not None and (not isinstance(value, str) or not value):
        raise InvalidInput(f"{option} must be a name, not {value!r}")
    return value


def checked(controllers: Any, operators: Iterable[str]) -> list[Controller]:
    """The controllers of a query with these operators; ``InvalidInput`` names what is wrong with them."""
    if not isinstance(controllers, Iterable) or isinstance(controllers, str | Mapping):
        raise InvalidInput(f"controllers must be a list of controllers, not {controllers!r}")
    found, known = list(controllers), sorted(operators)
    names: set[str] = set()
    for one in found:
        if not is_controller(one):
            raise InvalidInput(f"{one!r} in controllers is not a controller: a function of a view")
        called, operator = name_of(one), getattr(one, "operator", None)
        if called in names:
            raise InvalidInput(
                f"two controllers are called {called!r}; give each a name of its own: the option name= of a "
                "controller of Sterna, an attribute name of a function or object of your own"
            )
        names.add(called)
        if isinstance(operator, str) and operator not in known:
            raise InvalidInput(
                f"controller {called!r}: operator {operator!r} does not exist; there are {known}"
            )
    return found
