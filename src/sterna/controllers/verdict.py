"""What a controller says, and what it said before.

A controller is a function of a ``View``. It returns ``None`` (nothing to say), a target, or a ``Verdict``: a
target with its reasons, or the reason for staying. What it said before comes back to it in the view, as
``Said``: it needs no memory of its own, and a restart forgets nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sterna.errors import InvalidInput
from sterna.strategies import Strategy
from sterna.targets import Wish

if TYPE_CHECKING:
    from sterna.controllers.view import View

ASKED, ADVISED, DECLINED, REFUSED, OFF = "asked", "advised", "declined", "refused", "off"
FAILED = "failed"
"""None could be asked."""


@dataclass(frozen=True)
class Verdict:
    """What to do, and why.

    Attributes:
        why: in words, for the history.
        target: where the state should be; ``None`` to leave it where it is.
        strategy: how to get there; ``all_at_once`` by default.
        operator: the operator it is for; all by default.
        declined: whether something could be gained by moving, but not enough: the history tells.
        facts: numbers and words that the controller wants to find again in what it said.
    """

    why: str
    target: Wish | None = None
    strategy: Strategy | None = None
    operator: str | None = None
    declined: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)


Answer = Verdict | Wish | None
Controller = Callable[["View"], Answer]


@dataclass(frozen=True)
class Said:
    """A verdict of the past and what became of it.

    Attributes:
        outcome: ``asked`` (for a migration), ``advised``, ``declined``, or ``refused`` (it could not be).
        epoch, time: when.
        operator: the operator it was for; ``None`` for all.
        target: the target as it is written down; ``None`` if there was none.
        facts: what the controller noted.
    """

    outcome: str
    epoch: int
    time: float
    operator: str | None = None
    target: Mapping[str, Any] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Said:
        """From an event of the history."""
        return cls(
            event["outcome"],
            event["epoch"],
            event["time"],
            event.get("operator"),
            event.get("target"),
            event.get("facts") or {},
        )


@dataclass(frozen=True)
class AdviceOnly:
    """A controller that is asked, but not obeyed."""

    controller: Controller

    @property
    def name(self) -> str:
        """The controller's name."""
        return name_of(self.controller)

    @property
    def operator(self) -> str | None:
        """The operator it is for."""
        return getattr(self.controller, "operator", None)

    def __call__(self, view: View) -> Answer:
        """What the controller says."""
        return self.controller(view)


def advice_only(controller: Controller) -> AdviceOnly:
    """The same controller in advice-only mode: what it would do is written to the history, and nothing moves.

    ``InvalidInput`` if it is no controller.
    """
    if not is_controller(controller):
        raise InvalidInput(f"{controller!r} in advice_only is not a controller: a function of a view")
    return AdviceOnly(controller)


def is_controller(one: Any) -> bool:
    """Whether it can be asked."""
    return callable(one) and not isinstance(one, type)


def name_of(controller: Any) -> str:
    """What a controller is called: its ``name``, or that of the function or class."""
    return str(
        getattr(controller, "name", None)
        or getattr(controller, "__name__", None)
        or type(controller).__name__
    )
