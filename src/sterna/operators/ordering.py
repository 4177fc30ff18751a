"""Values of any sortable type as integers in the same order.

Goes in: an Arrow array of a type that Spark can sort. Comes out: integers that compare as Spark compares
the values, and the way back. NaN is greater than any number, -0.0 equals 0.0, strings compare by their
bytes. So the least, the greatest and the largest few of each group are found in NumPy, whatever the type. A
type without an order raises ``InvalidInput``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sterna.errors import InvalidInput
from sterna.hashing import LONG_DIGITS, few_distinct, from_values, normalise, validity, values_of
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


def known_type(type_: pa.DataType | None, function: str, column: str | None) -> pa.DataType:
    """The type, which a function of a column can't do without.

    Raises:
        InvalidInput: There is none.
    """
    if type_ is None:
        raise InvalidInput(f"{function}({column}): the type of the column is not known")
    return type_


def sortable_type(type_: pa.DataType | None, function: str, column: str | None) -> pa.DataType:
    """The type, if its values have an order.

    Raises:
        InvalidInput: It is not known, nested, or none that Spark has.
    """
    type_ = known_type(type_, function, column)
    is_ = pa.types
    unordered = (
        is_.is_nested,
        is_.is_null,
        is_.is_dictionary,
        is_.is_unsigned_integer,
        is_.is_float16,
        is_.is_interval,
    )
    if any(matches(type_) for matches in unordered):
        raise InvalidInput(f"{function}({column}): values of type {type_} have no order")
    return type_


def beats(new: pa.Array, old: pa.Array, greater: bool) -> npt.NDArray[np.bool_]:
    """Whether each new value is greater, or else less, than the old one beside it; no if either is null."""
    if pa.types.is_floating(new.type):  # Arrow finds NaN neither greater nor less
        numbers = pa.int32() if pa.types.is_float32(new.type) else pa.int64()
        new, old = (from_values(ordinals(x).numbers, numbers, validity(x)) for x in (new, old))
    better = pc.greater(new, old) if greater else pc.less(new, old)
    result: npt.NDArray[np.bool_] = pc.fill_null(better, fill_value=False).to_numpy(zero_copy_only=False)
    return result


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
    """Each value's place in the sorted order."""
    places: Index | None = None
    if few_distinct(values):
        encoded = values.dictionary_encode()
        values = encoded.dictionary
        places = pc.fill_null(encoded.indices, 0).to_numpy()
    order: Index = pc.sort_indices(values).to_numpy().astype(np.int64)
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))

    def back(numbers: Numbers, kept: Valid) -> pa.Array:
        if kept is not None:
            numbers = np.where(kept, numbers, 0)
        return values.take(pa.array(order[numbers], mask=None if kept is None else ~kept))

    return Ordinals(ranks if places is None else ranks[places], valid, back)
