"""What a worker can keep, against all choices that there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sterna.planning import knapsack
from sterna.planning.knapsack import most_kept

amounts = st.one_of(st.integers(0, 6), st.floats(0, 1).map(lambda x: round(x, 3)))
parts = st.integers(0, 20).map(lambda twentieths: twentieths / 20)
bins = st.lists(st.tuples(amounts, amounts), min_size=1, max_size=9)


def brute(sizes, loads, limit):
    choices = itertools.product([False, True], repeat=len(sizes))
    limit *= 1 + 1e-12
    return max(sizes[list(choice)].sum() for choice in choices if loads[list(choice)].sum() <= limit)


def check(sizes, loads, limit, **options):
    found = most_kept(sizes, loads, limit, **options)
    best = brute(sizes, loads, limit)
    assert loads[found.bins].sum() <= limit * (1 + 1e-12)
    assert sizes[found.bins].sum() <= best * (1 + 1e-12)
    assert best <= found.bound * (1 + 1e-12)
    return sizes.sum() - sizes[found.bins].sum(), sizes.sum() - best, sizes.sum() - found.bound


@settings(max_examples=400)
@given(bins, parts)
def test_no_choice_keeps_more(pairs, part):
    sizes, loads = np.array(pairs, float).T
    given_up, best, bound = check(sizes, loads, part * loads.sum() + 1e-9)
    assert given_up == pytest.approx(best, rel=1e-6, abs=1e-12)
    assert bound == pytest.approx(best, rel=1e-6, abs=1e-12)


@settings(max_examples=200)
@given(bins, parts, st.integers(2, 5))
def test_what_is_forgotten_remains_in_the_bound(pairs, part, remembered):
    sizes, loads = np.array(pairs, float).T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knapsack, "AT_ONCE", remembered)
        check(sizes, loads, part * loads.sum() + 1e-9)


@given(bins, parts, st.integers(0, 6))
def test_a_search_that_ends_early_has_a_choice_and_a_bound(pairs, part, work):
    sizes, loads = np.array(pairs, float).T
    check(sizes, loads, part * loads.sum() + 1e-9, work=work)


@pytest.mark.parametrize("part", [0.9, 0.5, 0.1])
@pytest.mark.parametrize("alike", [False, True])
def test_thousands_of_bins_are_decided(part, alike):
    random = np.random.default_rng(1)
    loads = np.minimum(random.pareto(1.5, 2000) + 0.05, 50)
    sizes = loads * random.uniform(0.8, 1.2, 2000) if alike else random.random(2000)
    found = most_kept(sizes, loads, part * loads.sum())
    assert loads[found.bins].sum() <= part * loads.sum()
    assert sizes.sum() - sizes[found.bins].sum() <= (sizes.sum() - found.bound) * (1 + 1e-4)
