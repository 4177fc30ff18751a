"""Bins that one key dominates: found, split where that helps, given a worker of their own where not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sterna.errors import InvalidInput
from sterna.hashing import bins_of
from sterna.heat import count_cells
from sterna.planning import Sketch, Unbalanceable, capped, general, hot, refined, ssm

TOP = 1 << 63


def stream(key, times, others=4000, seed=0):
    """Rows of many light keys, and of one heavy one."""
    light = np.random.default_rng(seed).integers(0, 1 << 64, others, dtype=np.uint64)
    return np.concatenate([light, np.full(times, key, np.uint64)])


def seen(rows, bits):
    """The load of each bin, and the sketch."""
    return count_cells(rows, bits).astype(float), Sketch.empty(64).seen(rows)


def test_the_bin_of_a_heavy_key_is_named_with_what_the_key_weighs():
    loads, sketch = seen(stream(TOP + 5, 1000), 4)
    (found,) = hot(loads, sketch, workers=4, tau=0.2)
    assert (found.bin, found.hash, found.bin_load) == (8, TOP + 5, loads[8])
    assert found.load <= 1000 <= found.at_most
    assert not found.alone


def test_no_bin_is_named_where_no_key_dominates():
    rows = stream(TOP, 0)
    assert hot(*seen(rows, 4), workers=4, tau=0.2) == []
    assert hot(np.zeros(16), Sketch.empty(8), workers=4, tau=0.2) == []


def test_a_heavy_key_is_parted_from_its_neighbours_by_more_bins():
    # The key is 900 of the limit of 1,125; its bin, an eighth of the others, is 1,400.
    rows = stream(TOP, 500)
    loads, sketch = seen(rows, 2)
    (found,) = hot(loads, sketch, workers=4, tau=0.2, part=0.3)
    assert loads[found.bin] > found.limit > found.load
    assert found.bins == 8
    finer, _ = seen(rows, 3)
    assert finer.max() <= found.limit


def test_a_bin_within_the_limit_needs_no_more_bins():
    loads, sketch = seen(stream(TOP, 600), 4)
    (found,) = hot(loads, sketch, workers=4, tau=0.2)
    assert found.bins == 16


def test_no_number_of_bins_helps_a_key_that_alone_is_too_heavy():
    loads, sketch = seen(stream(TOP, 9000), 4)
    (found,) = hot(loads, sketch, workers=4, tau=0.2)
    assert found.alone
    assert found.bins is None


def test_no_number_of_bins_parts_keys_that_are_too_near():
    near = np.repeat(np.array([TOP, TOP + 1], np.uint64), [600, 500])
    (found,) = hot(*seen(np.concatenate([stream(TOP, 0, others=900), near]), 4), workers=3, tau=0.2)
    assert not found.alone
    assert found.bins is None


@settings(max_examples=50)
@given(st.integers(0, (1 << 64) - 1), st.integers(0, 3000), st.integers(0, 6))
def test_refined_loads_are_close_to_those_of_the_finer_bins(key, times, more):
    rows = stream(key, times, others=20_000)
    loads, sketch = seen(rows, 3)
    owners, sizes, fine = refined([0, 0, 1, 1, 2, 2, 3, 3], np.arange(8), loads, 8 << more, sketch)
    true, _ = seen(rows, 3 + more)
    assert fine.sum() == pytest.approx(loads.sum())
    assert fine.reshape(8, -1).sum(axis=1) == pytest.approx(loads)
    assert np.abs(fine - true).max() <= sketch.error + 5 * np.sqrt(true.max()) + 5
    assert sizes.reshape(8, -1).sum(axis=1) == pytest.approx(np.arange(8))
    assert owners.reshape(8, -1).tolist() == [[worker] * (1 << more) for worker in (0, 0, 1, 1, 2, 2, 3, 3)]


def test_more_bins_make_a_balance_possible():
    rows = stream(TOP, 500)
    loads, sketch = seen(rows, 2)
    bins = [0, 1, 2, 3], [1] * 4, loads
    for planner in (ssm, general):
        with pytest.raises(Unbalanceable, match="bin 2 alone"):
            planner(*bins, 4, 0.2)
        plan = planner(*refined(*bins, 32, sketch), 4, 0.2)
        held = np.bincount(plan.assignment, count_cells(rows, 5))
        assert held.max() <= 1.25 * len(rows) / 4


@pytest.mark.parametrize("planner", [ssm, general])
def test_a_bin_beyond_any_balance_gets_a_worker_of_its_own(planner):
    loads = np.ones(16)
    loads[5] = 100
    owners = np.repeat([0, 1, 2, 3], 4)
    plan = planner(owners, np.ones(16), capped(loads, 4, 0.2), 4, 0.2)
    alone = plan.assignment[5]
    assert np.flatnonzero(plan.assignment == alone).tolist() == [5]
    others = np.bincount(plan.assignment[plan.assignment != alone])
    assert others.max() <= 6 == 1.2 * 15 / 3


LOADS = st.one_of(st.integers(0, 20), st.sampled_from([0, 0, 9, 1000]))


@settings(max_examples=1000)
@given(st.lists(LOADS, min_size=1, max_size=12), st.integers(1, 6), st.sampled_from([0.0, 0.2, 0.6, 1.5]))
def test_capped_loads_leave_no_bin_above_the_limit_and_each_heavy_one_at_it(loads, workers, tau):
    found, loads = capped(loads, workers, tau), np.array(loads)
    limit = (1 + tau) * found.sum() / workers
    assert found.max() <= limit * (1 + 1e-9)
    assert (found <= loads + 1e-9)[loads > 0].all()
    if loads.max() <= (1 + tau) * loads.sum() / workers:
        assert found.tolist() == loads.tolist()
    elif len(loads) * (1 + tau) >= workers:
        assert (found > 0)[loads > 0].all()
        assert found[found < loads] == pytest.approx(limit)
        assert found[loads.argmax()] == pytest.approx(limit)
    else:
        assert not found.any()


@pytest.mark.parametrize("planner", [ssm, general])
def test_heavy_bins_get_workers_of_their_own_even_if_no_other_bin_has_any_load(planner):
    loads = capped([9, 9, 0, 0], workers=3, tau=0.2)
    first, second, *others = planner([0] * 4, [1] * 4, loads, 3, 0.2).assignment.tolist()
    assert first != second
    assert {first, second}.isdisjoint(others)


def test_what_can_not_be_refined_is_refused():
    sketch = Sketch.empty(4)
    with pytest.raises(InvalidInput, match="there are 4 bins already: 2 is not more"):
        refined([0] * 4, [1] * 4, [1] * 4, 2, sketch)
    with pytest.raises(InvalidInput, match="must be a power of two, not 3"):
        refined([0] * 3, [1] * 3, [1] * 3, 4, sketch)
    with pytest.raises(InvalidInput, match="there are 4 loads, and 2 bins"):
        refined([0] * 2, [1] * 4, [1] * 4, 8, sketch)
    with pytest.raises(InvalidInput, match="must be a power of two"):
        hot([1, 1, 1], sketch, 2, 0.2)


@pytest.mark.parametrize("tau", ["least", None, -1])
def test_heavy_bins_are_those_of_a_balance_that_is_a_number(tau):
    for asked in (lambda: capped([1] * 4, 2, tau), lambda: hot([1] * 4, Sketch.empty(4), 2, tau)):
        with pytest.raises(InvalidInput, match=rf"tau is {tau!r}: it must be a number from 0 on$"):
            asked()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"part": "x"}, "part is 'x': it must be a number from 0 on"),
        ({"part": None}, "part is None"),
        ({"part": -0.5}, "part is -0.5"),
        ({"sketch": None}, "sketch is None: it must be a Sketch"),
        ({"sketch": [1, 2]}, r"sketch is \[1, 2\]"),
    ],
)
def test_what_no_heavy_bins_can_be_found_with_is_named(wrong, words):
    with pytest.raises(InvalidInput, match=words):
        hot(**{"loads": [1] * 4, "sketch": Sketch.empty(4), "workers": 2, "tau": 0.2, **wrong})


def test_bins_are_refined_with_a_sketch():
    with pytest.raises(InvalidInput, match="sketch is None: it must be a Sketch"):
        refined([0] * 4, [1] * 4, [1] * 4, 8, None)


def test_the_heaviest_key_comes_first():
    rows = np.concatenate([stream(TOP, 500), np.full(700, 3, np.uint64)])
    found = hot(*seen(rows, 4), workers=4, tau=0.2)
    assert [one.hash for one in found] == [3, TOP]
    assert [one.bin for one in found] == bins_of(np.array([3, TOP], np.uint64), 4).tolist()
