"""Texts are what their shape says, whichever way they are asked for."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna.errors import InvalidInput
from sterna.examples.texts import Shape, generate, vocabulary


def words(shape, count, start=0):
    return [text.split() for text in generate(shape, np.arange(start, start + count))["text"].to_pylist()]


@given(st.lists(st.integers(0, 10**12), max_size=30), st.integers(0, 30), st.integers(-3, 3))
def test_any_texts_can_be_made_again_in_parts(numbers, cut, seed):
    shape = Shape(seed=seed, vocabulary=50, drift=7)
    first, second = (generate(shape, np.array(some, np.int64)) for some in (numbers[:cut], numbers[cut:]))
    whole = generate(shape, np.array(numbers, np.int64))
    assert pa.concat_tables([first, second]).to_pylist() == whole.to_pylist()


def test_words_come_as_often_as_zipf_says():
    shape = Shape(vocabulary=1000, exponent=1.2)
    counts = Counter(word for text in words(shape, 20_000) for word in text)
    weights = np.arange(1, 1001) ** -1.2
    wanted = weights / weights.sum() * counts.total()
    for rank in (0, 1, 2, 9, 99):
        assert counts[vocabulary(1000)[rank].as_py()] == pytest.approx(wanted[rank], rel=0.1)


def test_lengths_are_spread_evenly_between_the_least_and_the_most():
    lengths = Counter(len(text) for text in words(Shape(least=3, most=7), 10_000))
    assert sorted(lengths) == [3, 4, 5, 6, 7]
    assert all(count == pytest.approx(2000, rel=0.1) for count in lengths.values())


def test_all_words_are_different_and_all_of_them_come():
    assert pa.compute.count_distinct(vocabulary(10_000)).as_py() == 10_000
    assert {w for text in words(Shape(vocabulary=5, exponent=0.0), 500) for w in text} == set(
        vocabulary(5).to_pylist()
    )


def test_what_is_frequent_drifts():
    shape = Shape(vocabulary=100, exponent=1.5, drift=1000)
    for period in range(3):
        counts = Counter(w for text in words(shape, 1000, start=1000 * period) for w in text)
        assert counts.most_common(1)[0][0] == vocabulary(100)[period].as_py()


def test_time_follows_the_rate_and_another_seed_gives_other_texts():
    numbers = np.array([0, 1, 500])
    one, other = generate(Shape(rate=250, base=7), numbers), generate(Shape(seed=1), numbers)
    assert one["time"].cast(pa.int64()).to_pylist() == [7, 4_007, 2_000_007]
    assert one["text"].to_pylist() != other["text"].to_pylist()


@pytest.mark.parametrize(
    "wrong",
    [
        {"rate": 0},
        {"rate": float("nan")},
        {"exponent": -1},
        {"vocabulary": 0},
        {"least": 0},
        {"least": 5, "most": 4},
        {"most": 1 << 16},
        {"drift": -1},
    ],
)
def test_a_shape_that_can_not_be_is_refused(wrong):
    with pytest.raises(InvalidInput, match=next(iter(reversed(wrong)))):
        Shape(**wrong)
