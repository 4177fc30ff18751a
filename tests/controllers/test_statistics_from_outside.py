"""What another process knows of a query's bins is what the query knows itself."""

from __future__ import annotations

import numpy as np
import pytest

from controllers.streams import hot, rows
from sterna.remote import Remote
from twin.small import counts


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
