"""The controllers of a query, each with what it has said; and how that gets into the history.

The same again is not written again, though its numbers may differ. A checkpoint that can't be written is not
the controllers' business: the query itself will meet the same trouble and report it.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sterna.controllers.verdict import OFF, AdviceOnly, Controller, Said, Verdict
from sterna.errors import StateError
from sterna.history import CONTROLLER, History

SAID = 64
"""How many of its own words a controller is shown."""

_AMOUNT = re.compile(r"[\d.,]*\d\s?\w*")


@dataclass
class Member:
    """A controller of a query.

    Attributes:
        controller: the controller.
        name: what it is called.
        said: its last words.
        gist: of the last one of these.
        off: whether it is switched off.
    """

    controller: Controller
    name: str
    said: deque[Said] = field(default_factory=lambda: deque(maxlen=SAID))
    gist: Any = None
    off: bool = False

    @property
    def advice_only(self) -> bool:
        """Whether it is not obeyed."""
        return isinstance(self.controller, AdviceOnly)

    def tell(
        self, history: History, epoch: int, outcome: str, verdict: Verdict, time: float, **more: Any
    ) -> None:
        """Remembers what it said after an epoch and what became of it.

        Writes that down too, unless it is what it said last.
        """
        event = {
            "outcome": outcome,
            "why": str(verdict.why),
            "operator": None if verdict.operator is None else str(verdict.operator),
            "facts": _plain(verdict.facts),
            "time": time,
            **more,
        }
        wanted = more.get("target")
        # Why it wants the same once more does not matter, nor do the amounts in the words.
        words = None if wanted is not None else _AMOUNT.sub("", event["why"])
        gist = (outcome, event["operator"], wanted, words, more.get("reason"), more.get("migration"))
        again = gist == self.gist
        if again and self.said:
            self.said.pop()  # so that what it repeats does not drive out what it said before
        self.said.append(Said.of({**event, "epoch": epoch}))
        self.gist = gist
        if not again:
            record(history, epoch, self.name, event)

    def switch_off(self, history: History, epoch: int, reason: str, time: float) -> None:
        """It is asked no more, and the history tells why."""
        self.off = True
        record(history, epoch, self.name, {"outcome": OFF, "reason": reason, "time": time})


def record(history: History, epoch: int, controller: str, event: Mapping[str, Any]) -> None:
    """Writes down what a controller said, or what became of it, after an epoch."""
    whole = {"kind": CONTROLLER, "controller": controller, "epoch": epoch, **event}
    with contextlib.suppress(StateError, OSError):
        history.say(epoch, whole)


def words_of(error: BaseException) -> str:
    """An error in words, also where it has none: that of a controller may raise when it is printed.

    >>> words_of(ValueError("no"))
    "ValueError('no')"
    """
    try:
        # What can't be encoded can't be written down.
        return repr(error).encode("utf-8", "backslashreplace").decode()
    except BaseException:  # noqa: BLE001 - it is somebody's own code
        return f"{type(error).__name__}, which can't be printed"


def _plain(facts: Any) -> dict[str, Any]:
    """What JSON can hold of what a controller noted; the rest as text."""
    if not isinstance(facts, Mapping):
        return {}
    return {
        str(key): value
        if isinstance(value, str | bool | int | None) or (isinstance(value, float) and math.isfinite(value))
        else str(value)
        for key, value in facts.items()
    }
