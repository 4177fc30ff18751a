"""Several migrations that are known ahead, against all sequences of partitionings that there are."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning.brute import even_enough, given_out, problems
from sterna.errors import InvalidInput
from sterna.planning import Unbalanceable, sequence, ssm
from sterna.planning.overlap import kept
from sterna.planning.sequence import partitionings


def brute(owners, sizes, loads, counts, tau):
    """The least that moves in all steps together: every partitioning at every step.

    Who has which interval makes no difference later.
    """
    best = {tuple(owners): 0.0}
    for count in counts:
        after = {}
        for before, cost in best.items():
            for pieces in even_enough(loads, count, tau):
                stays = given_out(pieces, before, sizes, range(8))
                new = tuple(worker for worker, (a, b) in enumerate(pieces) for _ in range(b - a))
                after[new] = min(after.get(new, np.inf), cost + sum(sizes) - stays)
        best = after
    return min(best.values(), default=None)


@settings(max_examples=300)
@given(problems(most=6, workers=3), st.lists(st.integers(1, 3), min_size=1, max_size=3))
def test_no_sequence_moves_less(problem, counts):
    owners, sizes, loads, _, tau = problem
    wanted = brute(owners, sizes, loads, counts, tau)
    if wanted is None:
        with pytest.raises(Unbalanceable):
            sequence(owners, sizes, loads, counts, tau)
        return
    plans = sequence(owners, sizes, loads, counts, tau)
    assert sum(plan.moved for plan in plans) == pytest.approx(wanted)
    for plan, count in zip(plans, counts, strict=True):
        assert np.bincount(plan.assignment, loads).max() <= (1 + tau) * sum(loads) / count + 1e-9
        assert len(set(plan.assignment.tolist())) <= count


@settings(max_examples=200)
@given(problems())
def test_a_sequence_of_one_is_a_single_step(problem):
    owners, sizes, loads, workers, _ = problem
    (plan,) = sequence(owners, sizes, loads, [workers], "least")
    single = ssm(owners, sizes, loads, workers, "least")
    assert (plan.moved, plan.tau) == (pytest.approx(single.moved), single.tau)


def test_the_example_of_the_paper_costs_less_than_the_paper_says():
    # Table 3: 13 and 7 bins, then 3 workers, then 4; the paper's best is 5 + 4. From 8, 5, 7 one bin is
    # enough: 7, 1, 5, 7.
    owners, ones = [0] * 13 + [1] * 7, [1] * 20
    plans = sequence(owners, ones, ones, [3, 4], 0.4)
    assert [plan.moved for plan in plans] == [5, 1]
    assert np.bincount(plans[1].assignment).max() <= 7
    assert ssm(owners, ones, ones, 3, 0.4).moved == 4


def test_what_the_sequences_of_the_paper_cost():
    # The 10 and 9 of Table 3 are counts of tasks given up. As intervals, in whatever order, both cost 10.
    alone, better = [(13, 7), (9, 9, 2), (6, 6, 2, 6)], [(13, 7), (8, 7, 5), (6, 6, 4, 4)]
    assert (given_up(alone), given_up(better)) == (10, 9)
    assert (as_intervals(alone), as_intervals(better)) == (10, 10)


def given_up(steps):
    return sum(
        max(0, a - b) for old, new in itertools.pairwise(steps) for a, b in zip(old, new, strict=False)
    )


def as_intervals(steps):
    orders = itertools.product(steps[:1], *(set(itertools.permutations(step)) for step in steps[1:]))
    cuts = ([np.array([[0, *np.cumsum(step)]]) for step in order] for order in orders)
    return min(
        sum(20 - kept(old, new, np.arange(21.0)).item() for old, new in itertools.pairwise(way))
        for way in cuts
    )


def test_looking_ahead_beats_one_step_after_the_other():
    owners, ones = [0] + [1] * 5, [1] * 6
    first = ssm(owners, ones, ones, 3, 0.5)
    alone = first.moved + ssm(first.assignment, ones, ones, 4, 0.5).moved
    assert sum(plan.moved for plan in sequence(owners, ones, ones, [3, 4], 0.5)) == 3 < alone


@settings(max_examples=500)
@given(problems())
def test_all_partitionings_are_found_once(problem):
    _, _, loads, workers, tau = problem
    rows = partitionings(np.array(loads, float), workers, tau)
    wanted = {
        (0, *(b for _, b in pieces), *[len(loads)] * (workers - len(pieces)))
        for pieces in even_enough(loads, workers, tau)
    }
    assert {tuple(row) for row in rows.tolist()} == wanted
    assert len(rows) == len(wanted)


def test_too_many_partitionings_are_refused_with_their_number():
    many = len([*even_enough([1] * 12, 4, 0.5)])
    with pytest.raises(
        InvalidInput, match=f"there are {many} partitionings of 12 bins into 4 intervals, more than 20"
    ):
        partitionings(np.ones(12), 4, 0.5, most=20)
    assert len(partitionings(np.ones(12), 4, 0.5, most=many)) == many


def test_too_many_pairs_are_refused(monkeypatch):
    monkeypatch.setattr(sys.modules[sequence.__module__], "MOST_PAIRS", 10)
    with pytest.raises(InvalidInput, match="too many to look at all pairs"):
        sequence([0] * 13 + [1] * 7, [1] * 20, [1] * 20, [3, 4], 0.4)


def test_the_balance_that_is_named_is_enough_for_all_steps():
    with pytest.raises(Unbalanceable) as refused:
        sequence([0] * 10, [1] * 10, [1] * 10, [2, 3, 4], 0)
    assert len(sequence([0] * 10, [1] * 10, [1] * 10, [2, 3, 4], refused.value.least)) == 3


def test_a_count_that_is_none_is_named():
    with pytest.raises(InvalidInput, match=r"counts\[1\]: the number of workers must be between 1 and"):
        sequence([0], [1], [1], [1, 0], 0)


def test_a_sequence_needs_a_count():
    with pytest.raises(InvalidInput, match="at least one worker count"):
        sequence([0], [1], [1], [], 0)


def test_the_count_that_can_not_be_balanced_is_named():
    with pytest.raises(Unbalanceable, match="into 3 intervals"):
        sequence([0] * 4, [1] * 4, [1] * 4, [2, 3], 0.1)


@given(problems(most=6, workers=3))
def test_the_least_tau_is_taken_at_each_step(problem):
    owners, sizes, loads, _, _ = problem
    plans = sequence(owners, sizes, loads, [2, 3], "least")
    assert [plan.tau for plan in plans] == [ssm(owners, sizes, loads, count, "least").tau for count in (2, 3)]


def test_steps_follow_one_another():
    owners, ones = [0] * 13 + [1] * 7, [1] * 20
    plans = sequence(owners, ones, ones, [3, 4, 2], 0.4)
    states = [np.array(owners), *(plan.assignment for plan in plans)]
    assert [int((a != b).sum()) for a, b in itertools.pairwise(states)] == [plan.moved for plan in plans]
