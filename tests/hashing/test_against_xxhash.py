"""The hash of a row is the chained xxh64 of the bytes that Spark would hash."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal

import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from sterna.errors import InvalidInput
from sterna.hashing import hash_keys

EPOCH = dt.date(1970, 1, 1)


def big_integer(number: int) -> bytes:
    """What Java's ``BigInteger.toByteArray`` returns."""
    bits = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def float_bytes(form: str, value: float) -> bytes:
    return struct.pack(form, math.nan if math.isnan(value) else value + 0.0)


def signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


# For each type: values, and the bytes that are hashed for one.
TYPES = {
    pa.bool_(): (st.booleans(), lambda v: struct.pack("<i", v)),
    pa.int8(): (signed(8), lambda v: struct.pack("<i", v)),
    pa.int16(): (signed(16), lambda v: struct.pack("<i", v)),
    pa.int32(): (signed(32), lambda v: struct.pack("<i", v)),
    pa.int64(): (signed(64), lambda v: struct.pack("<q", v)),
    pa.float32(): (st.floats(width=32), lambda v: float_bytes("<f", v)),
    pa.float64(): (st.floats(), lambda v: float_bytes("<d", v)),
    pa.decimal128(18, 0): (
        st.integers(1 - 10**18, 10**18 - 1).map(Decimal),
        lambda v: struct.pack("<q", int(v)),
    ),
    pa.decimal128(38, 0): (st.integers(1 - 10**38, 10**38 - 1), lambda v: big_integer(int(v))),
    pa.string(): (st.text(), str.encode),
    pa.large_string(): (st.text(), str.encode),
    pa.binary(): (st.binary(max_size=100), bytes),
    pa.large_binary(): (st.binary(max_size=100), bytes),
    pa.date32(): (st.dates(), lambda v: struct.pack("<i", (v - EPOCH).days)),
    pa.timestamp("us"): (signed(64), lambda v: struct.pack("<q", v)),
    pa.timestamp("us", "Europe/Berlin"): (signed(64), lambda v: struct.pack("<q", v)),
}


def expected(rows: list[tuple[object, ...]], types: list[pa.DataType]) -> list[int]:
    hashes = []
    for row in rows:
        seed = 42
        for value, type_ in zip(row, types, strict=True):
            if value is not None:
                seed = xxhash.xxh64_intdigest(TYPES[type_][1](value), seed)
        hashes.append(seed)
    return hashes


def column(values: list[object], type_: pa.DataType) -> pa.Array:
    # Decimals of 38 digits don't survive Python's arithmetic context, so they are drawn as integers.
    if pa.types.is_decimal(type_):
        values = [None if v is None else Decimal(v) for v in values]
    return pa.array(values, type_)


@st.composite
def keys(draw: st.DrawFn) -> tuple[list[tuple[object, ...]], list[pa.DataType]]:
    types = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=3))
    row = st.tuples(*(st.none() | TYPES[type_][0] for type_ in types))
    return draw(st.lists(row, max_size=20)), types


@given(keys())
def test_a_row_hashes_as_its_bytes_do_column_after_column(drawn):
    rows, types = drawn
    columns = [column([row[i] for row in rows], type_) for i, type_ in enumerate(types)]

    assert hash_keys(columns).tolist() == expected(rows, types)


@given(keys(), st.integers(0, 5), st.integers(0, 5))
def test_slices_and_chunks_hash_as_the_whole_does(drawn, offset, length):
    rows, types = drawn
    columns = [column([row[i] for row in rows], type_) for i, type_ in enumerate(types)]
    whole = hash_keys(columns)

    sliced = hash_keys([c.slice(offset, length) for c in columns])
    chunked = hash_keys([pa.chunked_array([c[:offset], c[offset:]], c.type) for c in columns])

    assert sliced.tolist() == whole[offset : offset + length].tolist()
    assert chunked.tolist() == whole.tolist()


@pytest.mark.parametrize("type_", [pa.string(), pa.binary(), pa.decimal128(38, 2)], ids=str)
def test_repeated_values_hash_as_distinct_ones_do(type_):
    few = pa.array([None, "1.00", "", "-22.50"] if pa.types.is_string(type_) else [None, b"1", b"", b"22"])
    if pa.types.is_decimal(type_):
        few = pa.array([None, Decimal("1.00"), Decimal(0), Decimal("-22.50")], type_)
    few = few.cast(type_)

    many = hash_keys([pa.concat_arrays([few] * 1000)])

    assert many.tolist() == hash_keys([few]).tolist() * 1000


def test_decimals_of_the_most_digits_hash_the_fewest_bytes():
    edges = [n for b in (7, 8, 15, 16, 63, 64, 119, 120) for n in (2**b - 1, 2**b, -(2**b), -(2**b) - 1)]

    hashes = hash_keys([pa.array([Decimal(n) for n in edges], pa.decimal128(38, 0))])

    assert hashes.tolist() == [xxhash.xxh64_intdigest(big_integer(n), 42) for n in edges]


@pytest.mark.parametrize(
    "type_",
    [
        pa.uint32(),
        pa.float16(),
        pa.timestamp("ms"),
        pa.list_(pa.int64()),
        pa.struct([("a", pa.int64())]),
        pa.null(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.decimal256(40, 0),
    ],
    ids=str,
)
def test_a_type_that_is_no_key_is_refused_by_name_even_without_rows(type_):
    with pytest.raises(InvalidInput) as refused:
        hash_keys([pa.array([1]), pa.array([None], type_)])
    assert str(type_) in str(refused.value)
    with pytest.raises(InvalidInput):
        hash_keys([pa.array([], type_)])


def test_no_column_and_columns_of_different_lengths_are_refused():
    with pytest.raises(InvalidInput, match="at least one column"):
        hash_keys([])
    with pytest.raises(InvalidInput, match=r"\[1, 2\]"):
        hash_keys([pa.array([1]), pa.array([1, 2])])
