"""What others do: each in its own way, and none better than the best."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning.brute import problems, skewed
from sterna.planning import ssm
from sterna.planning.baselines import BASELINES, consistent, flux, redist, storm


@settings(max_examples=100)
@given(problems(intervals=False), st.sampled_from(sorted(BASELINES)))
def test_each_gives_every_bin_to_a_worker_and_says_how_even_that_is(problem, name):
    owners, sizes, loads, workers, _ = problem
    plan = BASELINES[name](*problem)
    assert set(plan.assignment.tolist()) <= set(range(workers))
    assert plan.moved == pytest.approx(np.array(sizes) @ (plan.assignment != np.array(owners)))
    heaviest = np.bincount(plan.assignment, loads).max()
    assert heaviest == pytest.approx((1 + plan.tau) * sum(loads) / workers, abs=1e-9)
    assert BASELINES[name](*problem).assignment.tolist() == plan.assignment.tolist()


@settings(max_examples=200)
@given(problems())
def test_equal_counts_never_move_less_than_the_best_with_their_balance(problem):
    owners, sizes, loads, workers, _ = problem
    plan = storm(owners, sizes, loads, workers)
    best = ssm(owners, sizes, loads, workers, plan.tau + 1e-9, leaving="last")
    assert best.moved <= plan.moved + 1e-9


def test_a_worker_that_comes_takes_and_the_others_keep_theirs():
    ones = np.ones(4096)
    before = consistent(np.zeros(4096, int), ones, ones, 8).assignment
    after = consistent(before, ones, ones, 9)
    moved = before != after.assignment
    assert set(after.assignment[moved].tolist()) == {8}
    assert 0.05 < after.moved / 4096 < 0.2
    assert consistent(after.assignment, ones, ones, 8).assignment.tolist() == before.tolist()


def test_another_seed_is_another_ring():
    ones = np.ones(256)
    rings = [consistent(np.zeros(256, int), ones, ones, 8, seed=seed).assignment.tolist() for seed in (0, 1)]
    assert rings[0] != rings[1]


def test_a_bounded_ring_is_within_the_balance_and_otherwise_the_ring():
    owners, sizes, loads = skewed(1024, 8, 0)
    free = consistent(owners, sizes, loads, 8)
    bounded = consistent(owners, sizes, loads, 8, 0.2, bounded=True)
    assert bounded.tau <= 0.2 < free.tau
    assert (bounded.assignment == free.assignment).mean() > 0.5
    assert (
        consistent(owners, sizes, loads, 8, 8.0, bounded=True).assignment.tolist() == free.assignment.tolist()
    )


@pytest.mark.parametrize("baseline", [redist, flux])
def test_those_that_look_at_loads_reach_the_balance_asked_for(baseline):
    owners, sizes, loads = skewed(1024, 8, 0)
    assert baseline(owners, sizes, loads, 8, 0.1).tau <= 0.1
    assert baseline(owners, sizes, loads, 6, 0.1).tau <= 0.1


@pytest.mark.parametrize("name", BASELINES)
def test_the_least_balance_is_that_of_intervals(name):
    problem = *skewed(64, 8, 0), 6
    least = ssm(*problem, "least").tau
    plan = BASELINES[name](*problem, "least")
    assert plan.assignment.tolist() == BASELINES[name](*problem, least).assignment.tolist()


@pytest.mark.parametrize("baseline", [redist, flux])
def test_what_is_even_enough_stays(baseline):
    owners, ones = np.repeat([0, 1, 2, 3], 4), np.ones(16)
    assert baseline(owners, ones, ones, 4, 0.1).moved == 0


def test_pairs_move_one_bin_at_a_time_from_the_heaviest_to_the_lightest():
    plan = flux([0, 0, 0, 0, 1, 2], [1] * 6, [4, 3, 2, 1, 2, 4], 3, 0.2)
    assert plan.assignment.tolist() == [1, 0, 0, 0, 1, 2]
