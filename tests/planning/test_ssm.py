"""The optimal single-step migration against all partitionings that there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning.brute import most_kept, problems, skewed
from sterna.planning import Unbalanceable, ssm


def held(plan, loads):
    return np.bincount(plan.assignment, loads)


@settings(max_examples=2000)
@given(problems(), st.sampled_from(["any", "last"]))
def test_no_partitioning_keeps_more(problem, leaving):
    owners, sizes, loads, workers, tau = problem
    wanted = most_kept(*problem, leaving)
    if wanted is None:
        with pytest.raises(Unbalanceable, match="the least tau is"):
            ssm(*problem, leaving)
        return
    plan = ssm(*problem, leaving)
    assert plan.kept == pytest.approx(wanted)
    assert plan.moved == pytest.approx(
        sum(s for s, a, b in zip(sizes, owners, plan.assignment, strict=True) if a != b)
    )
    assert plan.kept + plan.moved == pytest.approx(sum(sizes))
    assert held(plan, loads).max() <= (1 + tau) * sum(loads) / workers + 1e-9


@settings(max_examples=400)
@given(problems(), st.sampled_from(["any", "last"]))
def test_every_worker_has_one_interval_and_there_are_no_more_than_asked_for(problem, leaving):
    owners, sizes, loads, workers, _ = problem
    plan = ssm(owners, sizes, loads, workers, "least", leaving)
    pieces = len(np.flatnonzero(np.diff(plan.assignment))) + 1
    assert pieces == len(set(plan.assignment.tolist())) <= workers
    if leaving == "last" or workers > max(owners):
        assert plan.assignment.max() < workers


@settings(max_examples=500)
@given(problems())
def test_the_least_tau_is_the_least(problem):
    owners, sizes, loads, workers, _ = problem
    plan = ssm(owners, sizes, loads, workers, "least")
    assert most_kept(owners, sizes, loads, workers, plan.tau + 1e-9) is not None
    assert plan.tau < 1e-6 or most_kept(owners, sizes, loads, workers, plan.tau - 1e-6) is None


@pytest.mark.parametrize("load", [5e-324, 1.5e-323, 1e-310])
def test_loads_that_are_next_to_nothing_have_a_least_tau(load):
    plan = ssm([0] * 4, [1] * 4, [load] * 4, 3, "least")
    assert plan.tau == pytest.approx(0.5)
    assert np.bincount(plan.assignment).max() == 2
    with pytest.raises(Unbalanceable, match=r"the least tau is 0\.5"):
        ssm([0] * 4, [1] * 4, [load] * 4, 3, 0)


@settings(max_examples=500)
@given(problems())
def test_the_tau_that_a_refusal_names_is_possible(problem):
    owners, sizes, loads, workers, tau = problem
    if most_kept(*problem) is None:
        with pytest.raises(Unbalanceable) as refusal:
            ssm(*problem)
        named = float(str(refusal.value).rsplit(" ", 1)[1])
        assert named == pytest.approx(refusal.value.least, abs=1e-6)
        assert ssm(owners, sizes, loads, workers, named).tau == named > tau


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("old", "new"), [(8, 6), (8, 8), (8, 11), (3, 8)])
def test_larger_problems_come_out_as_by_the_quadratic_algorithm(seed, old, new):
    owners, sizes, loads = skewed(160, old, seed)
    assert ssm(owners, sizes, loads, new, 0.5).kept == pytest.approx(
        quadratic(owners, sizes, loads, new, 0.5)
    )


@pytest.mark.parametrize("seed", range(300))
def test_pieces_that_cover_many_intervals_come_out_as_by_the_quadratic_algorithm(seed):
    random = np.random.default_rng(seed)
    count = int(random.integers(8, 60))
    cuts = random.random(count - 1) < random.choice([0.4, 0.7, 1.0])
    owners = np.concatenate([[0], np.cumsum(cuts)])
    sizes, loads = random.pareto(1.2, count), random.choice([random.integers(0, 3, count), np.ones(count)])
    workers = int(random.integers(2, count // 2))
    least = ssm(owners, sizes, loads, workers, "least").tau
    tau = least + float(random.choice([0, 0.1, 0.3]))
    leaving = str(random.choice(["any", "last"]))
    kept = np.where(owners < workers, sizes, 0.0) if leaving == "last" else sizes
    plan = ssm(owners, sizes, loads, workers, tau, leaving)
    assert plan.kept == pytest.approx(quadratic(owners, kept, loads, workers, tau))


def quadratic(owners, sizes, loads, workers, tau):
    """The same recurrence as it would be written down.

    For each end, each begin, each worker that a piece could go to.
    """
    count, limit = len(owners), (1 + tau) * loads.sum() / workers * (1 + 1e-9)
    best = {(0, -1): 0.0}  # (cut, the old worker there if it has got a piece): most kept
    for _ in range(workers):
        longer = dict(best)
        for (begin, taken), value in best.items():
            for end in range(begin + 1, count + 1):
                if loads[begin:end].sum() > limit:
                    break
                gains = np.bincount(owners[begin:end], sizes[begin:end])
                for heir in [-1, *({*owners[begin:end].tolist()} - {taken})]:
                    gain = gains[heir] if heir >= 0 else 0.0
                    there = owners[end] if end < count else -1
                    used = there if there in (heir, taken) and there == owners[end - 1] else -1
                    longer[end, used] = max(longer.get((end, used), -1.0), value + gain)
        best = longer
    return best[count, -1]


def test_a_bin_that_alone_is_too_heavy_is_named():
    with pytest.raises(
        Unbalanceable, match=r"bin 2 alone has 2\.4 times the mean; the least tau is 1\.4"
    ) as refusal:
        ssm([0, 0, 1, 1], [1, 1, 1, 1], [1, 1, 12, 1], 3, 0.5)
    assert refusal.value.least == pytest.approx(1.4)


def test_the_same_number_of_workers_is_balanced():
    plan = ssm([0] * 6 + [1] * 2, [1] * 8, [1] * 8, 2, 0)
    assert plan.assignment.tolist() == [0] * 4 + [1] * 4


def test_what_is_even_enough_stays_as_it_is_even_without_state():
    owners = [2, 2, 0, 0, 1, 1]
    assert ssm(owners, [0] * 6, [1] * 6, 3, 0.1).assignment.tolist() == owners
    assert ssm(owners, [0, 5, 0, 0, 3, 0], [1] * 6, 3, 0.5).assignment.tolist() == owners


def test_more_workers_than_bins_leave_some_without_any():
    plan = ssm([0, 0, 0], [1, 1, 1], [1, 1, 1], 5, "least")
    assert sorted(plan.assignment.tolist()) == [0, 1, 2]
    assert plan.tau == pytest.approx(2 / 3)


def test_workers_without_an_interval_are_sent_to_the_general_planner():
    with pytest.raises(ValueError, match=r"worker 0 are no interval; general\(\)"):
        ssm([0, 1, 0], [1, 1, 1], [1, 1, 1], 2, 1)


def test_of_those_who_leave_any_may_be_first_and_the_last_must():
    owners, sizes = [0, 0, 1, 1, 2, 2], [1, 1, 9, 9, 9, 9]
    assert set(ssm(owners, sizes, [1] * 6, 2, 0.4).assignment.tolist()) == {1, 2}
    assert set(ssm(owners, sizes, [1] * 6, 2, 0.4, leaving="last").assignment.tolist()) == {0, 1}


def test_thousands_of_bins_are_planned_within_the_balance():
    owners, sizes, loads = skewed(4096, 16, 1)
    for new in (12, 16, 24):
        plan = ssm(owners, sizes, loads, new, 0.3)
        assert held(plan, loads).max() <= 1.3 * loads.sum() / new * (1 + 1e-9)
        assert 0 <= plan.moved < sizes.sum() / 2


@pytest.mark.parametrize(("old", "new"), [(1024, 8), (1024, 1000), (8, 1024), (600, 600)])
def test_bins_without_any_load_keep_the_largest_intervals(old, new):
    owners = np.arange(1024) * old // 1024
    sizes = np.random.default_rng(old).random(1024)
    whole = np.sort(np.bincount(owners, sizes))[::-1]
    assert ssm(owners, sizes, np.zeros(1024), new, 0).kept == pytest.approx(whole[:new].sum())


def test_intervals_that_follow_one_another_are_as_many_as_pieces():
    plan = ssm(*skewed(64, 16, 3), 12, "least")
    starts = [a for a, b in itertools.pairwise([-1, *plan.assignment.tolist()]) if a != b]
    assert len(starts) <= 12
