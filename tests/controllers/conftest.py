"""Twins that are closed when the test ends, as for the tests of the twin itself.

Also what becomes of controllers in some epochs.
"""

from __future__ import annotations

import pytest

from controllers.streams import EVEN
from sterna.testing import Clock
from twin.conftest import start
from twin.small import counts

__all__ = ["start"]


@pytest.fixture
def asked(start):
    """Runs some epochs with a controller; the twin, and what its history says of the controller."""

    def run(*controllers, epochs=4, **options):
        clock = Clock()
        twin = start(counts(), bins=16, workers=2, clock=clock, controllers=controllers, **options)
        for _ in range(epochs):
            clock.move(1)
            twin.epoch(EVEN)
        return twin, twin.coordinator.history.said()

    return run
