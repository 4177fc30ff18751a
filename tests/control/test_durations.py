"""Durations as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna.durations import UNITS, seconds
from sterna.errors import InvalidInput


@given(st.integers(0, 10**6), st.sampled_from(sorted(UNITS)), st.sampled_from(["", " ", "  "]), st.booleans())
def test_any_number_of_any_unit(number, unit, gap, plural):
    written = f"{number}{gap}{unit}{'s' if plural and len(unit) > 3 else ''}"
    assert seconds(written) == pytest.approx(number * UNITS[unit])
    assert seconds(written.upper()) == seconds(f" {written} ") == seconds(written)


@given(st.floats(0, 1e9) | st.integers(0, 10**9))
def test_a_number_is_seconds(number):
    assert seconds(number) == float(number)


@pytest.mark.parametrize("written", ["5 minutes", "5 minute", "5min", "300 s", "0.0833333333333333333 hours"])
def test_five_minutes(written):
    assert seconds(written) == pytest.approx(300)


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "5",
        "minutes",
        "-5 minutes",
        "5 moons",
        "5 months",
        "1 2 s",
        "s5",
        None,
        True,
        [],
        -1,
        float("nan"),
        float("inf"),
    ],
)
def test_what_is_no_duration_is_named(wrong):
    with pytest.raises(InvalidInput, match="duration") as caught:
        seconds(wrong)
    assert repr(wrong) in str(caught.value)
