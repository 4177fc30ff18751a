"""Equal keys are brought together, others kept apart, and rows of one key stay in order."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna.hashing import hash_keys, stable_order
from sterna.operators.groups import Groups, group_sorted

# A few values of each type, so that they meet again.
KEYS = {
    pa.int64(): [0, 1, -1, None],
    pa.float64(): [0.0, -0.0, math.nan, 1.5, None],
    pa.float32(): [0.0, -0.0, math.nan, 1.5, None],
    pa.string(): ["", "a", "b", None],
    pa.binary(): [b"", b"a", None],
    pa.bool_(): [True, False, None],
    pa.decimal128(38, 2): [Decimal(1), Decimal(-1), None],
    pa.date32(): [dt.date(2024, 1, 1), dt.date(1960, 1, 1), None],
}


def identity(row):
    """What makes a key the same as another."""
    return tuple("nan" if isinstance(v, float) and math.isnan(v) else v for v in row)


@st.composite
def keyed_rows(draw: st.DrawFn):
    types = draw(st.lists(st.sampled_from(list(KEYS)), min_size=1, max_size=3))
    rows = draw(st.lists(st.tuples(*(st.sampled_from(KEYS[t]) for t in types)), max_size=30))
    return rows, [pa.array([row[i] for row in rows], t) for i, t in enumerate(types)]


def check(rows, hashes, order, groups, come):
    """Compare with groups made by a dict; ``come`` is the order in which rows come."""
    wanted: dict[object, list[int]] = {}
    for row in come:
        wanted.setdefault(identity(rows[row]), []).append(row)
    seen = [part.tolist() for part in np.split(order, groups.starts[1:])] if len(groups) else []
    assert sorted(seen) == sorted(wanted.values())
    assert (np.diff(hashes[order].astype(object)) >= 0).all()
    assert groups.rows == len(rows)


@given(keyed_rows())
def test_equal_keys_make_a_group(drawn):
    rows, keys = drawn
    hashes = hash_keys(keys)

    order, groups = group_sorted(hashes, keys, None)

    check(rows, hashes, order, groups, range(len(rows)))


@given(keyed_rows(), st.randoms(use_true_random=False))
def test_rows_of_one_key_keep_the_order_in_which_they_come(drawn, random):
    rows, keys = drawn
    hashes = hash_keys(keys)
    come = list(range(len(rows)))
    random.shuffle(come)

    order, groups = group_sorted(hashes, keys, np.array(come, dtype=np.int64))

    check(rows, hashes, order, groups, come)


@given(keyed_rows(), st.integers(1, 3))
def test_keys_that_share_a_hash_stay_apart(drawn, distinct):
    rows, keys = drawn
    hashes = hash_keys(keys) % np.uint64(distinct)

    order, groups = group_sorted(hashes, keys, None)

    check(rows, hashes, order, groups, range(len(rows)))


@pytest.mark.parametrize("spread", [1, 5, 2**20, 2**64 - 1])
def test_the_quick_sort_is_the_stable_one(spread):
    random = np.random.default_rng(7)
    numbers = random.integers(0, spread, size=10_000, dtype=np.uint64, endpoint=True)

    assert stable_order(numbers).tolist() == np.argsort(numbers, kind="stable").tolist()


def test_groups_know_their_rows():
    groups = Groups(np.array([0, 2, 3]), 6)

    assert len(groups) == 3
    assert groups.counts.tolist() == [2, 1, 3]
    assert groups.ends.tolist() == [1, 2, 5]
    assert groups.ids.tolist() == [0, 0, 1, 2, 2, 2]


def test_no_rows_make_no_groups():
    order, groups = group_sorted(np.array([], dtype=np.uint64), [pa.array([], pa.string())], None)

    assert len(order) == len(groups) == groups.rows == 0
    assert groups.counts.tolist() == groups.ends.tolist() == groups.ids.tolist() == []
