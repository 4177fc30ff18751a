"""The steps of a strategy, drawn one by one, whatever its code does.

In: a strategy as it is written down, and what it is called with. Out: a step at a time, then ``None``. What a
strategy raises, and what it yields that is no step, is ``UpdateRefused``. One of the user's own is drawn from
in a thread of its own: whatever that does, an epoch waits for it for ``STEP_SECONDS`` at the most, and then
never again.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Iterator, Mapping
from queue import Empty, SimpleQueue
from typing import Any

from sterna import strategies
from sterna.configuration import Configuration
from sterna.errors import UpdateRefused, short
from sterna.statistics import Statistics

STEP_SECONDS = 30.0

Answer = strategies.Step | None | BaseException


class Draws:
    """The steps of one strategy; see the module's docstring."""

    def __init__(
        self,
        written: Mapping[str, Any],
        current: Configuration,
        target: Configuration,
        statistics: Statistics,
    ) -> None:
        self._steps = _begun(strategies.from_json(written), current, target, statistics)
        self._apart = None if strategies.built_in(written) else _Apart(self._steps)
        if self._apart is not None:
            weakref.finalize(self, self._apart.end)

    def next(self, seconds: float = math.inf) -> strategies.Step | None:
        """The next step; ``None`` if there is none.

        One of a strategy of the user's own is waited for so many seconds, and no more than ``STEP_SECONDS``.
        """
        answer = (
            _drawn(self._steps, Exception)
            if self._apart is None
            else self._apart.ask(min(seconds, STEP_SECONDS))
        )
        if isinstance(answer, UpdateRefused):
            raise answer
        if isinstance(answer, BaseException):
            raise UpdateRefused(f"the strategy raised {_told(answer)}") from answer
        return answer


class _Apart:
    """A thread that draws steps; it knows nothing of whoever asks, and ends when nobody does."""

    def __init__(self, steps: Iterator[strategies.Step]) -> None:
        self._asked: SimpleQueue[bool] = SimpleQueue()
        self._answers: SimpleQueue[Answer] = SimpleQueue()
        threading.Thread(
            target=_answering, args=(steps, self._asked, self._answers), name="sterna-strategy", daemon=True
        ).start()

    def ask(self, seconds: float) -> Answer:
        self._asked.put(True)
        try:
            return self._answers.get(timeout=max(0.0, seconds))
        except Empty:
            return UpdateRefused(
                f"the strategy did not say within {seconds:.3g} seconds what its next step is"
            )

    def end(self) -> None:
        self._asked.put(False)


def _answering(
    steps: Iterator[strategies.Step], asked: SimpleQueue[bool], answers: SimpleQueue[Answer]
) -> None:
    while asked.get():
        answers.put(_drawn(steps, BaseException))


def _begun(
    strategy: strategies.Strategy, current: Configuration, target: Configuration, statistics: Statistics
) -> Iterator[strategies.Step]:
    """The steps; a strategy that is no generator begins, and may fail, when the first one is drawn."""
    yield from strategy(current, target, statistics)


def _drawn(steps: Iterator[strategies.Step], caught: type[BaseException]) -> Answer:
    """The next step, or what was raised instead of it."""
    try:
        step = next(steps, None)
        return None if step is None else strategies.as_step(step)
    except caught as error:
        return error


def _told(error: BaseException) -> str:
    """An exception as an error quotes it, even one that can't tell what it is."""
    try:
        return short(error)
    except Exception:  # noqa: BLE001 - its words are the user's code, too
        return type(error).__name__
