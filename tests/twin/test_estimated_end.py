"""When a migration may end: by the epochs in which it ran, and no others."""

from __future__ import annotations

import pytest

from sterna import strategies
from sterna.pacing import PATIENCE
from sterna.targets import rescale
from sterna.testing import Clock
from twin.migrating import ROWS
from twin.small import counts

SECONDS = 10.0


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def twin(start, clock):
    return start(counts(), bins=16, workers=2, clock=clock)


@pytest.fixture
def epochs(twin, clock):
    """Runs epochs, one every ten seconds."""

    def run(count, of=None):
        for _ in range(count):
            clock.move(SECONDS)
            (of or twin).epoch(ROWS)

    return run


def left(handle, clock):
    """Seconds until the estimated end."""
    return pytest.approx(handle.progress()["estimated_end"] - clock(), abs=0.01)


def begun(twin, epochs, strategy):
    """A migration of eight bins, after some epochs without it and two steps."""
    epochs(3)
    handle = twin.handle(twin.migrate(rescale(1), strategy))
    epochs(2)
    return handle


def test_it_takes_as_many_epochs_as_there_are_steps(twin, epochs, clock):
    handle = begun(twin, epochs, strategies.fluid())
    assert left(handle, clock) == 6 * SECONDS
    epochs(3)
    assert left(handle, clock) == 3 * SECONDS


def test_epochs_between_steps_count(twin, epochs, clock):
    handle = begun(twin, epochs, strategies.batched(2, gap=2))
    # Steps come in the second, fifth and eighth epoch from here.
    assert left(handle, clock) == 8 * SECONDS
    epochs(8)
    assert handle.status == "done"


def test_a_pause_does_not_count(twin, epochs, clock):
    handle = begun(twin, epochs, strategies.fluid())
    handle.pause()
    epochs(1)
    assert handle.progress()["estimated_end"] is None
    clock.move(100_000)
    handle.resume()
    epochs(3)
    assert left(handle, clock) == 3 * SECONDS


def test_the_time_before_a_rollback_does_not_count(twin, epochs, clock):
    handle = begun(twin, epochs, strategies.fluid())
    epochs(6)
    assert handle.status == "done"
    clock.move(100_000)
    handle.rollback()
    epochs(3)
    assert handle.progress()["bins_left"] == 5
    assert left(handle, clock) == 5 * SECONDS


def test_downtime_does_not_count(start, twin, epochs, clock):
    handle = begun(twin, epochs, strategies.fluid())
    twin.close()
    clock.move(100_000)
    again = start(counts(), bins=16, workers=2, clock=clock)
    epochs(2, again)
    assert left(again.handle(handle.name), clock) == 4 * SECONDS


def test_epochs_that_a_strategy_leaves_out_count(twin, epochs, clock):
    """Epochs are always too long for ``paced``, which then moves a bin in every eighth."""
    epochs(3)
    handle = twin.handle(twin.migrate(rescale(1), strategies.paced(latency=1e-6)))
    epochs(3 * PATIENCE)
    assert handle.progress()["bins_left"] == 5
    told = handle.progress()["estimated_end"] - clock()
    epochs(5 * PATIENCE)
    assert handle.status == "done"
    assert told == pytest.approx(5 * PATIENCE * SECONDS, rel=0.3)
