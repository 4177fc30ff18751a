"""Since when the load of an operator has been the same; and a balancer where it is noisy or never is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.made_up import NOW, view
from controllers.simulated import balanced
from controllers.streams import hot
from sterna.controllers import Said, balancer
from sterna.controllers.steady import HORIZON, Steady

HERE, THERE = hot(64, 5, 14, 5, 16), hot(64, 30, 14, 5, 16)


def steady(loads, **others):
    return Steady(view(loads, workers=8, **others).operators["counts"])


def drawn(loads, seed=0):
    chance = np.random.default_rng(seed)
    return [chance.poisson(load) for load in loads]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("lasts", [1, 2, 3, 8])
def test_it_is_the_same_since_it_moved(seed, lasts):
    assert steady(drawn([HERE] * 16 + [THERE] * lasts, seed)).epochs == lasts
    assert steady(drawn([HERE] * 8 + [THERE] * 8 + [HERE] * lasts, seed)).epochs == lasts
    # As soon as the query has begun.
    assert steady(drawn([HERE] * 4 + [THERE] * lasts, seed)).epochs in {lasts, lasts + 4 * (lasts > 3)}


@pytest.mark.parametrize("cold", [1, 16, 1000])
def test_chance_is_no_move(cold):
    for seed in range(20):
        assert steady(drawn([hot(64, 5, 14, 5, cold)] * 20, seed)).epochs == 20
    assert steady(drawn([HERE] * 50)).epochs == HORIZON
    assert steady([HERE] * 20).epochs == 20


def test_noise_beyond_chance_is_no_move():
    for seed in range(10):
        chance = np.random.default_rng(seed)
        assert steady([chance.poisson(HERE * chance.gamma(4, 0.25, 64)) for _ in range(20)]).epochs == 20
        # A load that is elsewhere in every epoch.
        places = chance.integers(0, 64, 20).tolist()
        assert steady(drawn([hot(64, place, 14, 5, 16) for place in places], seed)).epochs > 3


def test_neither_another_rate_nor_bins_that_move_are_a_move_of_the_load():
    assert steady(drawn([HERE] * 10 + [3 * HERE] * 5)).epochs == 15
    rows = drawn([HERE] * 20)
    moved = view(rows[10:], workers=8, owners=np.arange(64) % 8).operators["counts"]
    before = view(rows[:10], workers=8, now=NOW - 10).operators["counts"]
    assert Steady(replace(moved, samples=before.samples + moved.samples)).epochs == 20


def test_whether_it_keeps_moving():
    places = [HERE] * 12 + [THERE] * 2 + [hot(64, 50, 14, 5, 16)] * 2
    assert steady(drawn(places)).keeps_moving(5)
    assert not steady(drawn(places)).keeps_moving(4)
    assert not steady(drawn([HERE] * 12 + [THERE] * 2)).keeps_moving(6)
    assert not steady(drawn([HERE] * 12)).keeps_moving(6)


def test_whether_the_load_was_another_one_then():
    load = steady(drawn([HERE] * 10 + [THERE] * 8))
    assert load.moved_since(7, 9)
    assert load.moved_since(8, 10)  # of both
    assert not load.moved_since(11, 13)
    assert not load.moved_since(-5, -3)  # nothing is known of these


@given(st.lists(st.lists(st.integers(0, 50), min_size=16, max_size=16), min_size=1, max_size=12))
def test_whatever_came_something_is_said(loads):
    found = Steady(view([[1, *load[1:]] for load in loads]).operators["counts"])
    assert 1 <= found.epochs <= len(loads)
    assert found.moved_since(0, 0) in {True, False}


def test_a_load_of_which_too_little_is_known_is_waited_for():
    lucky = hot(64, 5, 1, 12, 16)  # one worker has 1.6 times the mean
    before = drawn([lucky] * 20)
    assert balancer()(view(before, workers=8)).target is not None
    for lasts in (1, 2):
        verdict = balancer()(view([*before, *drawn([THERE] * lasts, 1)], workers=8))
        assert verdict.target is None
        assert "has just moved, and 3 epochs of it are needed" in verdict.why
    verdict = balancer()(view([*before, *drawn([THERE] * 3, 1)], workers=8))
    assert verdict.facts["since"] == 20


def test_any_number_of_epochs_can_be_asked_for():
    loads = drawn([HERE] * 100)
    assert balancer(epochs=50)(view(loads, workers=8)).target is not None
    assert "needed" in balancer(epochs=50)(view([*loads, *drawn([THERE] * 49)], workers=8)).why


def asked(epoch, now, **facts):
    facts = {"before": 1.9, "after": 1.1, **facts}
    return Said("asked", epoch, now, "counts", {"assignment": [[0, 0]]}, facts)


@pytest.mark.parametrize(("lasts", "rests"), [(5, 60.0), (6, 30.0)])
def test_a_load_that_has_moved_and_stays_is_not_the_fault_of_the_plan(lasts, rests):
    # The plan was made after 16 epochs; the load has moved one later.
    loads = drawn([HERE] * 17 + [THERE] * lasts)
    plan = NOW - lasts - 1.0
    seen = view(loads, workers=8, said=(asked(15, plan, since=13),), settled={"counts": plan + 1})
    verdict = balancer(cool_down=30)(seen)
    assert f"{rests - lasts:.1f} s of the cool-down are left" in verdict.why
    later = replace(seen, now=NOW + rests)
    assert balancer(cool_down=30)(later).facts.get("failed", 0) == (1 if lasts < 6 else 0)


def test_a_load_that_has_not_moved_is_a_broken_promise_however_long_it_lasts():
    plan = NOW - 12
    seen = view(
        drawn([HERE] * 30), workers=8, said=(asked(17, plan, since=15),), settled={"counts": plan + 1}
    )
    assert "the last plan had promised 1.10 times" in balancer(cool_down=0)(seen).why


def asks(stream):
    return [one for one in balanced(balancer(), stream)[1] if one.outcome == "asked"]


@pytest.mark.parametrize("rows", [2, 4, 15])
def test_even_rows_that_come_by_chance_are_let_be(rows):
    assert asks(drawn([np.full(64, rows)] * 200, rows)) == []


def test_a_skew_of_rows_that_come_by_chance_is_levelled_once_or_twice():
    assert len(asks(drawn([hot(64, 5, 14, 5, 8)] * 200, 3))) <= 2


@pytest.mark.parametrize("every", [1, 2])
def test_a_load_that_never_stays_is_followed_less_and_less(every):
    places = np.random.default_rng(1).integers(0, 64, 300).tolist()
    found = asks(drawn([hot(64, places[at // every], 14, 5, 16) for at in range(300)]))
    assert 2 <= len(found) <= 5
    assert found[-1].facts["failed"] >= 2


def test_a_load_that_drifts_is_followed():
    for cold in (16, 1000):
        stream = drawn([hot(64, at // 4, 14, 5, cold) for at in range(200)])
        still, _ = balanced(balancer(epochs=300), stream)
        seen, _ = balanced(balancer(), stream)
        assert seen[10:].mean() < 0.75 * still[10:].mean()
