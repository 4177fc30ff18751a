"""Where the bins of workers go whose executor is to go."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sterna.configuration import Configuration
from sterna.engine.draining import emptied
from sterna.statistics import Statistics


@given(
    st.lists(st.integers(0, 4), min_size=32, max_size=32),
    st.lists(st.floats(0, 100), min_size=32, max_size=32),
    st.sets(st.integers(0, 4)),
)
def test_all_bins_of_those_that_go_and_no_others_move_to_those_that_stay(owners, load, leaving):
    here = Configuration(5, 5, np.array(owners, np.int32))
    moved = emptied(here, leaving, Statistics(np.zeros(32), np.array(load)))
    if len(leaving) == 5:
        assert moved == {}
        return
    assert set(moved) == {bin_ for bin_, owner in enumerate(owners) if owner in leaving}
    assert not set(moved.values()) & leaving


def test_the_others_get_about_as_much_work_each():
    here = Configuration.initial(64, 4)
    load = np.arange(64) % 7 + 1.0
    moved = emptied(here, [2], Statistics(np.zeros(64), load))
    owners = [moved.get(bin_, owner) for bin_, owner in enumerate(here.owners.tolist())]
    totals = np.bincount(owners, load)
    assert totals[2] == 0
    assert max(totals[[0, 1, 3]]) - min(totals[[0, 1, 3]]) <= 7
