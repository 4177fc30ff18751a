"""What bins are likely to get: what chance has added is taken off, what is theirs stays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna.configuration import Configuration
from sterna.controllers.chance import likely
from sterna.keys import Keys

HERE = Configuration.initial(1024, 4)
CHANCE = np.random.default_rng(2)


def key(bin_, rows):
    return Keys(np.array([bin_ << 54], np.uint64), np.array([rows], float), 0.0, 1e4)


def test_of_bins_that_are_alike_none_is_likely_to_get_more():
    drawn = likely(CHANCE.poisson(3.0, 1024) / 3, 3, Keys.none(), HERE)
    assert drawn.std() < 0.1 * drawn.mean()


def test_what_is_more_than_chance_stays():
    true = np.where(np.arange(1024) % 8 == 0, 40.0, 4.0)
    drawn = likely(CHANCE.poisson(true) / 1.0, 1, Keys.none(), HERE)
    assert drawn[::8].mean() == pytest.approx(40, rel=0.1)
    assert np.delete(drawn, np.s_[::8]).mean() == pytest.approx(4, rel=0.2)


def test_a_heavy_key_stays_in_its_bin_and_hides_no_chance_in_the_others():
    rows = CHANCE.poisson(3.0, 1024) / 1.0
    rows[77] += 5000
    drawn = likely(rows, 1, key(77, 5000), HERE)
    assert drawn[77] == pytest.approx(rows[77], rel=0.01)
    assert np.delete(drawn, 77).std() < 0.5


@given(
    st.lists(st.floats(0, 1e6), min_size=16, max_size=16),
    st.lists(st.integers(0, 3), min_size=16, max_size=16),
    st.integers(1, 5),
    st.floats(0, 1e6),
)
def test_workers_get_what_they_got(rows, owners, epochs, heavy):
    here = Configuration(4, 4, np.array(owners, np.int32))
    keys = Keys(np.array([3 << 60], np.uint64), np.array([heavy]), 0.0, 2e6)
    drawn = likely(np.array(rows), epochs, keys, here)
    assert (drawn >= 0).all()
    before, after = (np.bincount(owners, one, 4) for one in (rows, drawn))
    assert after.tolist() == pytest.approx(before.tolist(), rel=1e-6, abs=1e-6)
