"""Checks of controllers and their options: what is wrong raises ``InvalidInput`` that names it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from sterna import strategies
from sterna.configuration import check_workers
from sterna.controllers.verdict import Controller, name_of
from sterna.durations import seconds
from sterna.errors import InvalidInput
from sterna.strategies import Strategy


def number(option: str, value: Any, above: float, most: float = math.inf) -> float:
    """A number greater than ``above`` and not greater than ``most``.

    >>> number("utilisation", 0.7, 0, 1)
    0.7
    """
    fits = isinstance(value, int | float) and not isinstance(value, bool) and above < value <= most
    if not fits or not math.isfinite(value):
        limit = f"a number above {above:g}" + ("" if most == math.inf else f" and up to {most:g}")
        raise InvalidInput(f"{option} must be {limit}, not {value!r}")
    return float(value)


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
        return seconds(value)
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
        if not callable(one) or isinstance(one, type):
            raise InvalidInput(f"{one!r} in controllers is not a controller: a function of a view")
        called, operator = name_of(one), getattr(one, "operator", None)
        if called in names:
            raise InvalidInput(f"two controllers are called {called!r}; give each a name of its own (name=)")
        names.add(called)
        if isinstance(operator, str) and operator not in known:
            raise InvalidInput(
                f"controller {called!r}: operator {operator!r} does not exist; there are {known}"
            )
    return found
