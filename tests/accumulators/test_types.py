"""Which types an aggregate takes and gives, without rows and with any."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sterna.errors import InvalidInput
from sterna.operators import accumulators as agg

ALL = [agg.count(), agg.count("v"), agg.sum("v"), agg.mean("v"), agg.min("v"), agg.max("v")]
ALL += [agg.first("v"), agg.last("v"), agg.largest(2, "v")]
NESTED = [
    pa.array([[1, None], None, []], pa.list_(pa.int32())),
    pa.array([{"a": 1}, None, {"a": None}], pa.struct([("a", pa.int64())])),
    pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
]


@pytest.mark.parametrize("aggregate", ALL, ids=str)
@pytest.mark.parametrize(
    "type_", [pa.int32(), pa.float32(), pa.decimal128(10, 2), pa.decimal128(38, 0)], ids=str
)
def test_without_rows_the_types_are_the_same(aggregate, type_):
    none = agg.Groups(np.array([], dtype=np.int64), 0)
    types = [field.type for field in aggregate.state(type_)]

    partial = aggregate.partial(none, pa.array([], type_) if aggregate.column else None)
    merged = aggregate.merge(none, partial)
    combined = aggregate.combine(merged, merged, np.array([], dtype=np.bool_))

    for columns in (partial, merged, combined):
        assert [c.type for c in columns] == types
        assert [len(c) for c in columns] == [0] * len(types)
    assert aggregate.finish(combined).type == aggregate.result(type_)


@pytest.mark.parametrize("values", NESTED, ids=lambda v: str(v.type))
def test_first_and_last_take_any_type(values):
    groups = agg.Groups(np.array([0, 2]), 3)

    for aggregate, wanted in ((agg.first("v"), [0, 2]), (agg.last("v"), [1, 2])):
        partial = aggregate.partial(groups, values)
        combined = aggregate.combine(partial, partial, np.array([True, False]))
        assert combined[0].to_pylist() == values.take(pa.array(wanted)).to_pylist()


@pytest.mark.parametrize("values", NESTED, ids=lambda v: str(v.type))
@pytest.mark.parametrize(
    "aggregate", [agg.sum("v"), agg.mean("v"), agg.min("v"), agg.max("v"), agg.largest(1, "v")], ids=str
)
def test_what_can_be_neither_added_nor_compared_is_refused_by_column(aggregate, values):
    with pytest.raises(InvalidInput, match=r"\(v\)"):
        aggregate.state(values.type)
    with pytest.raises(InvalidInput, match=r"\(v\)"):
        aggregate.result(values.type)


@pytest.mark.parametrize("type_", [pa.string(), pa.bool_(), pa.date32(), pa.timestamp("us")], ids=str)
def test_only_numbers_add_up(type_):
    for aggregate in (agg.sum("v"), agg.mean("v")):
        with pytest.raises(InvalidInput, match="can't be added"):
            aggregate.state(type_)


@pytest.mark.parametrize("k", [0, -1])
def test_the_largest_none_is_refused(k):
    with pytest.raises(InvalidInput, match="whole number from 1 on"):
        agg.largest(k, "v")


def test_an_aggregate_of_a_column_needs_its_type_and_its_values():
    for aggregate in ALL[2:]:
        with pytest.raises(InvalidInput, match="v"):
            aggregate.state(None)
        with pytest.raises(InvalidInput, match="v"):
            aggregate.partial(agg.Groups(np.array([0]), 1), None)


def test_strings_that_repeat_compare_as_those_that_do_not():
    few = pa.array(["b", None, "a", "ä", ""] * 1_000)
    groups = agg.Groups(np.array([0, 1, 2]), len(few))

    assert agg.min("v").partial(groups, few)[0].to_pylist() == ["b", None, ""]
    assert agg.max("v").partial(groups, few)[0].to_pylist() == ["b", None, "ä"]
    assert agg.largest(2, "v").partial(groups, few)[0].to_pylist() == [["b"], [], ["ä", "ä"]]
