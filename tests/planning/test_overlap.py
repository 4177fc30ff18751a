"""What stays from one partitioning to another, and who gets what."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.brute import given_out
from sterna.planning import overlap
from sterna.planning.assigning import assigned
from sterna.planning.overlap import kept

COUNT = 7
cuts = st.integers(1, 4).flatmap(
    lambda many: st.lists(
        st.lists(st.integers(0, COUNT), min_size=many - 1, max_size=many - 1).map(
            lambda inner: [0, *sorted(inner), COUNT]
        ),
        min_size=1,
        max_size=4,
    )
)
sizes = st.lists(st.integers(0, 5), min_size=COUNT, max_size=COUNT)


def owners_of(row):
    return np.repeat(np.arange(len(row) - 1), np.diff(row))


def pieces_of(row):
    return [(a, b) for a, b in itertools.pairwise(row) if a < b]


@given(cuts, cuts, sizes)
def test_no_other_matching_keeps_more(old, new, state):
    before = np.concatenate([[0], np.cumsum(state)]).astype(float)
    found = kept(np.array(old), np.array(new), before)
    for i, was in enumerate(old):
        for j, will_be in enumerate(new):
            best = given_out(pieces_of(will_be), owners_of(was), state, range(8))
            assert found[i, j] == best


@given(cuts, cuts, sizes)
def test_an_assignment_keeps_as_much(old, new, state):
    before = np.concatenate([[0], np.cumsum(state)]).astype(float)
    owners = owners_of(old[0])
    plan = assigned(owners, np.array(state, float), np.array(new[0]), 0.5)
    assert plan.kept == kept(np.array(old[:1]), np.array(new[:1]), before)[0, 0]
    begins = [a for a, _ in pieces_of(new[0])]
    assert len(set(plan.assignment[begins].tolist())) == len(begins)
    assert all(len(set(plan.assignment[a:b].tolist())) == 1 for a, b in pieces_of(new[0]))
    assert plan.tau == 0.5


def test_workers_that_have_bins_now_come_before_new_ones():
    plan = assigned(np.array([5, 5, 9, 9]), np.array([0.0, 4, 4, 0]), np.array([0, 1, 2, 4]), 0)
    assert plan.assignment.tolist() == [0, 5, 9, 9]
    moved_out = assigned(np.array([5, 5, 5, 9]), np.array([4.0, 4, 4, 0]), np.array([0, 2, 4]), 0)
    assert moved_out.assignment.tolist() == [5, 5, 9, 9]


@pytest.mark.parametrize("block", [1, 3, 1 << 15])
def test_blocks_make_no_difference(block, monkeypatch):
    random = np.random.default_rng(0)
    old, new = (
        np.column_stack([np.zeros(9), np.sort(random.integers(0, 31, (9, many))), np.full(9, 30)]).astype(int)
        for many in (3, 5)
    )
    before = np.concatenate([[0], np.cumsum(random.random(30))])
    whole = kept(old, new, before)
    monkeypatch.setattr(overlap, "BLOCK", block)
    assert np.array_equal(kept(old, new, before), whole)
