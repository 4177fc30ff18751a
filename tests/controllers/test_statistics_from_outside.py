"""What another process knows of a query's bins is what the query knows itself."""

from __future__ import annotations

import numpy as np
import pytest

from controllers.streams import hot, rows
from sterna.migration import SETTLING
from sterna.remote import Remote
from sterna.strategies import fluid
from sterna.targets import rescale
from twin.small import counts


def test_what_becomes_of_a_wish_is_known_from_outside(start, tmp_path):
    twin = start(counts(), bins=16, workers=2)
    outside = Remote(str(tmp_path / "checkpoint"))
    assert outside.migration("nobody") is None
    twin.epoch(rows(hot(16, 3, 1, 60, 4)))
    name = twin.migrate(rescale(1), fluid())
    assert outside.migration(name) is None
    twin.epoch(rows(hot(16, 3, 1, 60, 4)))
    assert outside.migration(name)["status"] == "running"
    assert outside.migration(name)["bins_left"] == 7
    twin.handle(name).wait()
    assert outside.migration(name)["status"] == "done"
    for _ in range(2 * SETTLING):
        last = twin.epoch(rows(hot(16, 3, 1, 60, 4)))
    assert last.migrations == []
    assert outside.migration(name)["bins"] == 8


def test_loads_costs_and_heavy_keys_are_those_of_the_query(start, tmp_path):
    twin = start(counts(), bins=16, workers=2)
    for _ in range(6):
        last = twin.epoch(rows(hot(16, 3, 1, 60, 4)))
    own = twin.coordinator.statistics("counts")
    told = Remote(str(tmp_path / "checkpoint")).statistics("counts", last)
    assert own.keys.hashes.size > 0
    assert told.keys.hashes.tolist() == own.keys.hashes.tolist()
    assert told.keys.rows.tolist() == pytest.approx(own.keys.rows.tolist())
    # The counts of a manifest are rounded; those of the query are scaled to what its workers got.
    assert np.allclose(told.rows, own.rows, rtol=0.05)
    assert told.bytes.tolist() == own.bytes.tolist()
    assert [one.epoch for one in told.recent] == [one.epoch for one in own.recent]
