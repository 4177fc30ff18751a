"""The controllers of a running query: shown what there is after an epoch, and heard.

They are obeyed through the control stream. A wish of a controller goes the way of a user's: ``migrate``, with
the controller named as the cause. While a migration that one of them asked for is not over, none is asked.
What they say goes to the history (``members``). One that raises, whatever it is, is switched off, and the
history tells why; one whose wish can't be is told so there. Nothing of this reaches the query.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sterna import asking, strategies
from sterna.controllers.members import Member, record, words_of
from sterna.controllers.options import checked
from sterna.controllers.sample import Sample
from sterna.controllers.verdict import (
    ADVISED,
    ASKED,
    DECLINED,
    FAILED,
    OFF,
    REFUSED,
    Controller,
    Said,
    Verdict,
    name_of,
)
from sterna.controllers.view import View
from sterna.errors import InvalidInput, StateError, SternaError
from sterna.state.manifest import Manifest
from sterna.targets import Target, as_target

if TYPE_CHECKING:
    from sterna.engine.coordinator import Coordinator

REMEMBERED = 512
"""How many epochs back controllers can look."""

PATIENCE_SECONDS = 60.0
"""After so long without an answer a controller is switched off."""

ALL = "controllers"
"""What they are called together."""

Migrate = Callable[..., str]


class Controllers:
    """See the module's docstring.

    Args:
        controllers: in the order in which they are asked.
        coordinator: of the query.
        migrate: as ``Query.migrate``, but returns the migration's name.
        backlog: how many rows wait at the sources, if that is known.
        cores: on how many cores tasks can run, if that is known.
    """

    def __init__(
        self,
        controllers: Iterable[Controller],
        coordinator: Coordinator,
        migrate: Migrate,
        *,
        backlog: Callable[[], int | None] = lambda: None,
        cores: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._members = [
            Member(one, name_of(one)) for one in checked(controllers, coordinator.last.configurations)
        ]
        self._coordinator, self._migrate = coordinator, migrate
        self._backlog, self._count_cores = backlog, cores
        self._cores: tuple[int, float] | None = None
        self._samples: deque[Sample] = deque(maxlen=REMEMBERED)
        self._settled: dict[str, float] = {}
        self._last: Manifest | None = None
        self._open: str | None = None
        self._asking: tuple[Member, float] | None = None
        self._turn = 0
        self._stumbled: str | None = None
        if self._members:
            self._remember()

    def __bool__(self) -> bool:
        return bool(self._members)

    def _remember(self) -> None:
        """What an earlier start has seen and said."""
        for epoch in self._coordinator.manifests.epochs():
            with contextlib.suppress(StateError):
                self.committed(self._coordinator.manifests.read(epoch))
        self._last = None  # nobody is asked before the first epoch of this start
        by_name = {member.name: member for member in self._members}
        for event in self._coordinator.history.said():
            if event["controller"] in by_name and event["outcome"] not in (OFF, FAILED):
                by_name[event["controller"]].said.append(Said.of(event))

    def committed(self, manifest: Manifest) -> None:
        """Takes note of an epoch."""
        sample = Sample.of(manifest)
        if sample is not None:
            self._samples.append(sample)
            self._last = manifest
        for one in manifest.migrations:
            if one.ended is not None:
                self._settled.update(
                    {name: max(self._settled.get(name, 0.0), one.ended[1]) for name in one.target}
                )

    def ask(self) -> None:
        """Asks them all."""
        turn = self._turn
        view: View | None = None
        for member in self._members:
            if member.off or self._last is None or self._waits():
                continue
            view = view or self._view(self._last)
            self._ask(member, view)
            if turn != self._turn:  # it took so long that another thread asks by now
                return

    def patience(self) -> float:
        """How many seconds the controller that is being asked may still take.

        These are as many as any may, if none is being asked.
        """
        asked = self._asking
        return PATIENCE_SECONDS - (0.0 if asked is None else time.monotonic() - asked[1])

    def give_up(self) -> bool:
        """Switches off the controller that is being asked, if it has not answered for too long.

        Returns whether it did.
        """
        asked = self._asking
        if asked is None or time.monotonic() - asked[1] < PATIENCE_SECONDS:
            return False
        self._turn += 1
        self._asking = None
        self._switch_off(asked[0], f"it has not answered for {PATIENCE_SECONDS:.0f} seconds")
        return True

    def stumbled(self, error: BaseException) -> None:
        """Has the history tell what kept them all from being asked; the same but once."""
        reason = f"they could not be asked: {words_of(error)}"
        if reason != self._stumbled:
            self._stumbled = reason
            event = {"outcome": FAILED, "reason": reason, "time": self._coordinator.clock()}
            record(self._coordinator.history, self._epoch, ALL, event)

    def _view(self, last: Manifest) -> View:
        now = self._coordinator.clock()
        cores = self._count_cores()
        if cores is None:
            self._cores = None
        elif self._cores is None or self._cores[0] != cores:
            self._cores = (cores, now)
        return View.of(
            last, self._samples, now, settled=self._settled, backlog=self._backlog(), cores=self._cores
        )

    def _waits(self) -> bool:
        """Whether a migration that one of them asked for is not over."""
        if self._open is None:
            return False
        last, name = self._coordinator.last, self._open
        if (
            any(one.active and one.name == name for one in last.migrations)
            or any(entry["name"] == name for entry in last.pending)
            or name in set(self._coordinator.control.names()) - set(last.consumed)
        ):
            return True
        self._open = None
        return False

    def _ask(self, member: Member, view: View) -> None:
        turn = self._turn
        self._asking = (member, time.monotonic())
        try:
            answer = member.controller(replace(view, said=tuple(member.said)))
        except BaseException as error:  # noqa: BLE001 - whatever it is, the query goes on without the controller
            _let_through(error)
            if turn == self._turn:
                self._switch_off(member, f"it raised {words_of(error)}")
            return
        finally:
            if turn == self._turn:
                self._asking = None
        if answer is None or turn != self._turn:
            return
        try:
            self._answered(member, answer, view)
        except SternaError:
            return  # the query has ended, or its checkpoint can't be written: it says so itself
        except BaseException as error:  # noqa: BLE001 - what it answered may raise whatever is done with it
            _let_through(error)
            self._switch_off(member, f"what it said can't be written down: {words_of(error)}")

    def _answered(self, member: Member, answer: Any, view: View) -> None:
        verdict = answer if isinstance(answer, Verdict) else Verdict("it says no more", answer)
        try:
            self._heed(member, verdict, view)
        except InvalidInput as error:
            self._tell(member, REFUSED, verdict, view, reason=str(error))
        except SternaError:
            raise
        except Exception as error:  # noqa: BLE001 - an answer of any kind
            self._tell(member, REFUSED, verdict, view, reason=f"it can't be understood: {words_of(error)}")

    def _heed(self, member: Member, verdict: Verdict, view: View) -> None:
        if verdict.target is None:
            if verdict.declined:
                self._tell(member, DECLINED, verdict, view)
            return
        target = as_target(verdict.target)
        strategy = strategies.to_json(verdict.strategy or strategies.all_at_once())
        if not self._moves(target, verdict.operator):
            return
        told = {"target": target.to_json(), "strategy": strategy}
        if member.advice_only:
            self._tell(member, ADVISED, verdict, view, **told)
            return
        cause = f"controller: {member.name}: {verdict.why}"
        self._open = self._migrate(target, verdict.strategy, operator=verdict.operator, cause=cause)
        self._tell(member, ASKED, verdict, view, **told, migration=self._open)

    def _moves(self, target: Target, operator: str | None) -> bool:
        """Whether anything would change; ``UpdateRefused`` if the target can't be."""
        last = self._coordinator.last
        names = asking.operators(operator, last)
        here = last.configurations
        return any(
            target.resolve(here[name], self._coordinator.statistics(name)) != here[name] for name in names
        )

    def _tell(self, member: Member, outcome: str, verdict: Verdict, view: View, **more: Any) -> None:
        member.tell(self._coordinator.history, self._epoch, outcome, verdict, view.now, **more)

    def _switch_off(self, member: Member, reason: str) -> None:
        member.switch_off(self._coordinator.history, self._epoch, reason, self._coordinator.clock())

    @property
    def _epoch(self) -> int:
        return -1 if self._last is None else self._last.epoch


def _let_through(error: BaseException) -> None:
    """Raises again what is not the controller's: a user's Ctrl-C, which only the main thread gets."""
    if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
        raise error
