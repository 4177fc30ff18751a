"""Hashes that Spark 4.3 computed, written down: state on disk is sorted by them, so they may never change."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from sterna.hashing import hash_keys

NOON = dt.datetime(2024, 2, 29, 12, tzinfo=dt.timezone.utc)

VECTORS = [
    ([pa.array([True])], -6698625589789238999),
    ([pa.array([1], pa.int8())], -6698625589789238999),
    ([pa.array([-1], pa.int16())], 2017008487422258757),
    ([pa.array([1], pa.int32())], -6698625589789238999),
    ([pa.array([-1])], 3858142552250413010),
    ([pa.array([1.5], pa.float32())], 6163473420726370430),
    ([pa.array([-0.0])], -5252525462095825812),
    ([pa.array([float("nan")])], -3127944061524951246),
    ([pa.array([Decimal("12.34")], pa.decimal128(4, 2))], -3802813071951760351),
    ([pa.array([Decimal(-128)], pa.decimal128(38, 0))], -7898411661632158123),
    ([pa.array([""])], -7444071767201028348),
    ([pa.array(["sterna paradisaea"])], 1715265505341904601),
    ([pa.array(["the animal with the longest migration on Earth"])], 3410313283693184271),
    ([pa.array([b"\x00\xff"])], 879945414100663330),
    ([pa.array([NOON.date()])], 4183429117450946631),
    ([pa.array([NOON], pa.timestamp("us", "UTC"))], 2906971207710284459),
    ([pa.array([None], pa.int64())], 42),
    ([pa.array([7]), pa.array(["a"])], 2701516948731497016),
    ([pa.array([None], pa.int32()), pa.array(["a"])], -8582455328737087284),
]


@pytest.mark.parametrize(("columns", "hash_"), VECTORS)
def test_a_hash_stays_what_it_was(columns, hash_):
    assert hash_keys(columns).view("int64").tolist() == [hash_]
