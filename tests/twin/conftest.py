"""Twins that are closed when the test ends."""

from __future__ import annotations

import time

import pytest

from twin import small
from twin.migrating import ROWS


@pytest.fixture
def start(tmp_path):
    """Starts a twin on this test's checkpoint; see ``small.start``."""
    twins = []

    def begin(flow, **options):
        twins.append(small.start(flow, tmp_path / "checkpoint", **options))
        return twins[-1]

    yield begin
    for twin in twins:
        twin.close()


@pytest.fixture
def twin(start):
    """Counts after one epoch, in 16 bins at two workers."""
    twin = start(small.counts(), bins=16, workers=2, clock=time.time)
    twin.epoch(ROWS)
    return twin
