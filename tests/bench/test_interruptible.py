"""Long work that is interrupted from the keyboard: it ends soon with what it has, or at once."""

from __future__ import annotations

import signal
import threading

import pytest

from sterna.bench import laboratory
from sterna.bench.laboratory import Case, Laboratory
from sterna.bench.place import Place
from sterna.bench.sizes import SMOKE
from sterna.session import interruptible

PLACE = Place("here", None, 8)


class Work:
    """Interrupts the main thread so many times, each time when the last one has been noticed."""

    def __init__(self, times):
        self.times, self.noticed, self.given_up = times, threading.Semaphore(0), threading.Event()

    def __call__(self):
        for _ in range(self.times):
            signal.raise_signal(signal.SIGINT)
            assert self.noticed.acquire(timeout=30)
        return "what there is"

    def give_up(self):
        self.given_up.set()
        self.noticed.release()

    def hurry(self):
        self.noticed.release()
        return True


def test_the_first_interruption_makes_it_hurry():
    work = Work(1)
    assert interruptible(work, work.give_up, work.hurry) == "what there is"
    assert not work.given_up.is_set()


def test_whoever_else_handles_interruptions_has_to_wait():
    """PySpark does, and cancels all jobs."""
    cancelled, work = [], Work(1)
    before = signal.signal(signal.SIGINT, lambda *_: cancelled.append(1))
    try:
        assert interruptible(work, work.give_up, work.hurry) == "what there is"
        assert not cancelled
        signal.raise_signal(signal.SIGINT)
        assert cancelled
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_second_one_ends_it():
    work = Work(2)
    with pytest.raises(KeyboardInterrupt):
        interruptible(work, work.give_up, work.hurry)
    assert work.given_up.is_set()


@pytest.mark.parametrize("hurry", [[], [lambda: False]], ids=["not asked", "nothing to show"])
def test_what_can_not_hurry_is_given_up(hurry):
    work = Work(1)
    with pytest.raises(KeyboardInterrupt):
        interruptible(work, work.give_up, *hurry)
    assert work.given_up.is_set()


@pytest.mark.parametrize("measured", [False, True])
def test_a_laboratory_hurries_once_there_is_something_to_tell(tmp_path, measured):
    said = []
    lab = Laboratory(None, tmp_path, SMOKE, 5, said.append, measured=measured)
    assert lab.hurry() is lab.late is bool(said) is measured


def test_a_run_that_fails_costs_only_itself(tmp_path, monkeypatch):
    class Odd(Exception):
        """As Spark's own, which derive from nothing else."""

    def fails(*_, **__):
        raise Odd("a query stopped")

    lab = Laboratory(None, tmp_path, SMOKE, 2, lambda _: None)
    monkeypatch.setattr(laboratory, "trial", fails)
    case = Case(PLACE, ["matched"], 8, 1.0, {"keys": 5})
    assert lab.take_turns([case], SMOKE.sweep) == []
    assert [one.split(": ")[1] for one in lab.failures] == ["a query stopped"] * 2


def test_cases_on_one_state_at_one_rate_share_a_run(tmp_path, monkeypatch):
    seen = []

    def fails(_, place, parts, *__, rate, **___):
        seen.append((place.folder, rate, [(part.bins, list(part.strategies)) for part in parts]))
        raise RuntimeError("seen")

    monkeypatch.setattr(laboratory, "trial", fails)
    other = Place("there", None, 8)
    cases = [
        Case(place, ["fluid", "paced"], bins, rate, {})
        for place, bins, rate in [(PLACE, 8, 1.0), (other, 8, 1.0), (PLACE, 16, 1.0), (PLACE, 8, 2.0)]
    ]
    Laboratory(None, tmp_path, SMOKE, 2, lambda _: None).take_turns(cases, SMOKE.sweep)
    there, back = ["fluid", "paced"], ["paced", "fluid"]
    assert seen == [
        ("here", 1.0, [(8, there), (16, there)]),
        ("there", 1.0, [(8, there)]),
        ("here", 2.0, [(8, there)]),
        ("here", 2.0, [(8, back)]),
        ("there", 1.0, [(8, back)]),
        ("here", 1.0, [(16, back), (8, back)]),
    ]
