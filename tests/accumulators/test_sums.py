"""A sum is exact or refused, and doesn't depend on what lies beside it."""

from __future__ import annotations

import math
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna.errors import InvalidInput
from sterna.operators import accumulators as agg
from sterna.operators.sums import sum_type

EXTREMES = st.sampled_from([-(2**63), -(2**63) + 1, -1, 0, 1, 2**62, 2**63 - 1])
LONGS = st.integers(-(2**63), 2**63 - 1) | EXTREMES
WIDE = Context(prec=60)


def groups_of(lists):
    """Groups of the given values, one after another, and the values."""
    starts = np.cumsum([0, *(len(part) for part in lists)])
    return agg.Groups(starts[:-1], int(starts[-1])), [v for part in lists for v in part]


def add_all(numbers):
    total = Decimal(0)
    for number in numbers:
        total = WIDE.add(total, number)
    return total


@given(st.lists(st.lists(LONGS, min_size=1, max_size=6), min_size=1, max_size=4))
def test_a_sum_of_longs_is_right_or_refused(lists):
    groups, values = groups_of(lists)
    wanted = [sum(part) for part in lists]

    if all(-(2**63) <= total < 2**63 for total in wanted):
        assert agg.sum("v").partial(groups, pa.array(values))[0].to_pylist() == wanted
    else:
        with pytest.raises(InvalidInput, match="'v'"):
            agg.sum("v").partial(groups, pa.array(values))


@given(st.lists(st.tuples(LONGS, LONGS), min_size=1, max_size=5))
def test_a_sum_that_overflows_with_the_state_is_refused(pairs):
    old, new = (pa.array([pair[i] for pair in pairs]) for i in (0, 1))
    found = np.ones(len(pairs), dtype=np.bool_)

    if all(-(2**63) <= a + b < 2**63 for a, b in pairs):
        assert agg.sum("v").combine([old], [new], found)[0].to_pylist() == [a + b for a, b in pairs]
    else:
        with pytest.raises(InvalidInput, match="'v'"):
            agg.sum("v").combine([old], [new], found)


@pytest.mark.parametrize("digits", [1, 8, 9, 18, 28, 38])
@given(data=st.data())
def test_a_sum_of_decimals_is_right_or_refused(digits, data):
    nines = 10**digits - 1
    number = (st.integers(-nines, nines) | st.sampled_from([nines, -nines])).map(Decimal)
    lists = data.draw(st.lists(st.lists(number, min_size=1, max_size=4), min_size=1, max_size=3))
    groups, values = groups_of(lists)
    column = pa.array(values, pa.decimal128(digits, 0))
    wanted = [add_all(part) for part in lists]

    if all(total.copy_abs() < 10**38 for total in wanted):
        (seen,) = agg.sum("v").partial(groups, column)
        assert seen.type == sum_type(column.type, "sum", "v")
        assert seen.to_pylist() == wanted
    else:
        with pytest.raises(InvalidInput, match="'v'"):
            agg.sum("v").partial(groups, column)


@pytest.mark.parametrize("digits", [18, 19, 38])
@pytest.mark.parametrize("sign", [1, -1])
def test_sums_of_decimals_leave_their_type_neither_in_merge_nor_in_combine(digits, sign):
    most = pa.array([Decimal(sign * (10**digits - 1)), Decimal(sign)], pa.decimal128(digits, 0))
    found = np.ones(1, dtype=np.bool_)

    with pytest.raises(InvalidInput, match="'v'"):
        agg.sum("v").merge(agg.Groups(np.array([0]), 2), [most])
    with pytest.raises(InvalidInput, match="'v'"):
        agg.sum("v").combine([most[:1]], [most[1:]], found)


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()], ids=str)
def test_a_sum_of_floats_does_not_depend_on_its_neighbours(type_):
    random = np.random.default_rng(3)
    lists = [random.standard_normal(n).astype(type_.to_pandas_dtype()) for n in (3, 8_000, 1, 500, 20_000, 7)]
    groups, values = groups_of(lists)

    together = agg.sum("v").partial(groups, pa.array(values, type_))[0].to_pylist()

    alone = [
        agg.sum("v").partial(agg.Groups(np.array([0]), len(x)), pa.array(x))[0][0].as_py() for x in lists
    ]
    assert together == alone


def test_infinities_and_zeros_add_up_as_in_spark():
    groups, values = groups_of([[math.inf, -math.inf], [-0.0], [1e308, 1e308]])

    nan, zero, infinity = agg.sum("v").partial(groups, pa.array(values))[0].to_pylist()

    assert math.isnan(nan)
    assert math.copysign(1, zero) == 1
    assert infinity == math.inf
