"""Where single-step plans lead, and that looking ahead is no worse than following them."""

from __future__ import annotations

import numpy as np

from sterna.planning import ssm
from sterna.planning.inputs import Inputs
from sterna.planning.matrix import Matrix
from sterna.planning.mtm import mtm
from sterna.planning.precompute import precompute
from sterna.planning.search import Effort
from sterna.planning.walk import trodden

BINS, COUNTS, TAU = 40, range(5, 10), 0.5


def skewed(seed):
    """Sizes and loads by Zipf's law, a matrix of counts that are near each other, and a way through it."""
    random = np.random.default_rng(seed)
    sizes = random.permutation(np.arange(1.0, BINS + 1) ** -1.0)
    near = np.abs(np.subtract.outer(COUNTS, COUNTS)) ** 2.0
    np.fill_diagonal(near, np.inf)
    chances = random.random(near.shape) ** 3 / near
    matrix = Matrix.of(COUNTS, chances / chances.sum(axis=1, keepdims=True))
    way = [COUNTS[0]]
    for _ in range(400):
        after = matrix.following(way[-1])
        way.append(int(random.choice(list(after), p=list(after.values()))))
    return sizes, sizes**0.25, matrix, way


def moved(planner, way):
    """What a planner moves on its way, after some steps in which it settles."""
    owners, out = np.zeros(BINS, np.int64), []
    for count in way:
        plan = planner(owners, count)
        owners = plan.assignment
        out.append(plan.moved)
    return sum(out[20:])


def test_looking_ahead_moves_no_more_than_single_steps_where_few_candidates_are_looked_at():
    # Without what single-step plans lead to among the candidates it moved 28 % more.
    sizes, loads, matrix, way = skewed(2)
    few = Effort(pool=80, exact=0, rounds=2, looked_at=10)
    values = precompute(sizes, loads, matrix, tau=TAU, gamma=0.8, effort=few)
    ahead = moved(lambda owners, count: mtm(owners, sizes, loads, count, values), way)
    assert ahead <= moved(lambda owners, count: ssm(owners, sizes, loads, count, TAU), way)


def test_what_single_steps_lead_to_is_even_and_the_same_every_time():
    sizes, loads, matrix, _ = skewed(0)
    inputs = Inputs.of(sizes, loads, matrix, TAU, 0.8)
    found = trodden(inputs, most=7, steps=200)
    assert found.keys() == set(COUNTS)
    for count, rows in found.items():
        assert 1 < len(rows) <= 7
        assert rows.shape[1] == count + 1
        assert (rows[:, 0] == 0).all()
        assert (rows[:, -1] == BINS).all()
        held = np.diff(np.concatenate([[0], np.cumsum(inputs.loads)])[rows], axis=1)
        assert held.max() <= (1 + TAU) / count + 1e-12
        assert rows.tolist() == trodden(inputs, most=7, steps=200)[count].tolist()


def test_a_count_that_nothing_follows_ends_the_way():
    matrix = Matrix.of([2, 3], [[1, 0], [0, 1]])
    found = trodden(Inputs.of([1, 1, 1, 1], [1, 1, 1, 1], matrix, 0.5, 0.5), most=5)
    assert {count: len(rows) for count, rows in found.items()} == {2: 1, 3: 1}
