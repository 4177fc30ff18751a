"""Intervals with prices, for many partitionings at once, against all partitionings that there are."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planning.brute import even_enough, given_out, most_kept, problems
from sterna.planning.overlap import kept
from sterna.planning.priced import Pieces, following


def cuts_of(owners, columns):
    ends = [at for at in range(1, len(owners)) if owners[at] != owners[at - 1]]
    return [0, *ends, *[len(owners)] * (columns - len(ends))]


@settings(max_examples=300)
@given(problems(), st.sampled_from([0.0, 0.5, 3.0]), st.integers(0, 99))
def test_no_partitioning_is_worth_more(problem, height, seed):
    owners, sizes, loads, workers, tau = problem
    assume(most_kept(*problem) is not None)
    pieces = Pieces.of(np.array(sizes, float), np.array(loads, float), workers, tau)
    prices = np.random.default_rng(seed).random(pieces.begins.shape) * height
    (row,) = following(np.array([cuts_of(owners, 4)]), pieces, prices)
    best = max(
        given_out(some, owners, sizes, range(8)) - sum(prices[b, prices.shape[1] - (b - a)] for a, b in some)
        for some in even_enough(loads, workers, tau)
    )
    chosen = [(a, b) for a, b in itertools.pairwise(row.tolist()) if a < b]
    assert chosen in list(even_enough(loads, workers, tau))
    worth = given_out(chosen, owners, sizes, range(8)) - sum(
        prices[b, prices.shape[1] - (b - a)] for a, b in chosen
    )
    assert abs(worth - best) < 1e-9


def test_many_at_once_are_as_one_by_one():
    random = np.random.default_rng(3)
    sizes = random.random(30)
    pieces = Pieces.of(sizes, np.ones(30), 5, 0.4)
    old = np.sort(random.integers(0, 31, (200, 5)), axis=1)
    old[:, 0], old[:, -1] = 0, 30
    prices = random.random((200, *pieces.begins.shape)) * 0.3
    together = following(old, pieces, prices)
    assert together.tolist() == [
        following(old[[at]], pieces, prices[at])[0].tolist() for at in range(len(old))
    ]
    free = following(old, pieces)
    held = np.concatenate([[0], np.cumsum(sizes)])
    assert (np.diagonal(kept(old, free, held)) >= np.diagonal(kept(old, together, held)) - 1e-12).all()
