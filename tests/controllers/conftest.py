"""Twins that are closed when the test ends."""

from __future__ import annotations

import pytest

from twin import small


@pytest.fixture
def start(tmp_path):
    """Starts a twin on this test's checkpoint; see ``small.start``."""
    twins = []

    def begin(flow, **options):
        twins.append(small.start(flow, options.pop("path", tmp_path / "checkpoint"), **options))
        return twins[-1]

    yield begin
    for twin in twins:
        twin.close()
