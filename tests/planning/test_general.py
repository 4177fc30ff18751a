"""Bins that move freely, against all assignments that there are."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from planning.brute import least_moved, problems, skewed
from sterna.planning import Unbalanceable, general, packing, programme, ssm
from sterna.planning.plan import Problem

leavers = st.sampled_from(["any", "last"])


def check(plan, loads, workers, tau):
    assert np.bincount(plan.assignment, loads).max() <= (1 + tau) * sum(loads) / workers + 1e-9
    assert len(set(plan.assignment.tolist())) <= workers


@settings(max_examples=500)
@given(problems(most=6, intervals=False), leavers)
def test_no_assignment_moves_less(problem, leaving):
    _, _, loads, workers, tau = problem
    wanted = least_moved(*problem, leaving)
    if wanted is None:
        with pytest.raises(Unbalanceable, match="the least tau known to be possible is"):
            general(*problem, leaving=leaving)
        return
    plan = general(*problem, leaving=leaving)
    check(plan, loads, workers, tau)
    assert plan.moved == pytest.approx(wanted, rel=1e-6, abs=1e-9)
    assert plan.bound <= plan.moved
    assert plan.optimal


@settings(max_examples=300)
@given(problems(most=6, intervals=False), leavers)
def test_without_an_integer_programme_a_plan_is_possible_and_its_bound_holds(problem, leaving):
    owners, sizes, loads, workers, _ = problem
    tau = general(owners, sizes, loads, workers, "least", seconds=0, leaving=leaving).tau
    plan = general(owners, sizes, loads, workers, tau + 0.2, seconds=0, leaving=leaving)
    check(plan, loads, workers, tau + 0.2)
    best = least_moved(owners, sizes, loads, workers, tau + 0.2, leaving)
    assert plan.bound <= best * (1 + 1e-9) + 1e-9
    assert plan.moved >= best - 1e-9
    assert not plan.optimal or plan.moved == pytest.approx(best, rel=1e-5, abs=1e-9)


@settings(max_examples=200)
@given(problems(most=6, intervals=False))
def test_the_least_tau_is_possible_and_within_a_third_of_the_least_there_is(problem):
    owners, sizes, loads, workers, _ = problem
    assume(sum(loads) > 0)
    plan = general(owners, sizes, loads, workers, "least", seconds=0)
    check(plan, loads, workers, plan.tau)
    assert least_moved(owners, sizes, loads, workers, (1 + plan.tau) * 3 / 4 - 1 - 1e-6) is None


@settings(max_examples=100)
@given(problems(most=6))
def test_intervals_never_move_less(problem):
    owners, sizes, loads, workers, _ = problem
    best = ssm(owners, sizes, loads, workers, "least")
    assert general(owners, sizes, loads, workers, best.tau).moved <= best.moved * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize(("count", "old", "new"), [(64, 4, 3), (256, 16, 16), (1024, 16, 24), (4096, 64, 48)])
def test_larger_problems_are_balanced_close_to_the_bound(count, old, new):
    owners, sizes, loads = skewed(count, old, 7)
    plan = general(owners, sizes, loads, new, 0.3, seconds=0)
    check(plan, loads, new, 0.3)
    assert plan.gap < 0.01
    again = general(owners, sizes, loads, new, 0.3, seconds=0)
    assert again.assignment.tolist() == plan.assignment.tolist()


def test_a_programme_finds_what_packing_does_not():
    # 3 + 3 and 2 + 2 + 2: whoever has the heaviest first is stuck with 3 + 2 + 2.
    plan = general([0, 1, 0, 1, 0], [1] * 5, [3, 3, 2, 2, 2], 2, 0)
    assert sorted(np.bincount(plan.assignment, [3, 3, 2, 2, 2]).tolist()) == [6, 6]
    assert plan.optimal


SEEDS = (2, 4, 5)


def entangled(seed, count=48, workers=6):
    """Loads of which few fill a worker: with these seeds a programme finds what packing does not."""
    random = np.random.default_rng(seed)
    loads = random.uniform(0.5, 2, count)
    return random.integers(0, workers, count), random.random(count), loads, workers, 0.02


def test_how_fast_the_machine_is_makes_no_difference(monkeypatch):
    plans = [general(*entangled(seed)) for seed in SEEDS]
    clock = itertools.count(step=1000.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    slow = [general(*entangled(seed)) for seed in SEEDS]
    assert [one.assignment.tolist() for one in slow] == [one.assignment.tolist() for one in plans]
    assert [one.bound for one in slow] == [one.bound for one in plans]


def test_only_who_asks_for_it_is_stopped_by_the_clock(monkeypatch):
    told = []
    real = programme.milp
    monkeypatch.setattr(
        programme, "milp", lambda *args, **named: told.append(dict(named["options"])) or real(*args, **named)
    )
    for seconds in (None, 0, 60):
        general(*entangled(SEEDS[0]), seconds=seconds)
    assert ["time_limit" in one for one in told] == [False, True]
    assert [one["node_limit"] for one in told] == [programme.EFFORT // (48 * 6**2)] * 2


@pytest.mark.parametrize("seed", SEEDS)
def test_a_programme_that_is_stopped_is_no_worse_than_none(seed, monkeypatch):
    monkeypatch.setattr(programme, "EFFORT", 1)
    *bins, workers, tau = entangled(seed)
    without, stopped = (general(*bins, workers, tau, seconds=seconds) for seconds in (0, None))
    monkeypatch.undo()
    ended = general(*bins, workers, tau)
    check(stopped, bins[2], workers, tau)
    assert ended.moved <= stopped.moved <= without.moved
    assert without.bound <= stopped.bound <= ended.bound <= ended.moved
    assert ended.moved < without.moved


def test_a_programme_that_is_too_large_is_not_begun(monkeypatch):
    monkeypatch.setattr(programme, "LARGEST", 48 * 6**2 - 1)
    plain, large = (general(*entangled(SEEDS[0]), seconds=seconds) for seconds in (0, None))
    assert (large.assignment.tolist(), large.bound) == (plain.assignment.tolist(), plain.bound)
    monkeypatch.setattr(programme, "LARGEST", 48 * 6**2)
    assert general(*entangled(SEEDS[0])).moved < plain.moved


def test_what_can_not_be_balanced_names_a_tau_that_can():
    with pytest.raises(Unbalanceable, match=r"bin 0 alone has 1\.8 times the mean") as refusal:
        general([0, 0], [1, 1], [9, 1], 2, 0.1)
    plan = general([0, 0], [1, 2], [9, 1], 2, refusal.value.least)
    assert plan.assignment.tolist() == [1, 0]


def test_bins_without_load_stay_where_they_are():
    plan = general([0, 0, 0, 1], [5, 5, 5, 5], [0, 4, 4, 0], 2, 0)
    assert plan.assignment.tolist() in ([0, 0, 1, 1], [0, 1, 0, 1])
    assert plan.moved == 5


def test_without_state_few_bins_move():
    owners = [0] * 6 + [1] * 2
    plan = general(owners, [0] * 8, [1, 1, 1, 1, 1, 3, 4, 4], 2, 0)
    assert (plan.assignment != owners).sum() == 0
    plan = general(owners, [0] * 8, [2, 2, 2, 2, 2, 4, 1, 1], 2, 0)
    assert (plan.assignment != owners).sum() == 2


def test_the_workers_that_keep_least_leave():
    plan = general([0, 1, 2, 0, 1, 2], [1, 9, 9, 1, 9, 9], [1] * 6, 2, 0)
    assert set(plan.assignment.tolist()) == {1, 2}
    assert plan.moved == 2


@settings(max_examples=200)
@given(problems(most=6, intervals=False, workers=3))
@example(([0, 0, 1], [0, 1, 1], [0, 0, 0], 1, 0.0))
def test_the_programme_alone_finds_the_best(problem):
    owners, sizes, loads, workers, tau = problem
    assume(sum(sizes) > 0)
    task = Problem.of(owners, sizes, loads, workers)
    numbers, home = np.unique(owners, return_inverse=True)
    candidates = max(workers, len(numbers))
    answer = programme.assigned(task, home.ravel(), task.limit(tau), candidates, sum(sizes))
    wanted = least_moved(owners, sizes, loads, workers, tau)
    assert (answer.place is None) == (wanted is None)
    if answer.place is not None:
        assert task.sizes[answer.place != home.ravel()].sum() == pytest.approx(wanted, rel=1e-5, abs=1e-5)
        assert answer.bound <= wanted + 1e-5


@settings(max_examples=200)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.integers(1, 3))
def test_even_is_within_a_third_of_the_most_even(loads, workers):
    array = np.array(loads, float)
    heaviest = [
        np.bincount(place, array).max() for place in itertools.product(range(workers), repeat=len(loads))
    ]
    assert np.bincount(packing.even(array, workers), array).max() <= 4 / 3 * min(heaviest)
