"""Strategies: every one leads to the target, in steps as it promises."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sterna import strategies
from sterna.configuration import Configuration
from sterna.errors import InvalidInput
from sterna.matching import matchings
from sterna.pacing import PATIENCE
from sterna.statistics import EpochCost, Statistics

COUNTS = st.dictionaries(st.tuples(st.integers(0, 9), st.integers(0, 9)), st.integers(1, 9), max_size=30)


@st.composite
def journeys(draw):
    """Two configurations of one number of bins, and what is known about the bins."""
    bits = draw(st.integers(0, 6))
    workers = draw(st.tuples(st.integers(1, 8), st.integers(1, 8)))
    owners = [
        np.array(draw(st.lists(st.integers(0, w - 1), min_size=1 << bits, max_size=1 << bits)), np.int32)
        for w in workers
    ]
    sizes = draw(st.lists(st.floats(0, 1e6), min_size=1 << bits, max_size=1 << bits))
    heat = draw(st.lists(st.floats(0, 1e6), min_size=1 << bits, max_size=1 << bits))
    known = Statistics(np.array(sizes), np.array(heat), [])
    return Configuration(bits, workers[0], owners[0]), Configuration(bits, workers[1], owners[1]), known


ANY = st.one_of(
    st.builds(strategies.all_at_once),
    st.builds(strategies.batched, st.integers(1, 9), order=st.sampled_from(strategies.ORDERS)),
    st.builds(strategies.matched, order=st.sampled_from(strategies.ORDERS)),
    st.builds(strategies.paced, bytes_per_epoch=st.integers(1, 10**6)),
    st.builds(strategies.paced, latency=st.floats(0.001, 1), order=st.sampled_from(strategies.ORDERS)),
)


def walk(strategy, current, target, known):
    """The steps, and the owners after them; the query tells what each step took."""
    owners = current.owners.copy()
    steps = []
    for step in strategy(current, target, known):
        for bin_, worker in step:
            assert owners[bin_] != worker
            owners[bin_] = worker
        size = int(sum(known.bytes[bin_] for bin_, _ in step))
        known.recent.append(EpochCost(len(steps), 50 + size / 1e4, size, len(step)))
        steps.append(step)
        assert len(steps) < 2000
    return steps, owners


@given(journeys(), ANY)
def test_every_strategy_reaches_the_target_and_moves_nothing_twice(journey, strategy):
    current, target, known = journey
    steps, owners = walk(strategy, current, target, known)
    assert owners.tolist() == target.owners.tolist()
    moved = [bin_ for step in steps for bin_, _ in step]
    assert sorted(moved) == np.flatnonzero(current.owners != target.owners).tolist()


@given(journeys(), st.integers(1, 9))
def test_a_batch_has_no_more_bins_than_it_was_told(journey, size):
    current, target, known = journey
    steps, _ = walk(strategies.batched(size), current, target, known)
    assert all(len(step) == size for step in steps[:-1])
    assert all(1 <= len(step) <= size for step in steps)


@given(journeys())
def test_matched_uses_each_worker_once_a_step_and_as_few_steps_as_that_allows(journey):
    current, target, known = journey
    steps, _ = walk(strategies.matched(), current, target, known)
    moving = np.flatnonzero(current.owners != target.owners)
    for step in steps:
        senders = [int(current.owners[bin_]) for bin_, _ in step]
        receivers = [worker for _, worker in step]
        assert len(set(senders)) == len(senders)
        assert len(set(receivers)) == len(receivers)
    sent = Counter(current.owners[moving].tolist())
    received = Counter(target.owners[moving].tolist())
    assert len(steps) == max([*sent.values(), *received.values()], default=0)


@pytest.mark.parametrize("order", strategies.ORDERS)
@given(journey=journeys())
def test_matched_takes_no_more_steps_in_any_order(journey, order):
    current, target, known = journey
    assert len(walk(strategies.matched(order=order), current, target, known)[0]) == len(
        walk(strategies.matched(), current, target, known)[0]
    )


@given(journeys())
def test_matched_begins_with_the_bin_that_is_first_in_its_order(journey):
    """Every edge of a regular graph is in one of its perfect matchings, so this never costs a step."""
    current, target, known = journey
    moving = np.flatnonzero(current.owners != target.owners)
    steps = walk(strategies.matched(order="hottest"), current, target, known)[0]
    if len(moving):
        hottest = moving[np.argmax(known.rows[moving])]
        assert (hottest, target.owners[hottest]) in steps[0]


def test_matched_moves_the_hottest_bins_first_across_pairs():
    owners, wanted = [0, 0, 0, 0, 3, 3], [1, 1, 1, 2, 1, 2]
    known = Statistics(np.ones(8), np.array([1.0, 2, 3, 9, 8, 1, 0, 0]), [])
    current = Configuration(3, 4, np.array([*owners, 1, 2], np.int32))
    target = Configuration(3, 4, np.array([*wanted, 1, 2], np.int32))
    steps = list(strategies.matched(order="hottest")(current, target, known))
    assert sorted(steps[0]) == [(3, 2), (4, 1)]
    assert [sorted(step) for step in steps[1:]] == [[(2, 1), (5, 2)], [(1, 1)], [(0, 1)]]


@pytest.mark.parametrize("order", [None, lambda pair: 10 * pair[0] - pair[1]])
@given(counts=COUNTS)
def test_matchings_use_up_all_edges_in_as_many_rounds_as_the_largest_degree(counts, order):
    rounds = list(matchings(counts, order))
    used = Counter(pair for pairs in rounds for pair in pairs)
    assert used == Counter(counts)
    degrees = Counter()
    for (sender, receiver), count in counts.items():
        degrees["from", sender] += count
        degrees["to", receiver] += count
    assert len(rounds) == max(degrees.values(), default=0)


def test_large_graphs_are_quick_enough():
    random = np.random.default_rng(1)
    pairs = random.integers(0, 64, (1 << 16, 2))
    counts = Counter(map(tuple, pairs[pairs[:, 0] != pairs[:, 1]].tolist()))
    sent, received = (Counter(), Counter())
    for (sender, receiver), count in counts.items():
        sent[sender] += count
        received[receiver] += count
    assert sum(1 for _ in matchings(counts)) == max([*sent.values(), *received.values()])


@pytest.mark.parametrize(
    ("order", "first"), [("hottest", 3), ("coldest", 1), ("largest", 2), ("as_given", 0)]
)
def test_the_order_is_kept(order, first):
    known = Statistics(np.array([2.0, 1, 9, 3]), np.array([5.0, 1, 2, 8]))
    current, target = Configuration.initial(4, 1), Configuration(2, 2, np.ones(4, np.int32))
    for strategy in (strategies.fluid(order=order), strategies.matched(order=order)):
        assert next(iter(strategy(current, target, known))) == [(first, 1)]


@settings(max_examples=30)
@given(st.floats(0.2, 3.0), st.floats(1e-6, 1e-3), st.integers(0, 10**6))
def test_paced_ends_within_its_latency_once_it_knows_the_price(load, price, seed):
    """A query whose epochs take 100 ms, more or less, and moves that cost something a byte."""
    random = np.random.default_rng(seed)
    current, target = Configuration.initial(256, 1), Configuration(8, 2, np.ones(256, np.int32))
    known = Statistics(np.full(256, 10_000.0), np.zeros(256), [])
    known.recent.extend(EpochCost(i - 32, 100 * random.normal(1, 0.05)) for i in range(32))
    latency = 100 * (1 + load)
    took = []
    for step in strategies.paced(latency=latency / 1e3)(current, target, known):
        size = 10_000 * len(step)
        took.append(100 * random.normal(1, 0.05) + price * size)
        known.recent.append(EpochCost(len(took), took[-1], size, len(step)))
        assert len(took) <= 256 * PATIENCE
    too_long = [one for one in took if one > max(latency, 120 + price * 10_000)]
    assert len(too_long) <= max(4, len(took) // 20)


def test_paced_backs_off_while_epochs_are_too_long_but_never_starves():
    current, target = Configuration.initial(16, 1), Configuration(4, 2, np.ones(16, np.int32))
    known = Statistics(np.full(16, 1000.0), np.zeros(16), [EpochCost(i - 10, 500.0) for i in range(10)])
    sizes = []
    for step in strategies.paced(latency="200 ms")(current, target, known):
        sizes.append(len(step))
        known.recent.append(EpochCost(len(sizes), 500.0, 1000 * len(step), len(step)))
    assert sum(sizes) == 16
    assert set(sizes) == {0, 1}
    # The first at once, then one every eighth epoch.
    assert len(sizes) == 15 * PATIENCE + 1


def paced_sizes(cost, latency, bins=256, recent=()):
    """The steps of ``paced`` where epochs take what ``cost`` says of the bins that move."""
    current = Configuration.initial(bins, 1)
    target = Configuration(current.bits, 2, np.ones(bins, np.int32))
    known = Statistics(np.full(bins, 1000.0), np.zeros(bins), [*recent])
    sizes = []
    for step in strategies.paced(latency=latency / 1e3)(current, target, known):
        sizes.append(len(step))
        last = known.recent[-1].epoch if known.recent else -1
        known.recent.append(EpochCost(last + 1, cost(len(step)), 1000 * len(step), len(step)))
    return sizes


QUIET = [EpochCost(i, 100.0) for i in range(32)]


def test_paced_is_not_kept_small_by_what_every_move_costs():
    # 15 ms for moving at all, and next to nothing for a bin: the price of a byte, taken from one bin, would
    # forbid a third one.
    sizes = paced_sizes(lambda count: 100 + 15 * (count > 0) + 0.01 * count, 200, recent=QUIET)
    assert max(sizes) >= 32
    assert len(sizes) < 40


def test_paced_settles_where_the_room_ends():
    sizes = paced_sizes(lambda count: 100 + 5 * count, 200, bins=1024, recent=QUIET)
    # There is room for 35 % of 100 ms, which are 7 bins.
    assert 5 <= np.median(sizes) <= 8
    assert max(100 + 5 * count for count in sizes) <= 200


def test_paced_knows_what_is_quiet_after_many_steps():
    sizes = paced_sizes(lambda count: 100 + 5 * count, 200, bins=8192, recent=QUIET)
    assert len(sizes) > 512
    assert max(100 + 5 * count for count in sizes) <= 200


def test_a_strategy_made_of_a_built_in_one_is_not_taken_for_it():
    class Mine(strategies.Matched):
        pass

    with pytest.raises(InvalidInput, match="has no name"):
        strategies.to_json(Mine())
    mine = strategies.register("made-of-matched")(Mine())
    assert strategies.to_json(mine) == {"name": "made-of-matched"}
    assert strategies.from_json({"name": "made-of-matched"}) is mine


def test_paced_begins_with_one_bin_whatever_moved_before_it():
    earlier = [*QUIET, EpochCost(32, 120.0, 10**9, 500)]
    assert paced_sizes(lambda count: 100 + 5 * count, 200, recent=earlier)[0] == 1


def test_paced_halves_after_an_epoch_that_took_too_long():
    slow = iter([100.0] * 6 + [500.0])
    sizes = paced_sizes(lambda count: next(slow, 100.0), 200, recent=QUIET)
    grown = sizes[:7]
    assert sizes[7] == 0
    assert sizes[8] == max(1, grown[6] // 2)


def test_paced_forgets_a_burst_of_load_that_is_over():
    """While steps follow each other no quiet epoch tells that the load is what it was."""
    burst = iter([500.0] * 10)
    sizes = paced_sizes(lambda count: next(burst, 100 + 0.5 * count), 200, bins=512, recent=QUIET)
    assert max(sizes) >= 16
    assert len(sizes) < 120


def test_paced_learns_what_is_quiet_from_steps_where_nothing_else_is_known():
    """After a restart all epochs that are remembered may have been steps."""
    steps = [EpochCost(i, 100.0, 1000, 1) for i in range(16)]
    sizes = paced_sizes(lambda count: 100 + 0.5 * count, 200, bins=512, recent=steps)
    assert max(sizes) >= 16
    assert sizes.count(0) == 1  # the one that was left without a step, to know
    assert len(sizes) < 60


def test_paced_keeps_what_it_knows_of_quiet_epochs_where_they_leave_room():
    """Steps that happen to be short do not make it bolder."""
    lucky = [*QUIET, *(EpochCost(32 + i, 60.0, 1000, 1) for i in range(60))]
    sizes = paced_sizes(lambda count: 100 + 5 * count, 200, bins=1024, recent=lucky)
    assert 5 <= np.median(sizes) <= 8


@given(ANY)
def test_a_strategy_survives_being_written_down(strategy):
    again = strategies.from_json(strategies.to_json(strategy))
    assert again == strategy
    assert strategies.describe(strategies.to_json(strategy)).endswith(")")


def test_one_of_your_own():
    @strategies.register("backwards")
    def backwards(current, target, statistics):
        for bin_ in reversed(np.flatnonzero(current.owners != target.owners).tolist()):
            yield [(bin_, int(target.owners[bin_]))]

    assert strategies.to_json(backwards) == {"name": "backwards"}
    assert strategies.from_json({"name": "backwards"}) is backwards


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: strategies.batched(0), "from 1 on"),
        (lambda: strategies.batched(True), "whole number"),
        (lambda: strategies.fluid(order="random"), "as_given, hottest"),
        (lambda: strategies.fluid(gap=-1), "gap"),
        (strategies.paced, "either latency or bytes_per_epoch"),
        (lambda: strategies.paced(latency=1, bytes_per_epoch=1), "either"),
        (lambda: strategies.paced(latency=0), "positive"),
        (lambda: strategies.paced(bytes_per_epoch=-5), "positive"),
        (lambda: strategies.paced(latency="soon"), "not a duration"),
        (lambda: strategies.register("fluid"), "can't be called"),
        (lambda: strategies.to_json(lambda *_: iter([])), "register"),
        (lambda: strategies.from_json({"name": "nobody"}), "there is no strategy 'nobody'"),
        (lambda: strategies.from_json({"name": "matched", "speed": 9}), "does not take"),
    ],
)
def test_what_is_wrong_is_named(wrong, words):
    with pytest.raises(InvalidInput, match=words):
        wrong()
