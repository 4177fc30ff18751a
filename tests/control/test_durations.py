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
        "5m",
        "8 M",
        "3u",
        "5mss",
        "5ss",
        "5hs",
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


@pytest.mark.parametrize(
    ("unclear", "words"),
    [
        ("5m", "'m' could be minutes or milliseconds: write 5min or 5ms"),
        ("8 M", "write 8min or 8ms"),
        ("3u", "write 3us"),
    ],
)
def test_a_letter_that_could_be_two_units_is_refused_with_what_to_write(unclear, words):
    with pytest.raises(InvalidInput) as caught:
        seconds(unclear)
    assert words in str(caught.value)
