"""What becomes of controllers that raise, hang or answer with what nobody can write down."""

from __future__ import annotations

import asyncio
import threading

import pytest

from controllers.streams import EVEN
from sterna.controllers import Verdict, advice_only, running
from sterna.controllers.thread import Asking
from sterna.state.store import Store
from sterna.targets import rescale
from twin.small import counts, totals


def test_one_that_raises_is_switched_off_and_the_query_goes_on(asked):
    calls = []

    def broken(view):
        calls.append(1)
        raise ZeroDivisionError("oops")

    def leaving(view):
        raise SystemExit(3)

    def sound(view):
        return Verdict("", rescale(3))

    twin, said = asked(broken, leaving, sound)
    assert len(calls) == 1
    assert [(one["controller"], one["outcome"]) for one in said] == [
        ("broken", "off"),
        ("leaving", "off"),
        ("sound", "asked"),
    ]
    assert said[0]["reason"] == "it raised ZeroDivisionError('oops')"
    assert twin.coordinator.last.configurations["counts"].workers == 3
    assert set(totals(twin).values()) == {4}


class Unspeakable(Exception):
    """It raises when it is printed."""

    def __repr__(self):
        raise self

    __str__ = __repr__


RAISED = {
    "CancelledError()": asyncio.CancelledError(),
    "KeyboardInterrupt()": KeyboardInterrupt(),
    "GeneratorExit()": GeneratorExit(),
    "SystemExit(3)": SystemExit(3),
    "Unspeakable, which can't be printed": Unspeakable(),
    "ValueError('\\udcff')": ValueError("\udcff"),
}


@pytest.mark.parametrize("words", RAISED)
def test_whatever_one_raises_the_others_are_asked(start, words):
    answered = threading.Semaphore(0)

    def broken(view):
        raise RAISED[words]

    def sound(view):
        answered.release()

    twin = start(counts(), bins=16, workers=2)
    asking = Asking(running.Controllers([broken, sound], twin.coordinator, twin.migrate), lambda: False)
    asking.start()
    for _ in range(2):
        asking.committed(twin.epoch(EVEN))
        assert answered.acquire(timeout=60)
    asking.stop()
    (said,) = twin.coordinator.history.said()
    assert (said["controller"], said["outcome"]) == ("broken", "off")
    assert said["reason"] == f"it raised {words}"


def test_a_users_interrupt_is_not_the_controllers(asked):
    def slow(view):
        raise KeyboardInterrupt  # as if Ctrl-C were pressed meanwhile: here it runs in the main thread

    with pytest.raises(KeyboardInterrupt):
        asked(slow)


@pytest.mark.parametrize(
    "answer",
    [
        Unspeakable(),
        Verdict(Unspeakable(), rescale(3)),
        Verdict("", rescale(3), facts={"odd": Unspeakable()}),
    ],
    ids=["target", "words", "facts"],
)
def test_an_answer_that_can_not_be_printed(asked, answer):
    def odd(view):
        return answer

    twin, said = asked(odd, lambda view: Verdict("not now", declined=True))
    assert {one["controller"]: one["outcome"] for one in said} in (
        {"odd": "refused", "<lambda>": "declined"},
        {"odd": "off", "<lambda>": "declined"},
    )
    assert "Unspeakable" in said[0]["reason"]
    assert set(totals(twin).values()) == {4}


def test_what_keeps_all_from_being_asked_is_told_once_and_they_are_asked_again(start):
    tried, answered = threading.Semaphore(0), threading.Event()
    errors = [asyncio.CancelledError("no progress"), asyncio.CancelledError("no progress")]

    def backlog():
        tried.release()
        if errors:
            raise errors.pop()

    twin = start(counts(), bins=16, workers=2)
    members = running.Controllers(
        [lambda view: answered.set()], twin.coordinator, twin.migrate, backlog=backlog
    )
    asking = Asking(members, lambda: False)
    asking.start()
    for _ in range(3):
        asking.committed(twin.epoch(EVEN))
        assert tried.acquire(timeout=60)
    assert answered.wait(60)
    asking.stop()
    (said,) = twin.coordinator.history.said()
    assert (said["controller"], said["outcome"]) == ("controllers", "failed")
    assert said["reason"] == "they could not be asked: CancelledError('no progress')"


@pytest.mark.parametrize("idle", [False, True], ids=["epochs come", "no epoch comes"])
def test_one_that_never_answers_is_given_up_and_the_others_are_asked(start, monkeypatch, idle):
    monkeypatch.setattr(running, "PATIENCE_SECONDS", 0.5)
    hangs, answered, entered = threading.Event(), threading.Event(), threading.Event()

    def stuck(view):
        entered.set()
        hangs.wait(60)
        return rescale(1)

    def sound(view):
        answered.set()

    twin = start(counts(), bins=16, workers=2)
    members = running.Controllers([stuck, sound], twin.coordinator, twin.migrate)
    asking = Asking(members, lambda: idle)
    asking.start()
    asking.committed(twin.epoch(EVEN))
    assert entered.wait(60)
    if not idle:
        asking.committed(twin.epoch(EVEN))
    assert answered.wait(60)
    hangs.set()
    asking.stop()
    (said,) = twin.coordinator.history.said()
    assert (said["controller"], said["outcome"]) == ("stuck", "off")
    assert "has not answered" in said["reason"]
    assert not twin.coordinator.control.names()


def test_a_checkpoint_that_can_not_be_written_is_not_the_controllers_business(start, monkeypatch):
    twin = start(counts(), bins=16, workers=2, controllers=[advice_only(lambda view: rescale(3))])
    write = Store.write_document

    def full(self, path, *args, **options):
        if path.startswith("history"):
            raise running.StateError("disk full")
        write(self, path, *args, **options)

    monkeypatch.setattr(Store, "write_document", full)
    twin.epoch(EVEN)
    assert twin.coordinator.committed
