"""How many workers there were: from a file, or from what a query remembers of itself.

A file is CSV with a header, a time column (dates in ISO form, or numbers) and a column of numbers; times must have a constant step, because what lies in a gap is not known. What
is wrong raises ``InvalidInput`` that names file, line and entry.
"""

from __future__ import annotations

import collections
import csv
import itertools
import math
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

from sterna.errors import InvalidInput

JITTER = 1e-6
"""Times are floats: steps that differ by no more than this part are the same."""


def series(
    path: str | Path, time: str | None = None, value: str | None = None
) -> tuple[list[float], list[float]]:
    """Times, in seconds where they are dates, and values.

    Args:
        path: a CSV file.
        time: the name of the time column; the first one unless given.
        value: the name of the column of numbers; the second one unless given.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            lines = [line for line in csv.reader(file) if line]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{path} can't be read: {error}") from error
    if len(lines) < 2:
        raise InvalidInput(f"{path} must have a header and at least one line")
    at = [_column(path, lines[0], name, usual) for name, usual in ((time, 0), (value, 1))]
    times, values = [], []
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(lines[0]):
            raise InvalidInput(
                f"{path}, line {number}: {len(line)} entries, and the header has {len(lines[0])}"
            )
        times.append(_seconds(line[at[0]], f"{path}, line {number}"))
        values.append(_number(line[at[1]], f"{path}, line {number}"))
    _check_step(str(path), times, [line[at[0]] for line in lines[1:]])
    return times, values


def counts(path: str | Path, time: str | None = None, count: str | None = None) -> list[int]:
    """The worker counts of a file, in order of time."""
    _, values = series(path, time, count)
    for number, one in enumerate(values, start=2):
        if one != int(one) or one < 1:
            raise InvalidInput(
                f"{path}, line {number}: a worker count must be a whole number from 1 on, not {one:g}"
            )
    return [int(one) for one in values]


def changes(history: Sequence[int]) -> list[tuple[int, int]]:
    """From how many workers to how many, each time that this changed.

    Example:
        >>> changes([2, 2, 3, 3, 2])
        [(2, 3), (3, 2)]
    """
    return [(before, after) for before, after in itertools.pairwise(history) if before != after]


def changes_of_query(checkpoint: str, operator: str | None = None) -> list[tuple[int, int]]:
    """From how many workers to how many, for each migration of a query that came to its end and changed this.

    Args:
        checkpoint: the query's checkpoint location.
        operator: whose; may be left out if all operators agree.
    """
    from sterna.remote import Remote  # noqa: PLC0415 - planning alone needs no engine

    found = []
    for one in Remote(checkpoint).history():
        if one["status"] != "done":
            continue
        pairs = {
            (placed["from"]["workers"], placed["to"]["workers"])
            for name, placed in one["operators"].items()
            if operator in (None, name)
        }
        if len(pairs) > 1:
            raise InvalidInput(
                f"migration {one['name']} changed operators differently: name one of {', '.join(one['operators'])}"
            )
        found += [(before, after) for before, after in pairs if before != after]
    return found


def _column(path: str | Path, header: list[str], name: str | None, usual: int) -> int:
    if name is None:
        if len(header) <= usual:
            raise InvalidInput(
                f"{path} must have a time column and a column of numbers; it has only {header[0]!r}"
            )
        return usual
    if name not in header:
        raise InvalidInput(f"{path} has no column {name!r}, only {', '.join(map(repr, header))}")
    return header.index(name)


def _number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise InvalidInput(f"{where}: {text!r} must be a number from 0 on")
    return number


def _seconds(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
        except ValueError:
            raise InvalidInput(
                f"{where}: {text!r} is no time; write 2026-12-01T03:00:00 or a number"
            ) from None
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
    if not math.isfinite(number):
        raise InvalidInput(f"{where}: {text!r} is no time")
    return number


def _check_step(path: str, times: list[float], texts: list[str]) -> None:
    steps = [after - before for before, after in itertools.pairwise(times)]
    if not steps:
        return
    usual = collections.Counter(steps).most_common(1)[0][0]
    for number, step in enumerate(steps):
        where = f"{path}, lines {number + 2} and {number + 3}: from {texts[number]} to {texts[number + 1]}"
        if step <= 0:
            raise InvalidInput(f"{where} time does not go forward")
        if abs(step - usual) > JITTER * abs(usual):
            what = "there is a gap" if step > usual else "the step is shorter than the others"
            raise InvalidInput(f"{where} {what}: {_told(step)} instead of {_told(usual)}")


def _told(seconds: float) -> str:
    return str(timedelta(seconds=seconds)) if seconds >= 60 else f"{seconds:g}"
