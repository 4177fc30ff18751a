"""``paced``: it keeps epochs within a latency as far as they would keep it themselves, and always ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sterna import strategies
from sterna.configuration import Configuration
from sterna.pacing import PATIENCE
from sterna.statistics import EpochCost, Statistics

QUIET = [EpochCost(i, 100.0) for i in range(32)]


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


@settings(max_examples=30)
@given(st.floats(0.2, 3.0), st.floats(1e-6, 1e-3), st.integers(0, 10**6))
def test_paced_ends_within_its_latency_once_it_knows_the_price(load, price, seed):
    """A query whose epochs take 100 ms, more or less, and moves that cost something a byte."""
    random = np.random.default_rng(seed)
    current, target = Configuration.initial(256, 1), Configuration(8, 2, np.ones(256, np.int32))
    known = Statistics(np.full(256, 10_000.0), np.zeros(256), [])
    known.recent.extend(EpochCost(i - 32, 100 * random.normal(1, 0.05)) for i in range(32))
    latency = 100 * (1 + load)
    took, moved = [], 0
    for step in strategies.paced(latency=latency / 1e3)(current, target, known):
        size = 10_000 * len(step)
        moved += len(step)
        took.append(100 * random.normal(1, 0.05) + price * size)
        known.recent.append(EpochCost(len(took), took[-1], size, len(step)))
        assert len(took) <= 256 * PATIENCE
    assert moved == 256
    too_long = [one for one in took if one > max(latency, 120 + price * 10_000)]
    assert len(too_long) <= max(4, len(took) // 20)
    assert max(took) <= max(1.5 * latency, 120 + price * 10_000)


def test_paced_backs_off_while_epochs_are_too_long_but_never_starves():
    current, target = Configuration.initial(16, 1), Configuration(4, 2, np.ones(16, np.int32))
    known = Statistics(np.full(16, 1000.0), np.zeros(16), [EpochCost(i - 10, 500.0) for i in range(10)])
    sizes = []
    for step in strategies.paced(latency="200 ms")(current, target, known):
        sizes.append(len(step))
        known.recent.append(EpochCost(len(sizes), 500.0, 1000 * len(step), len(step)))
    assert sum(sizes) == 16
    assert set(sizes) == {0, 1}
    assert sizes == [*[0] * (PATIENCE - 1), 1] * 16


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
    assert 0 in sizes  # left without a step, to know
    assert len(sizes) < 60


def test_paced_keeps_what_it_knows_of_quiet_epochs_where_they_leave_room():
    """Steps that happen to be short do not make it bolder."""
    lucky = [*QUIET, *(EpochCost(32 + i, 60.0, 1000, 1) for i in range(60))]
    sizes = paced_sizes(lambda count: 100 + 5 * count, 200, bins=1024, recent=lucky)
    assert 5 <= np.median(sizes) <= 8


def test_paced_waits_for_an_epoch_that_is_not_longer_than_usual():
    """Within the latency, but long: what waits because of it makes the next one long too."""
    took = iter([100.0, 170.0, 170.0, 100.0])
    sizes = paced_sizes(lambda count: next(took, 100.0), 200, recent=QUIET)
    assert [count > 0 for count in sizes[:5]] == [True, True, False, False, True]


class OpenLoop:
    """A query whose epochs take on half of what the one before took, with noise: its latency is asked for.

    Attributes:
        latency: 1.25 times the 99th percentile of 800 quiet epochs, in milliseconds.
    """

    def __init__(self, seed: int, step: float) -> None:
        self._random, self._step, self._last = np.random.default_rng(seed), step, 220.0
        self.took: list[float] = []
        self.known = Statistics(np.full(1024, 270_000.0), np.zeros(1024), [])
        for _ in range(800):
            self.run([])
        self.latency = 1.25 * float(np.percentile(self.took, 99))
        self.took.clear()

    def run(self, step: list[tuple[int, int]], slower: float = 1.0) -> None:
        """An epoch: a step adds what any step does, and five milliseconds a megabyte."""
        size = 270_000 * len(step)
        took = 110 * slower + self._last / 2 + (self._step + size * 5e-6 if step else 0.0)
        took *= np.exp(self._random.normal(0, 0.11))
        took += self._random.exponential(130) * (self._random.random() < 0.01)
        self._last = float(took)
        self.took.append(self._last)
        last = self.known.recent[-1].epoch if self.known.recent else -1
        self.known.recent.append(EpochCost(last + 1, self._last, size, len(step)))
        del self.known.recent[:-160]

    def move(self, slower: float = 1.0) -> list[int]:
        """How many bins moved in each epoch until all had."""
        current, target = Configuration.initial(1024, 1), Configuration(10, 2, np.ones(1024, np.int32))
        sizes = []
        for step in strategies.paced(latency=self.latency / 1e3)(current, target, self.known):
            self.run(step, slower)
            sizes.append(len(step))
        assert sum(sizes) == 1024
        return sizes

    @property
    def within(self) -> float:
        """The share of the epochs that were within the latency."""
        return float(np.mean(np.array(self.took) <= self.latency))


@pytest.mark.parametrize("step", [5.0, 20.0, 40.0])
def test_paced_keeps_99_of_100_epochs_within_the_latency_under_a_steady_load(step):
    loops = [OpenLoop(seed, step) for seed in range(15)]
    sizes = [loop.move() for loop in loops]
    assert np.median([loop.within for loop in loops]) >= 0.99
    # Steps follow only short epochs, and are as large as there is room for.
    assert np.median([len(one) for one in sizes]) < 768


def test_paced_follows_a_machine_that_has_become_slower():
    """By a tenth: what is quiet is learnt again from the epochs that are left without a step."""
    loops = [OpenLoop(seed, 20.0) for seed in range(15)]
    sizes = [loop.move(slower=1.1) for loop in loops]
    assert np.median([loop.within for loop in loops]) >= 0.985
    assert np.median([len(one) for one in sizes]) < 768
