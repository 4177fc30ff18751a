"""The plan that looks ahead, against a decision process solved in the plainest way.

It is solved over all partitionings that there are.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planning.brute import even_enough, given_out
from sterna.errors import InvalidInput
from sterna.planning import Unbalanceable, ssm
from sterna.planning.history import changes
from sterna.planning.matrix import Matrix
from sterna.planning.mtm import mtm
from sterna.planning.precompute import precompute
from sterna.planning.priced import Pieces
from sterna.planning.search import Effort
from sterna.targets import as_target

SMALL = Effort(pool=24, exact=0, rounds=3, looked_at=12)


def assignment_of(pieces):
    return [worker for worker, (a, b) in enumerate(pieces) for _ in range(b - a)]


def solved(sizes, loads, matrix, tau, gamma):
    """The value of each (worker count, partitioning).

    At every step, also where the count stays, everything is tried.
    """
    states = {
        count: [assignment_of(pieces) for pieces in even_enough(loads, count, tau)] for count in matrix.counts
    }
    pieces = {count: list(even_enough(loads, count, tau)) for count in matrix.counts}
    numbers = range(max(matrix.counts))
    total = sum(sizes) or 1
    moved = {
        (count, after): np.array(
            [
                [(sum(sizes) - given_out(new, old, sizes, numbers)) / total for new in pieces[after]]
                for old in states[count]
            ]
        )
        for count, after in itertools.product(matrix.counts, repeat=2)
    }
    values = {count: np.zeros(len(found)) for count, found in states.items()}
    for _ in range(400):
        values = {
            count: sum(
                chance * (moved[count, after] + gamma * values[after]).min(axis=1)
                for after, chance in zip(matrix.counts, matrix.rows[row], strict=True)
            )
            for row, count in enumerate(matrix.counts)
        }
    return {
        (count, tuple(state)): value
        for count in states
        for state, value in zip(states[count], values[count], strict=True)
    }


@st.composite
def processes(draw):
    """(sizes, loads, matrix, tau, gamma); some counts may stay, some changes may never happen."""
    bins = draw(st.integers(2, 6))
    counts = sorted(draw(st.sets(st.integers(1, min(3, bins)), min_size=1, max_size=3)))
    weights = st.lists(st.integers(0, 3), min_size=len(counts), max_size=len(counts)).filter(any)
    rows = np.array([draw(weights) for _ in counts], float)
    amounts = st.lists(st.integers(1, 4), min_size=bins, max_size=bins)
    return (
        draw(amounts),
        draw(amounts),
        Matrix.of(counts, rows / rows.sum(axis=1, keepdims=True)),
        draw(st.sampled_from([0.3, 0.6, 1.0, 2.0])),
        draw(st.sampled_from([0.0, 0.2, 0.5, 0.9])),
    )


@settings(max_examples=60)
@given(processes())
def test_values_are_exact_where_all_partitionings_are_looked_at(process):
    try:
        values = precompute(*process)
    except Unbalanceable:
        assume(False)
    wanted = solved(*process)
    assert values.found.exact
    found = {
        (count, tuple(np.repeat(np.arange(count), np.diff(cuts)).tolist())): value
        for count, rows in values.found.candidates.items()
        for cuts, value in zip(rows, values.found.values[count], strict=True)
    }
    assert found.keys() == wanted.keys()
    assert [found[state] for state in wanted] == pytest.approx(list(wanted.values()), abs=1e-9)


@settings(max_examples=60)
@given(processes(), st.data())
def test_no_plan_costs_less_now_and_later(process, data):
    sizes, loads, matrix, tau, gamma = process
    try:
        values = precompute(*process)
    except Unbalanceable:
        assume(False)
    worth, workers = solved(*process), data.draw(st.sampled_from(matrix.counts))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sizes)), max_size=2)))
    owners = assignment_of(itertools.pairwise([0, *cuts, len(sizes)]))
    plan = mtm(owners, sizes, loads, workers, values)
    total = sum(sizes)
    costs = {
        tuple(assignment_of(pieces)): (total - given_out(pieces, owners, sizes, range(4))) / total
        + gamma * worth[workers, tuple(assignment_of(pieces))]
        for pieces in even_enough(loads, workers, tau)
    }
    _, renamed = np.unique(
        np.cumsum(np.diff(plan.assignment, prepend=plan.assignment[0]) != 0), return_inverse=True
    )
    assert plan.moved / total + gamma * worth[workers, tuple(renamed.tolist())] == pytest.approx(
        min(costs.values()), abs=1e-9
    )
    assert plan.moved == sum(
        size for size, a, b in zip(sizes, owners, plan.assignment, strict=True) if a != b
    )


@functools.cache
def ring(bins, tau, gamma, effort=None, seed=1):
    random = np.random.default_rng(seed)
    matrix = Matrix.of([2, 3, 4], [[0, 0.7, 0.3], [0.5, 0, 0.5], [0.3, 0.7, 0]])
    sizes, loads = random.integers(1, 9, bins).tolist(), random.integers(8, 12, bins).tolist()
    return sizes, loads, matrix, precompute(sizes, loads, matrix, tau, gamma, effort=effort)


def followed(plan, matrix, bins, steps=300):
    """What moves in all, if worker counts follow each other as the matrix says."""
    random = np.random.default_rng(7)
    owners, total, count = np.arange(bins) * 2 // bins, 0.0, 2
    for _ in range(steps):
        count = int(random.choice(matrix.counts, p=matrix.rows[matrix.place(count)]))
        step = plan(owners, count)
        owners, total = step.assignment, total + step.moved
    return total


@pytest.mark.parametrize("gamma", [0.2, 0.5, 0.9])
def test_candidates_alone_are_nearly_as_good_as_all_partitionings(gamma):
    sizes, loads, matrix, exact = ring(20, 0.5, gamma)
    *_, rough = ring(20, 0.5, gamma, SMALL)
    assert exact.found.exact
    assert not rough.found.exact
    assert sum(map(len, rough.found.candidates.values())) < sum(map(len, exact.found.candidates.values())) / 2
    best, near = (
        followed(lambda owners, count, values=values: mtm(owners, sizes, loads, count, values), matrix, 20)
        for values in (exact, rough)
    )
    single = followed(lambda owners, count: ssm(owners, sizes, loads, count, 0.5), matrix, 20)
    assert near <= 1.02 * best
    assert near <= single
    for count, rows in rough.found.candidates.items():
        known = {
            tuple(cuts): value
            for cuts, value in zip(
                exact.found.candidates[count].tolist(), exact.found.values[count], strict=True
            )
        }
        for cuts, value in zip(rows.tolist(), rough.found.values[count], strict=True):
            assert value >= known[tuple(cuts)] - 1e-9, "candidates alone can't cost less"


@settings(max_examples=30)
@given(st.integers(2, 4), st.lists(st.integers(0, 12), max_size=3).map(sorted), st.booleans())
def test_without_a_future_it_moves_as_little_as_a_single_step(workers, cuts, rough):
    sizes, loads, _, values = ring(12, 0.5, 0.0, SMALL if rough else None)
    owners = assignment_of(itertools.pairwise([0, *cuts, 12]))
    plan = mtm(owners, sizes, loads, workers, values)
    assert plan.moved == ssm(owners, sizes, loads, workers, 0.5).moved
    held = np.bincount(plan.assignment, loads)
    assert held.max() <= 1.5 * sum(loads) / workers + 1e-9
    assert mtm(owners, sizes, loads, workers, values).assignment.tolist() == plan.assignment.tolist()


def test_bins_may_be_parts_of_those_that_the_values_know():
    sizes, loads, _, values = ring(12, 0.5, 0.8)
    halves = (
        [amount / 2 for amount in sizes for _ in range(2)],
        [amount / 2 for amount in loads for _ in range(2)],
    )
    owners = [0] * 6 + [1] * 6
    whole = mtm(owners, sizes, loads, 3, values)
    split = mtm(np.repeat(owners, 2), *halves, 3, values)
    assert split.moved <= whole.moved + 1e-9
    odd = mtm([0] * 11 + [1] * 13, *halves, 3, values)
    assert np.bincount(odd.assignment, halves[1]).max() <= 1.5 * sum(loads) / 3


def test_bins_that_differ_a_little_are_still_balanced():
    sizes, loads, _, values = ring(12, 0.3, 0.8)
    shifted = [load * factor for load, factor in zip(loads, [1.05] * 6 + [0.95] * 6, strict=True)]
    with pytest.raises(InvalidInput, match="of all load, not"):
        mtm([0] * 12, sizes, shifted, 4, values)
    plan = mtm([0] * 12, sizes, shifted, 4, values, tolerance=0.05)
    assert np.bincount(plan.assignment, shifted).max() <= 1.3 * sum(shifted) / 4 + 1e-9


@pytest.mark.parametrize("longer", [True, False])
def test_prices_may_be_of_longer_or_of_shorter_intervals(longer):
    sizes = list(range(1, 17))
    alike, uneven = [1.0] * 16, [0.8] * 8 + [1.2] * 8
    made_for, now = (uneven, alike) if longer else (alike, uneven)
    matrix = Matrix.of([2, 3, 4], [[0, 0.7, 0.3], [0.5, 0, 0.5], [0.3, 0.7, 0]])
    values = precompute(sizes, made_for, matrix, 0.5, 0.8, effort=SMALL)
    width = Pieces.of(np.array(sizes), np.array(now), 4, 0.5).begins.shape[1]
    assert (values.found.prices[4].shape[1] > width) == longer
    for workers in matrix.counts:
        plan = mtm([0] * 5 + [1] * 11, sizes, now, workers, values, tolerance=0.2)
        assert np.bincount(plan.assignment, now).max() <= 1.5 * sum(now) / workers + 1e-9


@pytest.mark.parametrize("values", ["values.npz", None])
def test_values_are_no_name_of_a_file(values):
    with pytest.raises(InvalidInput, match=r"it must be Values, as precompute gives them or Values\.load"):
        mtm([0, 1], [1, 1], [1, 1], 2, values)


def test_what_the_values_do_not_know_is_refused():
    sizes, loads, _, values = ring(12, 0.5, 0.8)
    with pytest.raises(InvalidInput, match="knows 2, 3, 4 workers, and not 5"):
        mtm([0] * 12, sizes, loads, 5, values)
    with pytest.raises(InvalidInput, match="12 bins, not 10"):
        mtm([0] * 10, sizes[:10], loads[:10], 3, values)
    with pytest.raises(InvalidInput, match="of all state, not"):
        mtm([0] * 12, sizes[::-1], loads, 3, values)


def test_changes_that_are_certain_are_prepared_for():
    matrix = Matrix.learnt(changes([2, 3, 2, 3, 2]))
    values = precompute([4, 3, 3, 2], [1] * 4, matrix, 0.5, 0.9)
    ours, single = [0, 1, 1, 1], [0, 1, 1, 1]
    totals = [0.0, 0.0]
    for count in [3, 2] * 4:
        plan, step = (
            mtm(ours, [4, 3, 3, 2], [1] * 4, count, values),
            ssm(single, [4, 3, 3, 2], [1] * 4, count, 0.5),
        )
        ours, single = plan.assignment, step.assignment
        totals = [totals[0] + plan.moved, totals[1] + step.moved]
    assert totals == [3, 16]


@pytest.mark.parametrize("gamma", [0.0, 0.5])
def test_the_last_workers_leave_where_that_is_asked_for(gamma):
    sizes, here = [9, 9, 1, 1, 9, 9, 9, 9], [0, 0, 1, 1, 2, 2, 3, 3]
    matrix = Matrix.of([3, 4], [[0, 1], [1, 0]])
    values = precompute(sizes, [1] * 8, matrix, tau=0.5, gamma=gamma)
    anybody = mtm(here, sizes, [1] * 8, 3, values)
    assert anybody.assignment.max() == 3  # the second has least to lose
    last = mtm(here, sizes, [1] * 8, 3, values, leaving="last")
    assert set(last.assignment.tolist()) == {0, 1, 2}
    assert last.moved == sum(size for size, a, b in zip(sizes, here, last.assignment, strict=True) if a != b)
    assert as_target(last).workers == last.workers == 3
    if not gamma:
        assert last.moved == ssm(here, sizes, [1] * 8, 3, 0.5, leaving="last").moved
    with pytest.raises(InvalidInput, match="leaving is 'first'"):
        mtm(here, sizes, [1] * 8, 3, values, leaving="first")
