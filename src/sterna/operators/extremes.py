"""Aggregates that compare: ``Min``, ``Max``, ``Largest``. See ``accumulators`` for what the methods promise.

Values compare as in Spark: NaN is greater than any number, and strings go by their bytes. Floats come out
with -0.0 as 0.0, so that the result is the same in whatever order they are met.
"""

# ruff: noqa: ARG002  -- every method is given the type, whether it needs it or not

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sterna.errors import InvalidInput
from sterna.hashing import normalise, stable_order, validity
from sterna.operators.counting import Found, needed
from sterna.operators.groups import Groups
from sterna.operators.ordering import beats, ordinals, sortable_type
from sterna.operators.sums import non_null


@dataclass(frozen=True)
class _Extreme:
    """What ``Min`` and ``Max`` share."""

    column: str

    @property
    def _name(self) -> str:
        return type(self).__name__.lower()

    def state(self, input_type: pa.DataType | None) -> list[pa.Field]:
        """One accumulator: the least or greatest value so far."""
        return [pa.field(self._name, self.result(input_type))]

    def result(self, input_type: pa.DataType | None) -> pa.DataType:
        """The type of the values."""
        return sortable_type(input_type, self._name, self.column)

    def partial(self, groups: Groups, values: pa.Array | None) -> list[pa.Array]:
        """The least or greatest value of each group."""
        return [self._reduce(groups, needed(values, self.column))]

    def merge(self, groups: Groups, accumulators: list[pa.Array]) -> list[pa.Array]:
        """The least or greatest of each group's."""
        return [self._reduce(groups, accumulators[0])]

    def combine(self, old: list[pa.Array], new: list[pa.Array], found: Found) -> list[pa.Array]:
        """The lesser or greater of the old and the new."""
        before, after = old[0], normalise(new[0])
        better = beats(after, before, greater=not isinstance(self, Min)) | ~found
        if (known := validity(before)) is not None:
            better |= ~known
        return [pc.if_else(pa.array(better), after, before)]

    def finish(self, accumulators: list[pa.Array]) -> pa.Array:
        """The least or greatest value."""
        return accumulators[0]

    def exact(self, input_type: pa.DataType | None) -> bool:
        """The order of the rows doesn't matter."""
        return True

    def native(self, input_type: pa.DataType | None) -> list[tuple[str, str]] | None:
        """Spark compares alike."""
        return [(self._name, self.column)]

    def _reduce(self, groups: Groups, values: pa.Array) -> pa.Array:
        if len(groups) == 0:
            return values.slice(0, 0)
        ordered = ordinals(values)
        numbers, valid = ordered.numbers, ordered.valid
        limits = np.iinfo(numbers.dtype)
        reduce, worst = (np.minimum, limits.max) if isinstance(self, Min) else (np.maximum, limits.min)
        if valid is None:
            return ordered.values(reduce.reduceat(numbers, groups.starts), None)
        numbers = np.where(valid, numbers, numbers.dtype.type(worst))
        return ordered.values(reduce.reduceat(numbers, groups.starts), non_null(groups, valid) > 0)


@dataclass(frozen=True)
class Min(_Extreme):
    """The least of the values that are not null; null if there is none."""


@dataclass(frozen=True)
class Max(_Extreme):
    """The greatest of the values that are not null; null if there is none."""


@dataclass(frozen=True)
class Largest:
    """The ``k`` greatest of the values that are not null, in descending order; fewer if there are no more."""

    k: int
    column: str

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InvalidInput(f"largest({self.k}, {self.column!r}): ask for one value or more")

    def state(self, input_type: pa.DataType | None) -> list[pa.Field]:
        """One accumulator: the list so far."""
        return [pa.field("largest", self.result(input_type))]

    def result(self, input_type: pa.DataType | None) -> pa.DataType:
        """A list of values; its field is named as Spark names it."""
        return list_of(sortable_type(input_type, "largest", self.column))

    def partial(self, groups: Groups, values: pa.Array | None) -> list[pa.Array]:
        """The greatest values of each group."""
        return [self._lists(needed(values, self.column), groups.ids, len(groups))]

    def merge(self, groups: Groups, accumulators: list[pa.Array]) -> list[pa.Array]:
        """The greatest of the values of each group's lists."""
        lists = accumulators[0]
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
        return [self._lists(lists.flatten(), np.repeat(groups.ids, lengths), len(groups))]

    def combine(self, old: list[pa.Array], new: list[pa.Array], found: Found) -> list[pa.Array]:
        """The greatest of the old and the new values."""
        return self.merge(*_stacked(old, new, found))

    def finish(self, accumulators: list[pa.Array]) -> pa.Array:
        """The list."""
        return accumulators[0]

    def exact(self, input_type: pa.DataType | None) -> bool:
        """The order of the rows doesn't matter."""
        return True

    def native(self, input_type: pa.DataType | None) -> list[tuple[str, str]] | None:
        """Spark has no such function."""
        return None

    def _lists(self, values: pa.Array, ids: np.ndarray, groups: int) -> pa.Array:
        valid = validity(values)
        if valid is not None:
            values, ids = values.filter(pa.array(valid)), ids[valid]
        ordered = ordinals(values)
        # The complement descends, and unlike the negative can't overflow.
        order = np.argsort(~ordered.numbers)
        order = order[stable_order(ids[order].view(np.uint64) << np.uint64(64 - max(groups, 1).bit_length()))]
        counts = np.bincount(ids, minlength=groups)
        place = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        kept = ordered.values(ordered.numbers[order[place < self.k]], None)
        offsets = np.zeros(groups + 1, dtype=np.int32)
        np.cumsum(np.minimum(counts, self.k), out=offsets[1:])
        return pa.ListArray.from_arrays(pa.array(offsets), kept, type=list_of(values.type))


def list_of(type_: pa.DataType) -> pa.DataType:
    """A list type as Spark's Arrow conversion makes it."""
    return pa.list_(pa.field("element", type_))


def _stacked(old: list[pa.Array], new: list[pa.Array], found: Found) -> tuple[Groups, list[pa.Array]]:
    """Both as groups of one row or two, the old first, so that they merge."""
    rows = len(found)
    kept = np.flatnonzero(found)
    old_at = kept + np.arange(len(kept))
    order = np.empty(rows + len(kept), dtype=np.int64)
    new_at = np.arange(rows) + np.cumsum(found)
    order[new_at] = np.arange(rows) + rows
    order[old_at] = kept
    columns = [pa.concat_arrays([o, n]).take(pa.array(order)) for o, n in zip(old, new, strict=True)]
    return Groups(new_at - found, len(order)), columns
