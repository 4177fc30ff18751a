"""How a query deals with its controllers: what becomes of their wishes."""

from __future__ import annotations

import threading
import time

import pytest

from controllers.streams import EVEN
from sterna import strategies
from sterna.controllers import Verdict, advice_only, balancer, running
from sterna.controllers.options import checked
from sterna.controllers.thread import Asking
from sterna.errors import InvalidInput
from sterna.targets import rescale
from twin.small import counts, totals


def test_a_wish_becomes_a_migration_that_names_its_cause(asked):
    def more(view):
        return Verdict(
            "there is work", rescale(3), strategies.batched(2), facts={"rows": 80, "odd": float("inf")}
        )

    twin, (said,) = asked(more)
    (told,) = twin.coordinator.history.told(twin.coordinator.last)
    assert (told["status"], told["cause"]) == ("done", "controller: more: there is work")
    assert told["strategy"] == {"name": "batched", "size": 2}
    assert (said["outcome"], said["migration"], said["why"]) == ("asked", told["name"], "there is work")
    assert said["facts"] == {"rows": 80, "odd": "inf"}
    assert set(totals(twin).values()) == {4}


def test_a_target_is_answer_enough(asked):
    twin, (said,) = asked(lambda view: {0: 1, 1: 1})
    assert twin.coordinator.last.configurations["counts"].owners[:3].tolist() == [1, 1, 0]
    assert said["controller"] == "<lambda>"


def test_what_it_said_comes_back_to_it_also_after_a_restart(start):
    seen = []

    def careful(view):
        seen.append([(one.outcome, one.facts["n"], one.target["workers"]) for one in view.said])
        return (
            Verdict("", rescale(3 + len(view.said)), facts={"n": len(view.said)}) if len(seen) < 5 else None
        )

    for _ in range(2):
        twin = start(counts(), bins=16, workers=2, controllers=[careful])
        for _ in range(4):
            twin.epoch(EVEN)
        twin.close()
    assert seen[0] == []
    assert seen[1] == [("asked", 0, 3)]
    assert seen[4] == [("asked", n, 3 + n) for n in range(len(seen[4]))]
    assert seen[-1][: len(seen[4])] == seen[4]


def test_while_a_migration_that_one_asked_for_is_under_way_none_is_asked(asked):
    epochs = []

    def slow(view):
        epochs.append(view.samples[-1].cost.epoch)
        return Verdict("slowly", rescale(4), strategies.fluid())

    def other(view):
        assert not view.migrations
        return rescale(1) if view.operators["counts"].configuration.workers == 4 else None

    twin, said = asked(slow, other, epochs=12)
    assert [one["controller"] for one in said][:2] == ["slow", "other"]
    assert epochs[:2] == [0, 8]
    moved = {e["name"]: e["cause"] for e in twin.coordinator.history.events() if e["kind"] == "migration"}
    assert next(iter(moved.values())) == "controller: slow: slowly"


def test_advice_is_written_once_and_nothing_moves(asked):
    def more(view):
        assert len(view.said) <= 4
        return Verdict(f"epoch {view.samples[-1].cost.epoch}", rescale(3), strategies.fluid())

    twin, (said,) = asked(advice_only(more))
    assert (said["outcome"], said["controller"], said["why"], said["epoch"]) == (
        "advised",
        "more",
        "epoch 0",
        0,
    )
    assert said["target"] == rescale(3).to_json()
    assert twin.coordinator.last.configurations["counts"].workers == 2
    assert not twin.coordinator.control.names()


def test_what_was_not_worth_it_is_written_when_it_begins(asked):
    def fickle(view):
        epoch = view.samples[-1].cost.epoch
        return Verdict(f"not worth {epoch}", declined=True) if epoch != 2 else Verdict("x", rescale(3))

    _, said = asked(fickle, epochs=5)
    assert [(one["outcome"], one["epoch"]) for one in said] == [
        ("declined", 0),
        ("asked", 2),
        ("declined", 3),
    ]


def test_what_would_change_nothing_is_not_asked_for(asked):
    twin, said = asked(lambda view: rescale(2))
    assert said == []
    assert not twin.coordinator.history.events()
    assert not twin.coordinator.wants_epoch()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (7, "7 is not a target"),
        ("rescale", "is not a pair"),
        ({0: 9}, "worker 9 does not exist: there are 2 workers"),
        ({99: 0}, "bin 99 does not exist"),
        ([], "names no bin"),
        (Verdict("", rescale(3), strategy="fluid"), "'fluid' is no strategy"),
        (Verdict("", rescale(3), operator="nobody"), "operator 'nobody' does not exist"),
        (Verdict("", rescale(3), operator=["counts"]), "can't be understood"),
        (Verdict("", 3.5), "3.5 is not a target"),
        (..., "is not a target"),
    ],
    ids=str,
)
@pytest.mark.parametrize("mode", [lambda one: one, advice_only], ids=["obeyed", "advice"])
def test_nonsense_is_refused_with_a_reason_once_and_the_query_goes_on(asked, answer, words, mode):
    def silly(view):
        return answer

    twin, (said,) = asked(mode(silly))
    assert said["outcome"] == "refused"
    assert words in said["reason"]
    assert twin.coordinator.last.configurations["counts"].owners.tolist() == [0] * 8 + [1] * 8
    assert set(totals(twin).values()) == {4}


def test_a_wish_while_a_users_migration_runs_is_refused(start):
    def pushy(view):
        return Verdict("now", rescale(4)) if view.migrations else None

    twin = start(counts(), bins=16, workers=2, controllers=[pushy])
    twin.epoch(EVEN)
    twin.migrate(rescale(3), strategies.fluid())
    for _ in range(8):
        twin.epoch(EVEN)
    (said,) = twin.coordinator.history.said()
    assert said["outcome"] == "refused"
    assert "is under way" in said["reason"]
    assert twin.coordinator.last.configurations["counts"].workers == 3


def test_another_reason_for_staying_is_written_and_the_same_with_other_numbers_is_not(asked):
    def fickle(view):
        epoch = view.samples[-1].cost.epoch
        return Verdict(
            f"worker {epoch} has {epoch + 0.5:.2f} times the mean, "
            + ("it is dear" if epoch < 3 else "no plan helps"),
            declined=True,
        )

    _, said = asked(fickle, epochs=6)
    assert [(one["epoch"], one["why"][-5:]) for one in said] == [(0, " dear"), (3, "helps")]


def test_what_it_repeats_does_not_drive_out_what_it_said_before(asked):
    seen = []

    def insisting(view):
        seen.append([one.outcome for one in view.said])
        return (
            Verdict("now", rescale(3)) if len(view.samples) == 1 else Verdict("not worth it", declined=True)
        )

    asked(insisting, epochs=80)
    assert seen[-1] == ["asked", "declined"]


@pytest.mark.parametrize(
    ("controllers", "words"),
    [
        (balancer(), "controllers must be a list"),
        ("balancer", "controllers must be a list"),
        ([balancer], None),
        ([5], "5 in controllers is not a controller"),
        ([dict], "is not a controller"),
        ([balancer(), balancer()], "two controllers are called 'balancer'"),
        ([advice_only(balancer(operator="nobody"))], "operator 'nobody' does not exist"),
    ],
)
def test_what_is_no_controller(start, controllers, words):
    if words is None:  # a function that takes options instead of a view is found out when it is asked
        twin = start(counts(), controllers=controllers)
        twin.epoch(EVEN)
        assert twin.coordinator.history.said()[0]["outcome"] == "off"
        return
    with pytest.raises(InvalidInput, match=words):
        checked(controllers, ["counts"])


def test_functions_without_names_can_be_given_some():
    one, other = (lambda view: None), (lambda view: None)
    with pytest.raises(InvalidInput, match=r"called '<lambda>'.* an attribute name of a function"):
        checked([one, advice_only(other)], ["counts"])
    other.name = "other"
    assert len(checked([one, advice_only(other)], ["counts"])) == 2


def test_what_can_not_be_asked_gives_no_advice():
    for wrong in (5, None, "balancer", dict):
        with pytest.raises(InvalidInput, match="in advice_only is not a controller"):
            advice_only(wrong)


def test_without_controllers_there_is_no_thread(start):
    twin = start(counts())
    before = threading.active_count()
    asking = Asking(running.Controllers([], twin.coordinator, twin.migrate), lambda: True)
    asking.start()
    asking.committed(twin.epoch(EVEN))
    assert threading.active_count() == before
    asking.stop()


def test_an_idle_query_asks_now_and_then(start, monkeypatch):
    monkeypatch.setattr("sterna.controllers.thread.IDLE_SECONDS", 0.001)
    often = threading.Semaphore(0)
    twin = start(counts(), clock=time.time)
    asking = Asking(
        running.Controllers([lambda view: often.release()], twin.coordinator, twin.migrate), lambda: True
    )
    asking.start()
    asking.committed(twin.epoch(EVEN))
    for _ in range(5):
        assert often.acquire(timeout=60)
    asking.stop()


def test_the_history_keeps_what_controllers_said_in_its_own_measure(start, monkeypatch):
    monkeypatch.setattr("sterna.history.KEEP", 5)

    def chatty(view):
        return Verdict("", rescale(3 + view.samples[-1].cost.epoch))

    twin = start(counts(), bins=16, workers=2, controllers=[advice_only(chatty)])
    twin.epoch(EVEN)
    twin.migrate({0: 1})
    for _ in range(10):
        twin.epoch(EVEN)
    events = twin.coordinator.history.events()
    assert [e["kind"] for e in events].count("controller") == 5
    assert [e["kind"] for e in events if e["kind"] != "controller"] == ["applied", "moved", "migration"]
    assert [e["epoch"] for e in events] == sorted(e["epoch"] for e in events)
