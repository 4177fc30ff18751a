"""Rows cut into epochs and routers in any way aggregate to what plain Python computes of them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sterna.hashing import hash_keys
from sterna.operators import accumulators as agg

# Eighths of small integers: their sums are exact in whatever order.
FLOATS = st.integers(-80, 80).map(lambda n: n / 8) | st.sampled_from([math.nan, math.inf, -math.inf, -0.0])

TYPES = {
    pa.int8(): st.integers(-128, 127),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**58), 2**58),
    pa.float32(): FLOATS,
    pa.float64(): FLOATS,
    pa.decimal128(8, 2): st.decimals(-999999, 999999, places=2),
    pa.decimal128(18, 2): st.decimals(-(10**14), 10**14, places=2),
    pa.decimal128(38, 2): st.decimals(-(10**24), 10**24, places=2),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=3),
    pa.binary(): st.binary(max_size=3),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(dt.timezone.utc)),
}
ADDABLE = [t for t in TYPES if pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_decimal(t)]
AGGREGATES = [agg.count(), agg.count("v"), agg.sum("v"), agg.mean("v"), agg.min("v"), agg.max("v")]
AGGREGATES += [agg.first("v"), agg.last("v"), agg.largest(1, "v"), agg.largest(3, "v")]
CASES = [
    (aggregate, type_)
    for aggregate in AGGREGATES
    for type_ in TYPES
    if type_ in ADDABLE or not isinstance(aggregate, agg.Sum | agg.Mean)
]


def sort_key(value):
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def model(aggregate, values):
    """The aggregate of one key's values, in order."""
    known = sorted((v for v in values if v is not None), key=sort_key)
    computed = {
        agg.Count: lambda: len(values) if aggregate.column is None else len(known),
        agg.Sum: lambda: sum(known) if known else None,
        agg.Mean: lambda: float(sum(known)) / len(known) if known else None,
        agg.Min: lambda: known[0] if known else None,
        agg.Max: lambda: known[-1] if known else None,
        agg.First: lambda: values[0],
        agg.Last: lambda: values[-1],
        agg.Largest: lambda: known[::-1][: aggregate.k],
    }
    return computed[type(aggregate)]()


def alike(seen, wanted):
    if isinstance(wanted, list):
        return len(seen) == len(wanted) and all(map(alike, seen, wanted))
    if isinstance(wanted, float) and math.isnan(wanted):
        return isinstance(seen, float) and math.isnan(seen)
    return seen == wanted


def grouped(keys):
    """The keys, sorted into groups: their order, the groups, and one key each."""
    order, groups = agg.group_sorted(hash_keys([keys]), [keys], None)
    return pa.array(order), groups, keys.take(pa.array(order[groups.starts]))


def of_one_epoch(aggregate, type_, routers):
    """What routers make of their rows, merged."""
    partials = []
    for rows in routers:
        order, groups, keys = grouped(pa.array([k for k, _ in rows], pa.int64()))
        values = pa.array([v for _, v in rows], type_)
        partials.append(
            (keys, aggregate.partial(groups, None if aggregate.column is None else values.take(order)))
        )
    order, groups, keys = grouped(pa.concat_arrays([keys for keys, _ in partials]))
    columns = [
        pa.concat_arrays(columns).take(order) for columns in zip(*(p for _, p in partials), strict=True)
    ]
    return keys, aggregate.merge(groups, columns)


def run(aggregate, type_, epochs):
    """The state after all epochs, as a table from key to row, and the accumulators."""
    fields = aggregate.state(type_)
    place: dict[int, int] = {}
    state = [pa.array([], f.type) for f in fields]
    for routers in epochs:
        keys, new = of_one_epoch(aggregate, type_, routers)
        assert [c.type for c in new] == [f.type for f in fields]
        found = np.array([k in place for k in keys.to_pylist()], dtype=np.bool_)
        # What is beside a key that was not found may be anything, such as another key's accumulators.
        anything = 0 if len(state[0]) else None
        old_rows = pa.array([place.get(k, anything) for k in keys.to_pylist()], pa.int64())
        combined = aggregate.combine([c.take(old_rows) for c in state], new, found)
        place |= {k: i + len(state[0]) for i, k in enumerate(keys.to_pylist())}
        state = [pa.concat_arrays([c, n]) for c, n in zip(state, combined, strict=True)]
    return place, state


def epochs_of(type_):
    row = st.tuples(st.none() | st.integers(0, 3), st.none() | TYPES[type_])
    routers = st.lists(st.lists(row, max_size=8), min_size=1, max_size=3)
    return st.lists(routers, min_size=1, max_size=3)


@pytest.mark.parametrize(("aggregate", "type_"), CASES, ids=lambda x: str(x).replace("column=", ""))
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_any_cut_into_epochs_and_routers_gives_the_model(aggregate, type_, data):
    epochs = data.draw(epochs_of(type_))

    place, state = run(aggregate, type_, epochs)
    results = aggregate.finish(state)

    values: dict[int | None, list[object]] = {}
    for k, v in (row for routers in epochs for rows in routers for row in rows):
        values.setdefault(k, []).append(v)
    assert results.type == aggregate.result(type_)
    assert place.keys() == values.keys()
    for key, at in place.items():
        seen, wanted = results[at].as_py(), model(aggregate, values[key])
        if isinstance(wanted, float) and isinstance(aggregate, agg.Mean) and pa.types.is_decimal(type_):
            wanted = pytest.approx(wanted, rel=1e-15)
        assert alike(seen, wanted), (key, values[key])


@pytest.mark.parametrize(("aggregate", "type_"), CASES, ids=lambda x: str(x).replace("column=", ""))
@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_an_exact_aggregate_has_the_same_bits_in_any_order(aggregate, type_, data):
    if not aggregate.exact(type_):
        return
    rows = data.draw(st.lists(st.none() | TYPES[type_], min_size=1, max_size=12))
    other = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(rows) - 1))

    straight = run(aggregate, type_, [[[(0, v) for v in rows]]])
    shuffled = run(aggregate, type_, [[[(0, v) for v in other[:cut]], [(0, v) for v in other[cut:]]]])

    for one, two in zip(straight[1], shuffled[1], strict=True):
        assert repr(one[0].as_py()) == repr(two[0].as_py())


@pytest.mark.parametrize("decimal", [Decimal("0.10"), Decimal("-123456789012345678901234567890.12")])
def test_the_mean_of_equal_decimals_is_that_decimal_as_a_double(decimal):
    values = pa.array([decimal] * 3, pa.decimal128(38, 2))

    mean = agg.mean("v")
    (seen,) = mean.finish(mean.partial(agg.Groups(np.array([0]), 3), values)).to_pylist()

    assert seen == pytest.approx(float(decimal), rel=1e-15)
