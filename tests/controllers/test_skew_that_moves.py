"""A stream whose skew moves every minute, on the twin, with and without the balancer."""

from __future__ import annotations

import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.streams import hot, load, rows
from sterna.controllers import advice_only, balancer
from sterna.testing import Clock
from twin import small

BINS, WORKERS, SECONDS, MINUTE = 64, 4, 3, 60
EPOCHS = MINUTE // SECONDS


def run(path, skews, controllers, **options):
    """The loads of the epochs of each minute; and the twin, closed."""
    clock = Clock()
    twin = small.start(
        small.counts(),
        path,
        bins=BINS,
        workers=WORKERS,
        clock=clock,
        controllers=controllers,
        work=lambda _, count: count * 1e-3,
        **options,
    )
    seen = []
    for skew in skews:
        seen.append([])
        for _ in range(EPOCHS):
            clock.move(SECONDS)
            seen[-1].append(load(twin.epoch(rows(skew))))
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
