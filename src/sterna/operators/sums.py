"""Sums of groups, exact or refused.

Goes in: integers, decimals or floats, sorted into groups. Comes out: one sum a group, null where a group
has no value. Integers and decimals are summed exactly, in whatever order; where a sum leaves its type,
``InvalidInput`` names the column. Floats are summed as doubles, in the order of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sterna.errors import InvalidInput
from sterna.hashing import LONG_DIGITS, from_values, validity, values_of
from sterna.operators.groups import Groups, Index
from sterna.operators.ordering import Valid, decimals, known_type

MAX_DIGITS = 38
_SUM_DIGITS = 10
_LONG_LIMIT = 2**63
_HALF = 32
_LOW = (1 << _HALF) - 1


def sum_type(type_: pa.DataType | None, function: str, column: str | None) -> pa.DataType:
    """The type of a sum, as in Spark: long, double, or a decimal of ten more digits.

    Raises:
        InvalidInput: Values of that type can't be added.
    """
    type_ = known_type(type_, function, column)
    if pa.types.is_signed_integer(type_):
        return pa.int64()
    if pa.types.is_float32(type_) or pa.types.is_float64(type_):
        return pa.float64()
    if pa.types.is_decimal128(type_):
        return pa.decimal128(min(type_.precision + _SUM_DIGITS, MAX_DIGITS), type_.scale)
    raise InvalidInput(f"{function}({column}): values of type {type_} can't be added")


def sums(groups: Groups, values: pa.Array, type_: pa.DataType, column: str | None) -> pa.Array:
    """Add up the values of each group.

    Args:
        groups: The groups.
        values: The values, one for each row.
        type_: The type of the sums, from ``sum_type``.
        column: The name of the column, for the error.

    Raises:
        InvalidInput: A sum of integers or decimals doesn't fit its type.
    """
    valid = validity(values)
    some = None if valid is None else non_null(groups, valid) > 0
    if len(groups) == 0:
        return pa.array([], type_)
    if pa.types.is_decimal(type_):
        return _decimal_sums(groups, values, valid, some, type_, column)
    numbers = _zero_nulls(values_of(values, values.type.to_pandas_dtype()), valid)
    if pa.types.is_floating(type_):
        return from_values(_float_sums(groups, numbers), type_, some)
    return from_values(_integer_sums(groups, numbers, type_, column), type_, some)


def add(old: pa.Array, new: pa.Array, column: str | None) -> pa.Array:
    """Add two sums a row; null only where both are."""
    type_ = new.type
    if pa.types.is_decimal(type_):
        rows = len(new)
        pairs = pa.concat_arrays([old, new]).take(
            pa.array(np.arange(2 * rows).reshape(2, rows).T.reshape(-1))
        )
        return sums(Groups(np.arange(0, 2 * rows, 2), 2 * rows), pairs, type_, column)
    valid, other = validity(old), validity(new)
    a, b = (_zero_nulls(values_of(x, type_.to_pandas_dtype()), v) for x, v in ((old, valid), (new, other)))
    with np.errstate(invalid="ignore", over="ignore"):
        added = a + b
    # The sum of two integers overflowed if its sign differs from both of theirs.
    if pa.types.is_integer(type_) and (((a ^ added) & (b ^ added)) < 0).any():
        raise _overflow(column, type_)
    return from_values(added, type_, None if valid is None or other is None else valid | other)


def non_null(groups: Groups, valid: npt.NDArray[np.bool_]) -> Index:
    """How many values of each group are not null."""
    if len(groups) == 0:
        return np.empty(0, dtype=np.int64)
    return np.add.reduceat(valid, groups.starts, dtype=np.int64)


def _zero_nulls(numbers: npt.NDArray[Any], valid: Valid) -> npt.NDArray[Any]:
    return numbers if valid is None else np.where(valid, numbers, numbers.dtype.type(0))


def _float_sums(groups: Groups, numbers: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    # Converted first: NumPy would convert and sum block by block, and a sum depend on where its group lies.
    numbers = numbers.astype(np.float64, copy=False)
    with np.errstate(invalid="ignore", over="ignore"):
        added: npt.NDArray[np.float64] = np.add.reduceat(numbers, groups.starts)
    added += 0.0  # Spark starts from 0.0, so that its sum is never -0.0
    return added


def _integer_sums(groups: Groups, numbers: npt.NDArray[Any], type_: pa.DataType, column: str | None) -> Index:
    largest = max(abs(int(numbers.min())), abs(int(numbers.max())))
    if largest * int(groups.counts.max()) < _LONG_LIMIT:  # can't overflow
        return np.add.reduceat(numbers, groups.starts, dtype=np.int64)
    numbers = numbers.astype(np.int64, copy=False)
    low = np.add.reduceat(numbers & _LOW, groups.starts)
    high = np.add.reduceat(numbers >> _HALF, groups.starts) + (low >> _HALF)
    if (high != high.astype(np.int32)).any():
        raise _overflow(column, type_)
    added: Index = (high << _HALF) | (low & _LOW)
    return added


def _decimal_sums(
    groups: Groups, values: pa.Array, valid: Valid, some: Valid, type_: pa.DataType, column: str | None
) -> pa.Array:
    if type_.precision <= LONG_DIGITS:
        numbers = _zero_nulls(values_of(values, np.int64)[::2], valid)
        added = _integer_sums(groups, numbers, type_, column)
        limit = 10**type_.precision
        if ((added >= limit) | (added <= -limit)).any():
            raise _overflow(column, type_)
        return decimals(added, type_, some)
    words = values_of(values, np.uint32).reshape(-1, 4)
    parts = [words[:, 0], words[:, 1], words[:, 2], words[:, 3].view(np.int32)]  # the highest has the sign
    limbs = np.empty((len(groups), 4), dtype=np.uint32)
    carry: Any = 0
    for place, part in enumerate(parts):
        total = np.add.reduceat(_zero_nulls(part, valid), groups.starts, dtype=np.int64) + carry
        limbs[:, place] = total & _LOW
        carry = total >> _HALF
    # What is carried beyond the highest part must be its sign and nothing else.
    fits = (carry == limbs[:, 3].view(np.int32) >> (_HALF - 1)) & _within(limbs, 10**type_.precision)
    if not fits.all():
        raise _overflow(column, type_)
    return from_values(limbs.reshape(-1), type_, some)


def _within(limbs: npt.NDArray[np.uint32], limit: int) -> npt.NDArray[np.bool_]:
    """Whether numbers of 128 bits lie between -limit and limit, both excluded."""
    words = limbs.view(np.uint64)
    low, high = words[:, 0], words[:, 1].view(np.int64)

    def less(number: int) -> npt.NDArray[np.bool_]:
        top, bottom = number >> 64, number & (2**64 - 1)
        smaller: npt.NDArray[np.bool_] = (high < top) | ((high == top) & (low < np.uint64(bottom)))
        return smaller

    return less(limit) & ~less(1 - limit)


def _overflow(column: str | None, type_: pa.DataType) -> InvalidInput:
    return InvalidInput(
        f"the sum of column {column!r} doesn't fit {type_}: cast the column to a decimal of more digits, "
        "or to double"
    )
