"""Strategies: every one leads to the target, in steps as it promises."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna import strategies
from sterna.configuration import Configuration
from sterna.errors import InvalidInput
from sterna.matching import matchings
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


def test_a_strategy_made_of_a_built_in_one_is_not_taken_for_it():
    class Mine(strategies.Matched):
        pass

    with pytest.raises(InvalidInput, match="has no name"):
        strategies.to_json(Mine())
    mine = strategies.register("made-of-matched")(Mine())
    assert strategies.to_json(mine) == {"name": "made-of-matched"}
    assert strategies.from_json({"name": "made-of-matched"}) is mine


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
        (
            lambda: strategies.from_json({"name": "matched", "speed": 9}),
            "does not take speed, but order, gap",
        ),
        (lambda: strategies.from_json({"name": "fluid", "size": 64}), "fluid does not take size"),
        (lambda: strategies.from_json({"name": "all_at_once", "gap": 5}), "all_at_once does not take gap"),
        (lambda: strategies.from_json({"name": "batched"}), "batched needs its size"),
        (lambda: strategies.as_step(7), "yields 7: a step is a list of pairs"),
    ],
)
def test_what_is_wrong_is_named(wrong, words):
    with pytest.raises(InvalidInput, match=words):
        wrong()
