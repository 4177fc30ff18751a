"""The hash of a key: Spark's ``xxhash64``, bit for bit, without Spark.

Goes in: the key columns as Arrow arrays of atomic types. Comes out: one unsigned 64-bit number a row, equal
to ``xxhash64(col1, col2, ...)`` of Spark (seed 42) read as unsigned. So a row lands in the same bin whether
Spark computed its hash or Sterna did. A type that has no place in a key raises ``InvalidInput``, which names
it; nothing else fails.

Spark chains the columns: the hash of one is the seed of the next, and a null leaves the seed as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from sterna.errors import InvalidInput

Hashes = npt.NDArray[np.uint64]

SEED = 42
MAX_BITS = 20
COUNTED_SORT = 4096  # fewer numbers are sorted as they are: counting has a fixed price
"""At most 2**20 bins."""

_PRIME_1 = np.uint64(0x9E3779B185EBCA87)
_PRIME_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_PRIME_3 = np.uint64(0x165667B19E3779F9)
_PRIME_4 = np.uint64(0x85EBCA77C2B2AE63)
_PRIME_5 = 0x27D4EB2F165667C5

LONG_DIGITS = 18
"""A decimal of up to this precision is hashed as the long of its digits, as Spark stores it."""

_LONG_BYTES = 8
_DECIMAL_BYTES = 16

_SAMPLE = 1_000
"""So many values, or an eighth if that is more, tell whether a column of strings repeats itself."""


def hash_keys(columns: Sequence[pa.Array | pa.ChunkedArray]) -> Hashes:
    """Hash each row of the key columns as Spark's ``xxhash64`` does.

    Args:
        columns: One array for each key column, all of one length, in the order of the key.

    Returns:
        The hashes, read as unsigned.

    Raises:
        InvalidInput: There is no column, the lengths differ, or a column's type can't be part of a key.

    Example:
        >>> hash_keys([pa.array([1, None]), pa.array(["a", None])]).view("int64").tolist()
        [-8527884376001292090, 42]
    """
    if not columns:
        raise InvalidInput("a key needs at least one column")
    lengths = {len(column) for column in columns}
    if len(lengths) != 1:
        raise InvalidInput(f"key columns differ in length: {sorted(lengths)}")
    hashes: Hashes = np.full(lengths.pop(), SEED, dtype=np.uint64)
    seed: int | None = SEED  # the one seed of all rows, while there is one
    for column in columns:
        array = one_array(column)
        hashed = _hash_column(array, hashes, seed)
        valid = validity(array)
        hashes = hashed if valid is None else np.where(valid, hashed, hashes)
        seed = None
    return hashes


def normalise(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Make equal floats equal in their bits: -0.0 becomes 0.0, and every NaN the canonical one.

    Columns of other types come back unchanged, except that chunks are joined.
    """
    array = one_array(column)
    if not (pa.types.is_float32(array.type) or pa.types.is_float64(array.type)):
        return array
    floats = values_of(array, array.type.to_pandas_dtype())
    normal = floats + floats.dtype.type(0)  # -0.0 + 0.0 is 0.0
    normal[np.isnan(normal)] = np.nan
    return from_values(normal, array.type, validity(array))


def bins_of(hashes: Hashes, bits: int) -> npt.NDArray[np.int64]:
    """The bin of each hash: its top bits, of which there are 0 to 20.

    Raises:
        InvalidInput: ``bits`` is out of range.
    """
    if not 0 <= bits <= MAX_BITS:
        raise InvalidInput(f"a bin has 0 to {MAX_BITS} bits, not {bits}")
    if bits == 0:  # a shift by all 64 bits is undefined
        return np.zeros(len(hashes), dtype=np.int64)
    bins: npt.NDArray[np.int64] = (hashes >> np.uint64(64 - bits)).view(np.int64)
    return bins


def stable_order(numbers: Hashes) -> npt.NDArray[np.int64]:
    """The same as ``np.argsort(numbers, kind="stable")``, but quicker.

    It is three times quicker for numbers that spread over all 64 bits. NumPy sorts 16-bit numbers by
    counting: two such sorts settle the upper half of the bits. The few numbers that differ in the lower half
    alone are put right by a sort of what is nearly in order.
    """
    if len(numbers) < COUNTED_SORT:
        return np.argsort(numbers, kind="stable")
    order = np.argsort((numbers >> np.uint64(32)).astype(np.uint16), kind="stable")
    order = order[np.argsort((numbers >> np.uint64(48)).astype(np.uint16)[order], kind="stable")]
    ordered = numbers[order]
    if (ordered[1:] < ordered[:-1]).any():
        order = order[np.argsort(ordered, kind="stable")]
    return order


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as one array; copies only if it has several chunks."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def validity(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Which values are not null, or None if all are."""
    if array.null_count == 0:
        return None
    valid: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def values_of(array: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The values of a fixed-width array as they lie in memory, not copied; those of nulls are arbitrary.

    A value wider than ``dtype`` spans several elements.
    """
    dtype = np.dtype(dtype)
    buffer = array.buffers()[1]
    width = array.type.bit_width // (8 * dtype.itemsize)
    if buffer is None or len(array) == 0:
        return np.zeros(len(array) * width, dtype=dtype)
    offset = array.offset * array.type.bit_width // 8
    return np.frombuffer(buffer, dtype=dtype, count=len(array) * width, offset=offset)


def from_values(
    values: npt.NDArray[Any], type_: pa.DataType, valid: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    """The inverse of ``values_of`` and ``validity``: an array around the values, which are not copied."""
    width = type_.bit_width // (8 * values.itemsize)
    bitmap = None if valid is None else pa.array(valid).buffers()[1]
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(type_, len(values) // width, [bitmap, data])


def few_distinct(array: pa.Array) -> bool:
    """Guess from a sample whether most values repeat, so that it pays to encode them first."""
    sample = array[: max(_SAMPLE, len(array) // 8)]
    return len(array) > _SAMPLE and 2 * int(pc.count_distinct(sample, mode="all").as_py()) <= len(sample)


def _hash_column(array: pa.Array, seeds: Hashes, seed: int | None) -> Hashes:
    """Hash one column; ``seed`` is the seed of all rows, if they share one."""
    type_ = array.type
    if pa.types.is_decimal128(type_):
        if type_.precision <= LONG_DIGITS:
            return _hash_long(values_of(array, np.int64)[::2], seeds)
        return _hash_bytes(_big_integers(array), seeds, seed)
    if _is_bytes(type_):
        return _hash_bytes(array, seeds, seed)
    if pa.types.is_boolean(type_):
        array = array.cast(pa.int8())
    elif not _is_number(type_):
        raise InvalidInput(
            f"a column of type {type_} can't be part of a key: use a boolean, signed integer, float, double, "
            "decimal, string, binary, date or timestamp (in microseconds)"
        )
    numbers = values_of(normalise(array), f"i{array.type.bit_width // 8}")
    return _hash_long(numbers, seeds) if numbers.itemsize == _LONG_BYTES else _hash_int(numbers, seeds)


def _is_number(type_: pa.DataType) -> bool:
    is_ = pa.types
    return bool(
        is_.is_signed_integer(type_)
        or is_.is_float32(type_)
        or is_.is_float64(type_)
        or is_.is_date32(type_)
        or (is_.is_timestamp(type_) and type_.unit == "us")
    )


def _is_bytes(type_: pa.DataType) -> bool:
    is_ = pa.types
    return bool(
        is_.is_string(type_)
        or is_.is_large_string(type_)
        or is_.is_binary(type_)
        or is_.is_large_binary(type_)
    )


def _hash_int(values: npt.NDArray[Any], seeds: Hashes) -> Hashes:
    # Sign-extended to an int, of which the 32 bits count as unsigned.
    words = values.astype(np.int32).view(np.uint32).astype(np.uint64)
    words *= _PRIME_1
    words ^= seeds + np.uint64(_PRIME_5 + 4)
    return _finish(_rotate(words, 23) * _PRIME_2 + _PRIME_3)


def _hash_long(values: npt.NDArray[Any], seeds: Hashes) -> Hashes:
    words = _rotate(values.view(np.uint64) * _PRIME_2, 31)
    words *= _PRIME_1
    words ^= seeds + np.uint64(_PRIME_5 + 8)
    return _finish(_rotate(words, 27) * _PRIME_1 + _PRIME_4)


def _rotate(words: Hashes, bits: int) -> Hashes:
    rotated: Hashes = (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))
    return rotated


def _finish(words: Hashes) -> Hashes:
    words ^= words >> np.uint64(33)
    words *= _PRIME_2
    words ^= words >> np.uint64(29)
    words *= _PRIME_3
    words ^= words >> np.uint64(32)
    return words


def _hash_bytes(array: pa.Array, seeds: Hashes, seed: int | None) -> Hashes:
    """Hash byte strings one by one: their lengths differ, and the C call for each is quick."""
    if seed is None:
        return np.fromiter(map(xxhash.xxh64_intdigest, _bytes(array), seeds.tolist()), np.uint64, len(array))
    if few_distinct(array):
        encoded = array.dictionary_encode(null_encoding="encode")
        hashes: Hashes = _hash_each(encoded.dictionary, seed)[encoded.indices.to_numpy(zero_copy_only=False)]
        return hashes
    return _hash_each(array, seed)


def _hash_each(array: pa.Array, seed: int) -> Hashes:
    return np.fromiter(map(xxhash.xxh64_intdigest, _bytes(array), repeat(seed)), np.uint64, len(array))


def _bytes(array: pa.Array) -> list[bytes]:
    """The values as bytes; a null as no bytes."""
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    binary = array.cast(pa.large_binary() if large else pa.binary())
    values: list[bytes] = (binary.fill_null(b"") if binary.null_count else binary).to_pylist()
    return values


def _big_integers(array: pa.Array) -> pa.Array:
    """The unscaled values as Java's BigInteger writes them: big-endian, in as few bytes as hold the sign."""
    words = np.ascontiguousarray(values_of(array, np.int8).reshape(-1, _DECIMAL_BYTES)[:, ::-1])
    # A leading byte is superfluous if all its bits, and the next byte's top bit, repeat the sign.
    sign = words[:, :1] >> 7
    superfluous = (words[:, :-1] == sign) & (words[:, 1:] >> 7 == sign)
    skip = np.logical_and.accumulate(superfluous, axis=1).sum(axis=1)
    kept = np.arange(_DECIMAL_BYTES) >= skip[:, None]
    offsets = np.zeros(len(words) + 1, dtype=np.int64)
    np.cumsum(_DECIMAL_BYTES - skip, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(words[kept])]
    return pa.Array.from_buffers(pa.large_binary(), len(words), buffers)
