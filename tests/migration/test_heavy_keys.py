"""The heaviest keys: exact in a receipt, and within the error that is told in the driver."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna.keys import KEPT, NAMED, SHARE, Keys, heaviest, heaviest_of

# Hashes that differ in some bits only fall into one group of a sieve, or of both.
HASH = st.one_of(
    st.integers(0, 40),
    st.integers(0, 40).map(lambda one: one << 14),
    st.integers(0, 40).map(lambda one: one << 40),
    st.integers(0, 2**64 - 1),
)
ROWS = st.lists(st.tuples(HASH, st.integers(1, 200)), min_size=1, max_size=60)


def stream(rows):
    return np.repeat(np.array([key for key, _ in rows], np.uint64), [many for _, many in rows])


def holds(keys, truth):
    """Whether a key has at least what is told and at most that plus the error.

    One that is not named has at most the error.
    """
    told = dict(zip(keys.hashes.tolist(), keys.rows.tolist(), strict=True))
    assert set(told) <= set(truth)
    for key, rows in truth.items():
        assert told.get(key, 0) <= rows + 1e-6
        assert rows <= told.get(key, 0) + keys.error + 1e-6


@given(ROWS)
def test_a_receipt_names_the_heaviest_exactly(rows):
    hashes = stream(rows)
    truth = Counter(hashes.tolist())
    found = heaviest(hashes)
    assert len(found.hashes) <= NAMED
    assert all(
        truth[key] == many for key, many in zip(found.hashes.tolist(), found.rows.tolist(), strict=True)
    )
    holds(found, truth)
    assert found.error <= max(1, len(hashes) / (NAMED + 1))
    assert found.total == len(hashes)
    # Every key with a larger part than this is named, as long as there is room.
    heavy = [key for key, many in truth.items() if many > max(1, len(hashes) / SHARE)]
    assert set(heavy) <= set(found.hashes.tolist()) or len(found.hashes) == NAMED


def test_where_keys_are_alike_none_is_named():
    found = heaviest(np.random.default_rng(0).integers(0, 2**64, 100_000, np.uint64))
    assert found.hashes.tolist() == []
    assert found.error < 100


@given(st.lists(ROWS, min_size=1, max_size=4), st.integers(1, 4))
def test_over_workers_and_epochs_the_error_bounds_what_is_not_known(epochs, workers):
    total, truth, fullest = Keys.none(), Counter(), 0
    for rows in epochs:
        hashes = stream(rows)
        each = [hashes[hashes % np.uint64(workers) == worker] for worker in range(workers)]
        epoch = heaviest_of(heaviest(one).to_json() for one in each if len(one))
        fullest += max(1, max(len(one) for one in each) / (NAMED + 1))
        holds(epoch, Counter(hashes.tolist()))
        total = total.after(epoch)
        truth += Counter(hashes.tolist())
    holds(total, truth)
    assert total.total == sum(truth.values())
    assert len(total.hashes) <= KEPT
    assert total.error <= fullest + total.total / (KEPT + 1) + 1e-6


def test_what_finds_no_room_is_in_the_error():
    keys = Keys.none()
    for first in range(0, 4 * KEPT, NAMED):
        keys = keys.after(heaviest(np.repeat(np.arange(first, first + NAMED, dtype=np.uint64), 10)))
    heavy = np.full(500, 7, np.uint64)
    keys = keys.after(heaviest(heavy))
    assert keys.hashes[np.argmax(keys.rows)] == 7
    assert keys.rows.max() <= 510 <= keys.rows.max() + keys.error
    assert keys.error <= keys.total / (KEPT + 1) + 1e-9


@pytest.mark.parametrize(
    "told", [None, [], "x", [[1], [2], 3], [[1, 2], [3], 0, 5], [["a"], [1], 0, 1], [1, 2, 3, 4]]
)
def test_what_can_not_be_read_is_no_key(told):
    assert Keys.from_json(told).hashes.tolist() == []
    assert heaviest_of([told, [[5], [7.0], 0.0, 9.0]]).rows.tolist() == [7.0]


def test_keys_survive_a_manifest():
    keys = heaviest(np.repeat(np.array([1, 2**64 - 1], np.uint64), [30, 50]))
    back = Keys.from_json(keys.to_json())
    assert (back.hashes == keys.hashes).all()
    assert (back.rows.tolist(), back.error, back.total) == ([30, 50], 0, 80)
