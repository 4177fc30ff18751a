"""The heaviest keys, within the error that the sketch states."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna.errors import InvalidInput
from sterna.planning import Sketch

streams = st.lists(st.lists(st.integers(0, 12), max_size=30), min_size=1, max_size=5)


def hashes(keys):
    return np.array(keys, np.uint64)


def check(sketch, keys, capacity):
    true = Counter(keys)
    found = dict(zip(sketch.hashes.tolist(), sketch.counts.tolist(), strict=True))
    assert len(found) <= capacity
    assert sketch.total == len(keys)
    assert sketch.error <= len(keys) / (capacity + 1)
    for key in range(13):
        assert found.get(key, 0) <= true[key] <= found.get(key, 0) + sketch.error


@given(streams, st.integers(1, 6))
def test_a_key_weighs_what_the_sketch_says_within_its_error(parts, capacity):
    sketch = Sketch.empty(capacity)
    for part in parts:
        sketch = sketch.seen(hashes(part))
    check(sketch, [key for part in parts for key in part], capacity)


@given(streams, st.integers(1, 6))
def test_sketches_of_parts_can_be_merged(parts, capacity):
    merged = Sketch.empty(capacity)
    for part in parts:
        merged = Sketch.empty(capacity + 2).seen(hashes(part)).merged(merged)
    check(merged, [key for part in parts for key in part], capacity)


@given(st.lists(st.integers(0, 12), max_size=60))
def test_what_fits_is_counted_exactly(keys):
    sketch = Sketch.empty(13).seen(hashes(keys))
    assert dict(zip(sketch.hashes.tolist(), sketch.counts.tolist(), strict=True)) == Counter(keys)
    assert sketch.error == 0


def test_rows_may_weigh_more_than_others():
    sketch = Sketch.empty(4).seen(hashes([1, 2, 1]), weights=[0.5, 3, 0.25])
    assert sketch.counts.tolist() == [0.75, 3]
    assert sketch.total == 3.75


@pytest.mark.parametrize(
    "column",
    [
        np.array([-1, 5], np.int64),
        pa.array([-1, 5], pa.int64()),
        pa.chunked_array([[2**64 - 1], [5]], pa.uint64()),
        pa.array([0, 2**64 - 1, 5], pa.uint64())[1:],
        pa.table({"n": [0, 0], "_hash": pa.array([2**64 - 1, 5], pa.uint64())}),
        pa.record_batch({"_hash": pa.array([-1, 5], pa.int64())}),
    ],
    ids=lambda column: type(column).__name__,
)
def test_hashes_come_as_arrays_or_tables_signed_or_not(column):
    assert Sketch.empty(4).seen(column).hashes.tolist() == [5, 2**64 - 1]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (np.array([0.5]), "64-bit whole numbers"),
        (np.array([[1]]), "64-bit whole numbers"),
        ([1, 2], "64-bit whole numbers"),
        (pa.array([1, None]), "none of them missing"),
        (pa.array(["a"]), "this is string"),
        (pa.table({"n": [1]}), "the table has no column _hash: n"),
    ],
)
def test_what_is_no_hash_is_refused(column, message):
    with pytest.raises(InvalidInput, match=message):
        Sketch.empty(4).seen(column)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "there are 2 rows and 1 weights"),
        ([1.0, -1.0], "the weight of row 1 is -1.0"),
        ([np.nan, 1.0], "the weight of row 0 is nan"),
    ],
)
def test_wrong_weights_are_named(weights, message):
    with pytest.raises(InvalidInput, match=message):
        Sketch.empty(4).seen(hashes([1, 2]), weights)


def test_a_sketch_remembers_at_least_one_key():
    with pytest.raises(InvalidInput, match="the capacity of a sketch"):
        Sketch.empty(0)
