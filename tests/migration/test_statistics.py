"""Sizes, balance, and distributions of durations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sterna.configuration import Configuration, moves
from sterna.engine.observing import Observer
from sterna.keys import Keys
from sterna.rehearsal import REMEMBERED
from sterna.spread import Spread
from sterna.state.manifest import Manifest
from sterna.state.refs import RunRef
from sterna.statistics import EpochCost, Recent, Statistics, bin_bytes
from sterna.targets import balance

EDGES = st.lists(st.integers(0, 2**64), min_size=2, max_size=2, unique=True).map(sorted)


def ref(name, lo, hi, size):
    return RunRef(name, lo, hi, 0, 0, 10, size, 0, False, None, None)


@given(st.lists(st.tuples(EDGES, st.integers(1, 10**9)), min_size=1, max_size=8), st.integers(0, 10))
@example(runs=[([2**64 - 77322176, 2**64 - 66047924], 1)], bits=0)
@example(runs=[([2**63 - 1, 2**63 + 1], 1), ([0, 2**64], 1)], bits=10)
def test_the_bytes_of_all_bins_are_the_bytes_of_all_runs(runs, bits):
    refs = [ref(str(i), lo, hi, size) for i, ((lo, hi), size) in enumerate(runs)]
    sizes = bin_bytes({0: {"state": refs}}, Configuration.initial(1 << bits, 1))
    assert len(sizes) == 1 << bits
    assert sizes.sum() == pytest.approx(sum(size for _, size in runs), rel=1e-6)
    assert (sizes >= 0).all()


def test_bytes_are_where_the_hashes_are():
    quarter = 2**62
    refs = [ref("a", 0, 2 * quarter, 100), ref("b", quarter, 2 * quarter, 30)]
    sizes = bin_bytes({0: {"state": refs}}, Configuration.initial(4, 2))
    assert sizes.tolist() == pytest.approx([50, 80, 0, 0])


def test_what_a_run_spans_but_its_worker_does_not_own_counts_for_nothing():
    owners = np.array([0, 1, 1, 0], np.int32)
    mine, theirs = ref("a", 0, 2**64, 60), ref("b", 2**62, 3 * 2**62, 80)
    sizes = bin_bytes({0: {"s": [mine]}, 1: {"s": [theirs]}}, Configuration(2, 2, owners))
    assert sizes.tolist() == pytest.approx([30, 40, 40, 30])


def test_a_run_that_was_parted_is_counted_once():
    half = 2**63
    sizes = bin_bytes(
        {0: {"s": [ref("a", 0, half, 100)]}, 1: {"s": [ref("a", half, 2 * half, 100)]}},
        Configuration.initial(2, 2),
    )
    assert sizes.tolist() == pytest.approx([50, 50])


@given(
    st.integers(1, 8),
    st.lists(st.floats(0, 1000), min_size=64, max_size=64),
    st.lists(st.integers(0, 7), min_size=64, max_size=64),
)
def test_balancing_never_makes_it_worse(workers, load, owners):
    current = Configuration(6, workers, np.array(owners, np.int32) % workers)
    known = Statistics(np.zeros(64), np.array(load))
    after = balance().resolve(current, known)
    weight = np.array(load) if sum(load) > 0 else np.ones(64)
    before_most, after_most = (np.bincount(c.owners, weight, workers).max() for c in (current, after))
    assert after_most <= before_most + 1e-6


def test_balancing_by_what_is_known():
    current = Configuration.initial(8, 2)
    hot = Statistics(np.zeros(8), np.array([4.0, 4, 4, 4, 0, 0, 0, 0]))
    assert np.bincount(balance().resolve(current, hot).owners, hot.rows, 2).tolist() == [8, 8]
    large = Statistics(np.array([4.0, 4, 4, 4, 0, 0, 0, 0]), np.zeros(8))
    assert np.bincount(balance().resolve(current, large).owners, large.bytes, 2).tolist() == [8, 8]
    lopsided = Configuration(3, 2, np.zeros(8, np.int32))
    even = balance().resolve(lopsided)
    assert even.owned().tolist() == [4, 4]
    assert len(moves(lopsided, even)) >= 1


@given(st.lists(st.floats(0.02, 1e5), min_size=1, max_size=200), st.floats(1, 100))
def test_percentiles_are_right_to_two_percent_and_never_too_good(durations, percent):
    some = Spread.of(durations)
    exact = float(np.percentile(durations, percent, method="inverted_cdf"))
    found = some.percentile(percent)
    assert exact * (1 - 1e-9) <= found <= max(exact * 1.0201, exact + 1e-9)
    assert Spread.from_json(some.to_json()) == some
    assert some.summary()["max_ms"] == round(max(durations), 1)


def test_no_durations():
    assert Spread().percentile(50) is None
    assert Spread().summary() == {"epochs": 0}


def test_with_more_bins_a_heavy_key_stays_in_one_of_them():
    keys = Keys(np.array([5 << 61], np.uint64), np.array([60.0]), 0.0, 100.0)  # in the sixth of eight bins
    known = Statistics(np.full(4, 8.0), np.array([10.0, 10, 70, 10]), [], keys).at(8)
    assert known.rows.tolist() == [5, 5, 5, 5, 5, 65, 5, 5]
    assert known.bytes.tolist() == [4.0] * 8
    assert known.keys is keys
    assert known.at(2).rows.tolist() == [20, 80]


def test_what_a_strategy_is_told_of_the_last_epochs_grows_and_can_not_be_changed():
    kept = [EpochCost(1, 50.0)]
    told = Recent(lambda: kept)
    kept.append(EpochCost(2, 60.0))
    assert [one.epoch for one in told] == [1, 2]
    assert (told[-1].epoch, [one.epoch for one in told[:1]], len(told)) == (2, [1], 2)
    with pytest.raises(AttributeError):
        told.clear()
    with pytest.raises(TypeError):
        told[0] = EpochCost(3, 1.0)


def test_an_epoch_may_end_while_the_last_ones_are_looked_at():
    """As it does where a thread of the user's asks for a price while the query runs."""
    here = Configuration.initial(4, 2)

    def ended(epoch):
        facts = {"ms": 50.0, "moved_bytes": 0, "moved_bins": 0, "rows": 1}
        return Manifest(epoch, 1, {"counts": here}, {}, [None], facts=facts)

    observer = Observer(["counts"])
    for epoch in range(REMEMBERED):
        observer.remember(ended(epoch))
    recent = observer.statistics("counts", ended(0)).recent
    looking = iter(recent)
    seen = [next(looking).epoch]
    observer.remember(ended(REMEMBERED))
    seen += [one.epoch for one in looking]
    assert seen == list(range(REMEMBERED))
    assert [one.epoch for one in recent] == list(range(1, REMEMBERED + 1))
