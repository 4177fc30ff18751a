"""What counts as an item, and which patterns items make."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna.examples.candidates import Candidates, parts_of
from sterna.examples.items import PUNCTUATION, items_of

TEXTS = st.lists(st.none() | st.text("aAbÄé #,.'\n", max_size=12), max_size=6)


def words_of(text):
    return [word for part in text.lower().split() if (word := part.strip(PUNCTUATION))]


@given(TEXTS, st.integers(0, 3))
def test_words_are_what_white_space_parts(texts, skipped):
    row, item = items_of(pa.array(texts, pa.string())[skipped:])
    found = list(zip(row.tolist(), item.to_pylist(), strict=True))
    assert found == [(i, word) for i, text in enumerate(texts[skipped:]) for word in words_of(text or "")]


def test_white_space_at_the_end_is_never_overlooked():
    """Arrow's function for Unicode does, for one text in some hundred."""
    choose = random.Random(1).choices
    for _ in range(3_000):
        text = "".join(choose("aÄé.\n ", k=6))
        assert items_of(pa.array([text]))[1].to_pylist() == words_of(text)


def test_items_of_an_array_are_taken_as_they_are():
    column = pa.chunked_array([[["Tea", "ice cream"], None], [["", None], ["tea."]]], pa.list_(pa.string()))
    row, item = items_of(column)
    assert row.tolist() == [0, 0, 3]
    assert item.to_pylist() == ["Tea", "ice_cream", "tea."]


@given(TEXTS, st.lists(st.none() | st.integers(-20, 20), min_size=6, max_size=6), st.integers(1, 4))
def test_candidates_are_all_sets_of_words_in_their_pane(texts, times, longest):
    pairs = list(zip(texts, times, strict=False))
    rows = pa.table(
        {
            "text": pa.array([text for text, _ in pairs], pa.string()),
            "when": pa.array([time for _, time in pairs], pa.int64()),
        }
    )
    found = Candidates("text", "when", slide=5, longest=longest)(rows)
    expected = Counter(
        (" ".join(chosen), time // 5 * 5)
        for text, time in pairs
        if time is not None
        for size in range(1, longest + 1)
        for chosen in combinations(sorted(set(words_of(text or ""))), size)
    )
    columns = (found["pattern"], found["when"].cast(pa.int64()), found["n"])
    told = list(zip(*(column.to_pylist() for column in columns), strict=True))
    assert len({(pattern, time) for pattern, time, _ in told}) == len(told)
    assert {(pattern, time): n for pattern, time, n in told} == expected


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")])
def test_panes_are_in_microseconds_whatever_the_type_of_time(kind):
    second = 1_000_000 if kind.unit == "us" else 1_000
    rows = pa.table({"text": ["a"], "time": pa.array([7 * second], pa.int64()).cast(kind)})
    found = Candidates("text", "time", slide=5_000_000, longest=1)(rows)
    assert found["time"].type == pa.timestamp("us", "UTC")
    assert found["time"].cast(pa.int64()).to_pylist() == [5_000_000]


@given(st.lists(st.sets(st.sampled_from(["a", "bb", "ccc", "d", "é"]), min_size=1), max_size=5))
def test_parts_are_the_patterns_with_one_item_less(sets):
    patterns = [sorted(one) for one in sets]
    whole, part = parts_of(pa.array([" ".join(items) for items in patterns], pa.string()))
    assert np.all(whole[1:] >= whole[:-1])
    expected = Counter(
        (i, " ".join(chosen))
        for i, items in enumerate(patterns)
        if len(items) > 1
        for chosen in combinations(items, len(items) - 1)
    )
    assert Counter(zip(whole.tolist(), part.to_pylist(), strict=True)) == expected
