"""Maxima over moving windows against looking at each window."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sterna.planning.windows import NEVER, Running, Windows

PLACES = 12
AMOUNTS = st.one_of(st.just(NEVER), st.floats(-5, 5))


@st.composite
def moving(draw):
    """Begins and ends of windows, some of them empty, none before the one before it."""
    many = draw(st.integers(1, 15))
    bounds = st.lists(st.integers(0, PLACES), min_size=many, max_size=many).map(sorted)
    return np.array(draw(bounds)), np.array(draw(bounds))


@settings(max_examples=1000)
@given(st.data(), moving(), moving())
def test_the_maxima_of_windows_are_those_of_the_places_in_them(data, one, other):
    kinds = [Windows(*one, PLACES), Windows(*other, PLACES)]
    rows = [0, 0, 1]
    blocks = [(kinds[0].blocks, 2), (kinds[1].blocks, 1)]
    left, right = Running(blocks, from_right=True), Running(blocks, from_right=False)
    lows = sorted(data.draw(st.lists(st.integers(0, PLACES - 1), min_size=3, max_size=3)))
    for low in lows:
        amounts = st.lists(AMOUNTS, min_size=PLACES - low, max_size=PLACES - low)
        values = np.array([data.draw(amounts) for _ in rows])
        from_right, from_left = left.maxima(values, low, PLACES), right.maxima(values, low, PLACES)
        for row, kind in enumerate(rows):
            begins, ends = (one, other)[kind]
            found = np.maximum(
                from_right[left.at(row, kinds[kind].left)], from_left[right.at(row, kinds[kind].right)]
            )
            wanted = [
                max(values[row, max(0, begin - low) : max(0, end - low)], default=NEVER)
                for begin, end in zip(begins, ends, strict=True)
            ]
            assert found.tolist() == wanted
