"""How many workers there were: from a file, or from what a query remembers of itself.

A file is CSV with a header, a time column (dates in ISO form, or numbers) and a column of numbers; times must
have a constant step, to within a thousandth, because what lies in a gap is not known. What is wrong raises
``InvalidInput`` that names file, line and entry.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

from sterna.configuration import MAX_WORKERS
from sterna.errors import InvalidInput
from sterna.planning.lines import Line, Sheet

JITTER = 1e-3
"""Clocks are not exact: steps that differ by no more than this part are the same."""


class _Entry(NamedTuple):
    """What a line says."""

    line: Line
    written: str
    time: float
    value: float


def series(
    path: str | Path, time: str | None = None, value: str | None = None
) -> tuple[list[float], list[float]]:
    """Times, in seconds where they are dates, and values.

    Args:
        path: a CSV file.
        time: the name of the time column; the first one unless given.
        value: the name of the column of numbers; the second one unless given.
    """
    entries = _entries(path, time, value)
    return [one.time for one in entries], [one.value for one in entries]


def counts(path: str | Path, time: str | None = None, count: str | None = None) -> list[int]:
    """The worker counts of a file, in order of time."""
    entries = _entries(path, time, count)
    for one in entries:
        if one.value != int(one.value) or not 1 <= one.value <= MAX_WORKERS:
            raise InvalidInput(
                f"{one.line.where}: a worker count must be a whole number from 1 to {MAX_WORKERS}, not "
                f"{one.value:g}"
            )
    return [int(one.value) for one in entries]


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
                f"migration {one['name']} changed operators differently: name one of "
                f"{', '.join(one['operators'])}"
            )
        found += [(before, after) for before, after in pairs if before != after]
    return found


def _entries(path: str | Path, time: str | None, value: str | None) -> list[_Entry]:
    """All lines of a file, at a constant step."""
    sheet = Sheet.read(path)
    if value is None and len(sheet.header) < 2:
        raise InvalidInput(
            f"{path} must have a time column and a column of numbers; it has only {sheet.header[0]!r}"
        )
    when = 0 if time is None else sheet.column(time)
    what = 1 if value is None else sheet.column(value)
    entries = [
        _Entry(line, line.entries[when], _seconds(line.entries[when], line.where), line.amount(what))
        for line in sheet.lines
    ]
    _check_kind(entries)
    _check_step(str(path), entries)
    return entries


def _check_kind(entries: Sequence[_Entry]) -> None:
    """Times are dates, or numbers."""
    for one in entries[1:]:
        if _is_number(one.written) != _is_number(entries[0].written):
            raise InvalidInput(
                f"{one.line.where}: {one.written!r}, and {entries[0].written!r} before it: times must be all "
                "dates, or all numbers"
            )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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


def _check_step(path: str, entries: Sequence[_Entry]) -> None:
    pairs = [*itertools.pairwise(entries)]
    if not pairs:
        return
    steps = [after.time - before.time for before, after in pairs]
    usual = statistics.median_low([step for step in steps if step > 0] or steps)
    # Times are floats: a step is no more exact than both of its ends.
    allowed = JITTER * usual + 2 * math.ulp(max(abs(one.time) for one in entries))
    for (before, after), step in zip(pairs, steps, strict=True):
        where = (
            f"{path}, lines {before.line.number} and {after.line.number}: from {before.written} to "
            f"{after.written}"
        )
        if step <= 0:
            raise InvalidInput(f"{where} time does not go forward")
        if abs(step - usual) > allowed:
            what = "there is a gap" if step > usual else "the step is shorter than the others"
            raise InvalidInput(f"{where} {what}: {_told(step)} instead of {_told(usual)}")


def _told(seconds: float) -> str:
    return str(timedelta(seconds=seconds)) if 60 <= seconds < 1e12 else f"{seconds:g}"
