"""A bin is the top bits of a hash; equal floats have equal bits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna.errors import InvalidInput
from sterna.hashing import bins_of, normalise

HASHES = st.lists(st.integers(0, 2**64 - 1))


@given(HASHES, st.integers(0, 20))
def test_a_bin_is_the_top_bits(hashes, bits):
    bins = bins_of(np.array(hashes, dtype=np.uint64), bits)

    assert bins.dtype == np.int64
    assert bins.tolist() == [h >> (64 - bits) for h in hashes]


@pytest.mark.parametrize("bits", [-1, 21])
def test_too_many_or_too_few_bits_are_refused(bits):
    with pytest.raises(InvalidInput, match=str(bits)):
        bins_of(np.zeros(1, dtype=np.uint64), bits)


@pytest.mark.parametrize(("type_", "bits"), [(pa.float32(), "uint32"), (pa.float64(), "uint64")], ids=str)
def test_zeros_and_nans_are_made_one(type_, bits):
    dtype = type_.to_pandas_dtype()
    odd_nan = np.array([-1], dtype=f"i{np.dtype(dtype).itemsize}").view(dtype)
    values = np.concatenate([np.array([0.0, -0.0, np.nan, 1.5, -np.inf], dtype=dtype), odd_nan])
    column = pa.array(values, mask=values == 1.5)

    normal = normalise(pa.chunked_array([column[:2], column[2:]]))

    seen = np.frombuffer(normal.buffers()[1], dtype=bits)
    nan = np.array([np.nan], dtype=dtype).view(bits)[0]
    assert seen[[0, 1]].tolist() == [0, 0]
    assert seen[[2, 5]].tolist() == [nan, nan]
    assert normal.type == type_
    assert normal.null_count == 1
    assert normal[4].as_py() == -np.inf


@pytest.mark.parametrize(
    "column", [pa.array(["a", None]), pa.array([1, 2]), pa.array([[1.0, -0.0]])], ids=str
)
def test_other_types_stay_as_they_are(column):
    assert normalise(column).equals(column)
