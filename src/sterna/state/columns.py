"""Gathering and comparing columns by row position, without touching the rows in between.

Fixed-width columns go through NumPy views of Arrow's own buffers, all others through Arrow's ``take``.
Equality is that of keys: two nulls are equal, and floats are compared by their bits, so a NaN equals itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

_DTYPES: dict[int, np.dtype[Any]] = {
    1: np.dtype("u1"),
    2: np.dtype("u2"),
    4: np.dtype("u4"),
    8: np.dtype("u8"),
}
_WORDS = {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}


def width(kind: pa.DataType) -> int:
    """Bytes of one value of a type whose values lie side by side, 0 for any other type."""
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind):
        return int(kind.bit_width) // 8
    return 0


def _dtype(kind: pa.DataType) -> np.dtype[Any]:
    size = width(kind)
    return _DTYPES[size] if size in _DTYPES else np.dtype(f"V{size}")


def plain(array: pa.Array) -> npt.NDArray[Any]:
    """The values of a fixed-width column as unsigned words (or opaque bytes), without a copy.

    What stands in place of nulls may be anything.
    """
    dtype = _dtype(array.type)
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.zeros(len(array), dtype)
    return np.frombuffer(buffer, dtype, count=array.offset + len(array))[array.offset :]


def _bits(buffer: pa.Buffer, positions: Ints) -> Mask:
    words: npt.NDArray[np.uint8] = np.frombuffer(buffer, np.uint8)
    taken: npt.NDArray[np.uint8] = words[positions >> 3] >> (positions & 7).astype(np.uint8)
    return np.asarray(taken & 1, np.bool_)


def flags(array: pa.Array, positions: Ints) -> Mask:
    """The values of a boolean column without nulls at some positions."""
    return _bits(array.buffers()[1], positions + array.offset)


def valid(array: pa.Array, positions: Ints) -> Mask | None:
    """Which of the positions hold a value rather than null; None if all do."""
    if array.null_count == 0:
        return None
    if array.buffers()[0] is None:
        return np.zeros(len(positions), np.bool_)
    return _bits(array.buffers()[0], positions + array.offset)


def build(kind: pa.DataType, values: npt.NDArray[Any], mask: Mask | None) -> pa.Array:
    """A column from the words that ``plain`` gives (booleans: from a mask); null where ``mask`` is false."""
    validity, nulls = None, 0
    if mask is not None:
        nulls = int(len(mask) - np.count_nonzero(mask))
        if nulls:
            validity = pa.py_buffer(np.packbits(mask, bitorder="little"))
    data = np.packbits(values, bitorder="little") if pa.types.is_boolean(kind) else values
    return pa.Array.from_buffers(
        kind, len(values), [validity, pa.py_buffer(np.ascontiguousarray(data))], nulls
    )


class Words:
    """A column, and its values as words where they lie side by side: asking Arrow for them takes its time.

    Attributes:
        array: the column.
        values: what ``plain`` gives, for a fixed-width column.
        full: whether no value is null.
        comparable: whether equal words are equal values: small ones, and none of them null.
    """

    __slots__ = ("array", "comparable", "full", "values")

    def __init__(self, array: pa.Array) -> None:
        self.array = array
        size = width(array.type)
        self.values: npt.NDArray[Any] | None = plain(array) if size else None
        self.full: bool = array.null_count == 0
        self.comparable = self.full and size in _DTYPES


def gather(kind: pa.DataType, rows: int, parts: Sequence[tuple[Words, Ints, Ints | slice]]) -> pa.Array:
    """A column of ``rows`` values put together from parts (column, positions in it, places in the result).

    What no part fills is null.
    """
    boolean = pa.types.is_boolean(kind)
    if boolean or width(kind):
        data: npt.NDArray[Any] = np.zeros(rows, np.bool_ if boolean else _dtype(kind))
        mask = np.zeros(rows, np.bool_)
        for column, positions, places in parts:
            data[places] = (
                flags(column.array, positions) if column.values is None else column.values[positions]
            )
            known = None if column.full else valid(column.array, positions)
            mask[places] = True if known is None else known
        return build(kind, data, mask)
    if not parts:
        return pa.nulls(rows, kind)
    order = np.full(rows, -1, np.int64)
    start = 0
    for _, positions, places in parts:
        order[places] = np.arange(start, start + len(positions))
        start += len(positions)
    taken = [column.array.take(pa.array(positions)) for column, positions, _ in parts]
    whole = taken[0] if len(taken) == 1 else pa.concat_arrays(taken)
    if start == rows and bool((order == np.arange(rows)).all()):
        return whole
    return whole.take(pa.array(order, mask=order < 0))


def take(arrays: Sequence[pa.Array], positions: Ints) -> pa.Array:
    """The values at positions of the concatenation of some columns of one type."""
    first = arrays[0]
    if width(first.type) and all(array.null_count == 0 for array in arrays):
        words = [plain(array) for array in arrays]
        whole = words[0] if len(words) == 1 else np.concatenate(words)
        return build(first.type, whole[positions], None)
    joined = first if len(arrays) == 1 else pa.concat_arrays(arrays)
    return joined.take(pa.array(positions))


def comparable(array: pa.Array) -> pa.Array:
    """The column with floats as their bits: Arrow says that NaN differs from itself, keys may not."""
    if pa.types.is_floating(array.type):
        return array.view(_WORDS[array.type.bit_width])
    return array


def equal(left: Sequence[Words], at: Ints, right: Sequence[Words], to: Ints) -> Mask:
    """Whether the keys at positions of the left columns equal those at the right's, one by one."""
    out: Mask | None = None
    for a, b in zip(left, right, strict=True):
        if a.comparable and b.comparable:
            assert a.values is not None
            assert b.values is not None
            same = a.values[at] == b.values[to]
        else:
            x, y = comparable(a.array.take(pa.array(at))), comparable(b.array.take(pa.array(to)))
            equals = pc.fill_null(pc.equal(x, y), False)
            if x.null_count and y.null_count:
                equals = pc.or_(equals, pc.and_(x.is_null(), y.is_null()))
            same = np.asarray(equals.to_numpy(zero_copy_only=False), np.bool_)
        out = same if out is None else out & same
    return np.ones(len(at), np.bool_) if out is None else out


def identify(keys: Sequence[pa.Array]) -> Ints:
    """A number for each row, the same for two rows exactly if their keys are equal."""
    ids: Ints = np.zeros(len(keys[0]) if keys else 0, np.int64)
    for column in keys:
        codes = comparable(column).dictionary_encode(null_encoding="encode").indices
        pairs = np.stack([ids, codes.to_numpy(zero_copy_only=False).astype(np.int64)])
        ids = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return ids
