"""Whatever the code of a strategy does, whoever draws from it gets a step or a refusal."""

from __future__ import annotations

import gc
import threading
import time

import pytest

from sterna import drawing, strategies
from sterna.configuration import Configuration
from sterna.drawing import Draws
from sterna.errors import UpdateRefused
from sterna.rehearsal import rehearse
from sterna.statistics import Statistics

HERE, THERE = Configuration.initial(4, 1), Configuration.initial(4, 2)
KNOWN = Statistics.unknown(4)


class Odd(BaseException):
    """Not even an ``Exception``, and it can't be told."""

    def __repr__(self):
        raise ValueError("no words")


def draws(function):
    strategies.register("drawn")(function)
    return Draws({"name": "drawn"}, HERE, THERE, KNOWN)


def threads():
    return {one for one in threading.enumerate() if one.name == "sterna-strategy"}


@pytest.mark.parametrize(
    ("error", "words"),
    [(KeyboardInterrupt(), "raised KeyboardInterrupt"), (Odd(), "raised Odd"), (SystemExit(3), "SystemExit")],
    ids=["KeyboardInterrupt", "Odd", "SystemExit"],
)
def test_what_is_no_exception_is_a_refusal_too(error, words):
    def raising(current, target, statistics):
        yield [(2, 1)]
        raise error

    steps = draws(raising)
    assert steps.next() == [(2, 1)]
    with pytest.raises(UpdateRefused, match=words):
        steps.next()


def test_who_does_not_answer_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(drawing, "STEP_SECONDS", 0.05)
    go_on = threading.Event()

    def silent(current, target, statistics):
        go_on.wait(60)
        yield []

    strategies.register("silent")(silent)
    with pytest.raises(UpdateRefused, match=r"did not say within 0\.05 seconds"):
        rehearse({"name": "silent"}, HERE, THERE, KNOWN)
    go_on.set()


def test_a_rehearsal_does_not_take_longer_than_it_may():
    go_on = threading.Event()

    def slow(current, target, statistics):
        yield [(2, 1)]
        go_on.wait(60)
        yield [(3, 1)]

    strategies.register("slow")(slow)
    with pytest.raises(UpdateRefused, match=r"not within 0\.3 seconds, and 1 bins"):
        rehearse({"name": "slow"}, HERE, THERE, KNOWN, 0.3)
    go_on.set()
    assert rehearse({"name": "slow"}, HERE, THERE, KNOWN, 60.0).steps == 2


def test_a_rehearsal_of_quick_steps_ends_too():
    def endless(current, target, statistics):
        while True:
            yield []
            time.sleep(0.001)

    strategies.register("endless")(endless)
    with pytest.raises(UpdateRefused, match=r"not within 0\.1 seconds, and 2 bins"):
        rehearse({"name": "endless"}, HERE, THERE, KNOWN, 0.1)


def test_threads_end_with_those_who_ask():
    def one_by_one(current, target, statistics):
        yield [(2, 1)]
        yield [(3, 1)]

    before = threads()
    steps = draws(one_by_one)
    assert steps.next() == [(2, 1)]
    (mine,) = threads() - before
    del steps
    gc.collect()
    mine.join(20)
    assert not mine.is_alive()


def test_strategies_of_ours_need_no_thread():
    before = threads()
    steps = Draws({"name": "fluid"}, HERE, THERE, KNOWN)
    assert [steps.next(), steps.next(), steps.next()] == [[(2, 1)], [(3, 1)], None]
    assert threads() <= before


def test_a_long_gap_is_no_long_rehearsal():
    found = rehearse({"name": "fluid", "gap": 10**12}, HERE, THERE, KNOWN)
    assert (found.steps, found.epochs) == (2, 10**12 + 2)
