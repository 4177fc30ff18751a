"""A stream whose skew moves every minute, on the twin, with and without the balancer."""

from __future__ import annotations

import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.simulated import balanced
from controllers.streams import hot, load, rows
from sterna.controllers import advice_only, balancer
from sterna.testing import Clock
from twin import small

BINS, WORKERS, SECONDS, MINUTE = 64, 4, 3, 60


def run(path, skews, controllers, *, workers=WORKERS, seconds=SECONDS, chance=None, **options):
    """The loads of the epochs of each minute; and the twin, closed. With ``chance`` rows come one by one."""
    clock = Clock()
    twin = small.start(
        small.counts(),
        path,
        bins=BINS,
        workers=workers,
        clock=clock,
        controllers=controllers,
        work=lambda _, count: count * 1e-3,
        **options,
    )
    seen = []
    for skew in skews:
        seen.append([])
        for _ in range(MINUTE // seconds):
            clock.move(seconds)
            seen[-1].append(load(twin.epoch(rows(skew if chance is None else chance.poisson(skew)))))
    twin.close()
    return seen, twin


SKEWS = [hot(BINS, first, 8) for first in (0, 20, 50, 7, 33)]


def test_with_the_balancer_every_shift_is_levelled_within_ten_epochs(tmp_path):
    seen, twin = run(tmp_path, SKEWS, [balancer()])
    assert max(minute[0] for minute in seen) > 1.5
    assert all(max(minute[10:]) <= 1.3 for minute in seen)
    moved = [e for e in twin.coordinator.history.events() if e["kind"] == "migration"]
    assert 1 <= len({one["name"] for one in moved}) <= len(SKEWS)
    assert all(one["cause"].startswith("controller: balancer: counts: worker") for one in moved)


@pytest.mark.parametrize("controllers", [[], [advice_only(balancer())]], ids=["off", "advice only"])
def test_without_it_none_is(tmp_path, controllers):
    seen, twin = run(tmp_path, SKEWS, controllers)
    assert all(min(minute[10:]) > 1.3 for minute in seen)
    assert {e["outcome"] for e in twin.coordinator.history.said()} == ({"advised"} if controllers else set())
    assert not twin.coordinator.last.migrations


@given(
    st.lists(st.tuples(st.integers(0, 63), st.integers(4, 24), st.integers(3, 8)), min_size=2, max_size=2),
    st.integers(0, 2**16),
)
@settings(max_examples=5)
def test_wherever_the_skew_goes(shifts, seed):
    with tempfile.TemporaryDirectory() as folder:
        skews = [hot(BINS, first, width, factor) for first, width, factor in shifts]
        seen, twin = run(folder, skews, [balancer()], seed=seed)
        assert all(max(minute[10:]) <= 1.3 for minute in seen)
        assert len(twin.coordinator.history.said()) <= 2 * len(shifts)


def shifts(chance, cold):
    """Five skews over 64 bins; of 8 workers each gets 15 times as many rows as a cold bin."""
    return [hot(BINS, first, 14, 5, cold) for first in chance.integers(0, BINS, 5).tolist()]


@pytest.mark.parametrize(
    ("seed", "cold", "seconds"),
    # The first one has two epochs before the third shift that are not level, by chance.
    [(1, 32, 3), (0, 16, 5), (4, 8, 3)],
)
def test_rows_that_come_by_chance(tmp_path, seed, cold, seconds):
    chance = np.random.default_rng(seed)
    skews = shifts(chance, cold)
    seen, twin = run(tmp_path, skews, [balancer()], workers=8, seconds=seconds, chance=chance)
    assert max(minute[0] for minute in seen) > 2
    assert [np.median(minute[10:]) <= 1.3 for minute in seen] == [True] * 5
    said = twin.coordinator.history.said()
    assert len(said) <= 7
    assert {one["outcome"] for one in said} == {"asked"}


def test_hours_of_rows_that_come_by_chance():
    levelled, moves = [], 0
    for seed in range(8):
        for cold, seconds in ((8, 3), (16, 2), (16, 3), (32, 5)):
            chance = np.random.default_rng(seed)
            each = MINUTE // seconds
            stream = (chance.poisson(skew) for skew in shifts(chance, cold) for _ in range(each))
            seen, said = balanced(balancer(), stream, seconds=seconds)
            levelled += [(cold, np.median(minute[10:]) <= 1.3) for minute in seen.reshape(5, each)]
            moves += len(said)
    assert len(levelled) == 160
    assert [one for one in levelled if one[0] > 8 and not one[1]] == []
    assert len([one for one in levelled if not one[1]]) <= 1
    assert moves <= 1.2 * len(levelled)
