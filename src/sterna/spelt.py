"""Targets, strategies and times as people spell them on the command line.

In: the text of options. Out: a target, a strategy as the control stream has it, a time. ``InvalidInput`` with
what would be right, if they make no sense. Pure, but for the file that a target may be in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sterna import strategies
from sterna.control import When, event_time, parse_when
from sterna.durations import seconds
from sterna.errors import InvalidInput
from sterna.targets import Target, balance, bins, explicit, rescale

UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def target_of(
    workers: int | None,
    count: int | None,
    even: bool,
    moves: list[str] | None,
    file: Path | None,
    planner: str | None = None,
    tau: str | None = None,
) -> Target:
    """The one target that the options name."""
    given = [workers is not None, count is not None, even, bool(moves), file is not None]
    if sum(given) != 1:
        raise InvalidInput("name one target: --workers, --bins, --balance, --move or --target")
    if workers is None and not even and (planner or tau):
        raise InvalidInput("--planner and --tau go with --workers or --balance")
    if workers is not None:
        return rescale(workers, planner, _tau(tau))
    if count is not None:
        return bins(count)
    if even:
        return balance(planner, _tau(tau))
    if file is not None:
        try:
            written = json.loads(file.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{file} is not JSON: {error}") from error
        return Target.from_json(written)
    return explicit([pair for move in moves or [] for pair in _pairs(move)])


def _tau(text: str | None) -> float | str | None:
    """A number where it is one; what is wrong with another text, the target says."""
    try:
        return text if text is None else float(text)
    except ValueError:
        return text


def _pairs(text: str) -> list[tuple[int, int]]:
    match = re.fullmatch(r"(\d+)(?:-(\d+))?:(\d+)", text.strip())
    if match is None:
        raise InvalidInput(f"{text!r} is not a move; write 0-31:2 for the bins 0 to 31 to worker 2, or 7:0")
    first = int(match.group(1))
    last = int(match.group(2) or first)
    if last < first or last - first > 1 << 20:
        raise InvalidInput(f"{text!r} is no range of bins")
    return [(bin_, int(match.group(3))) for bin_ in range(first, last + 1)]


def strategy_of(text: str, order: str, gap: int) -> dict[str, Any]:
    """A strategy from what people type.

    >>> strategy_of("batched:16", "largest", 0)
    {'name': 'batched', 'order': 'largest', 'size': 16}
    """
    name, _, option = text.partition(":")
    name = name.strip()
    ours = name.replace("-", "_")
    common: dict[str, Any] = {"order": order, "gap": gap}
    made: dict[str, Callable[[], strategies.Strategy]] = {
        "all_at_once": lambda: strategies.all_at_once(order=order),
        "fluid": lambda: strategies.fluid(**common),
        "matched": lambda: strategies.matched(**common),
        "batched": lambda: strategies.batched(_count(text, option), **common),
        "paced": lambda: strategies.paced(**_pace(option), **common),
    }
    if ours in made:
        if option and ours in ("all_at_once", "fluid", "matched"):
            raise InvalidInput(f"{text!r}: {ours} takes nothing after a colon")
        if gap and ours == "all_at_once":
            raise InvalidInput("all_at_once has one step, so there is no gap between steps")
        return strategies.to_json(made[ours]())
    if option or order != "as_given" or gap:
        raise InvalidInput(f"there is no strategy {text!r}, and one of your own takes no options here")
    return {"name": name}


def _count(text: str, option: str) -> int:
    if not option.strip().isdecimal():
        raise InvalidInput(f"{text!r}: write batched:16 for 16 bins a step")
    return int(option)


def _pace(option: str) -> dict[str, Any]:
    if not option.strip():
        raise InvalidInput("paced needs a pace: write paced:200ms, or paced:8MB for so many bytes an epoch")
    size = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*((?:[kmg]i?)?b)\s*", option.lower())
    if size is None:
        try:
            return {"latency": seconds(option)}
        except InvalidInput:
            # What durations say of themselves is for Python, where a number of seconds may be given too.
            raise InvalidInput(
                f"{option!r} is not a duration, nor a number of bytes: write paced:200ms, or paced:8MB for "
                "so many bytes an epoch"
            ) from None
    return {"bytes_per_epoch": int(float(size.group(1)) * UNITS[size.group(2).upper()])}


def when_of(at: str | None) -> When:
    """A time from what people type.

    >>> when_of("7"), when_of("event:1970-01-01T00:00:01Z")
    ({'epoch': 7}, {'event': 1000000})
    """
    if at is not None and at.startswith("event:"):
        return parse_when(event_time(at[len("event:") :].strip()))
    return parse_when(int(at) if at is not None and at.isdecimal() else at)
