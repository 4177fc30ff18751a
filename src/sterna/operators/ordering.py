"""Values of any sortable type as integers in the same order.

Goes in: an Arrow array of a type that Spark can sort. Comes out: integers that compare as Spark compares the values,
and the way back. NaN is greater than any number, -0.0 equals 0.0, strings compare by their bytes. So the least,
the greatest and the largest few of each group are found in NumPy, whatever the type. A type without an order
raises ``InvalidInput``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sterna.errors import InvalidInput
from sterna.hashing import LONG_DIGITS, from_values, normalise, validity, values_of
from sterna.operators.groups import Index

Valid = npt.NDArray[np.bool_] | None
Numbers = npt.NDArray[np.signedinteger]


@dataclass(frozen=True, eq=False)
class Ordinals:
    """Integers that stand for values.

    Attributes:
        numbers: One for each value, signed; arbitrary where the value is null.
        valid: Which values are not null, or None if all are.
        values: From some of the numbers, and which of them are valid, back to values.
    """

    numbers: Numbers
    valid: Valid
    values: Callable[[Numbers, Valid], pa.Array]


def check_sortable(type_: pa.DataType, function: str, column: str | None) -> None:
    """Refuse a type that has no order.

    Raises:
        InvalidInput: The type is nested, or one that Spark has not.
    """
    is_ = pa.types
    if (
        is_.is_nested(type_)
        or is_.is_null(type_)
        or is_.is_dictionary(type_)
        or is_.is_unsigned_integer(type_)
    ):
        raise InvalidInput(f"{function}({column}): values of type {type_} have no order")


def ordinals(values: pa.Array) -> Ordinals:
    """Integers in the order of the values."""
    type_ = values.type
    valid = validity(values)
    if pa.types.is_boolean(type_):
        numbers = values.cast(pa.int8())
        return Ordinals(
            values_of(numbers, np.int8), valid, lambda n, v: from_values(n, pa.int8(), v).cast(type_)
        )
    if pa.types.is_decimal128(type_) and type_.precision <= LONG_DIGITS:
        return Ordinals(values_of(values, np.int64)[::2], valid, lambda n, v: decimals(n, type_, v))
    if pa.types.is_float32(type_) or pa.types.is_float64(type_):
        bits = values_of(normalise(values), f"i{type_.bit_width // 8}")
        return Ordinals(_flip(bits), valid, lambda n, v: from_values(_flip(n), type_, v))
    if pa.types.is_primitive(type_) and not pa.types.is_decimal(type_):  # integers, dates, timestamps
        bits = values_of(values, f"i{type_.bit_width // 8}")
        return Ordinals(bits, valid, lambda n, v: from_values(n, type_, v))
    return _ranks(values, valid)


def decimals(numbers: Numbers, type_: pa.DataType, valid: Valid) -> pa.Array:
    """Decimals from unscaled values of 64 bits."""
    words = np.empty((len(numbers), 2), dtype=np.int64)
    words[:, 0] = numbers
    words[:, 1] = numbers >> 63
    return from_values(words.reshape(-1), type_, valid)


def _flip(bits: Numbers) -> Numbers:
    """From the bits of floats to integers in their order, and back.

    The magnitude of a negative float grows with its bits, so these are inverted, all but the sign.
    """
    width = 8 * bits.itemsize
    return bits ^ ((bits >> (width - 1)) & np.iinfo(bits.dtype).max)


def _ranks(values: pa.Array, valid: Valid) -> Ordinals:
    """Each value's place in the sorted order; a stable one, so that of equal values the earlier comes first."""
    order: Index = pc.sort_indices(values).to_numpy().astype(np.int64)
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))

    def back(numbers: Numbers, kept: Valid) -> pa.Array:
        if kept is not None:
            numbers = np.where(kept, numbers, 0)
        return values.take(pa.array(order[numbers], mask=None if kept is None else ~kept))

    return Ordinals(ranks, valid, back)
