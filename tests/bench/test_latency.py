"""Histograms and timelines against lists of all latencies."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna.bench.latency import LEAST, Histogram, Timeline

latencies = st.floats(0.0, 3000.0)
spans = st.tuples(latencies, latencies, st.integers(1, 1000)).map(lambda s: (min(s[:2]), max(s[:2]), s[2]))


def close(found: float, wanted: float) -> bool:
    return abs(found - wanted) <= 0.0101 * wanted + LEAST


@given(st.lists(latencies, min_size=1), st.floats(0.1, 100.0))
def test_a_percentile_is_that_of_the_sorted_latencies(values, percent):
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    wanted = np.percentile(values, percent, method="inverted_cdf")
    assert close(histogram.percentile(percent), wanted)
    assert histogram.max == max(values)
    assert histogram.percentile(100) == histogram.max


@given(spans, st.floats(1.0, 100.0))
def test_a_span_is_what_its_records_are_one_by_one(span, percent):
    low, high, weight = span
    whole, single = Histogram(), Histogram()
    whole.record_span(low, high, weight)
    for value in np.linspace(low, high, 2000):
        single.record(value, weight / 2000)
    assert whole.total == pytest.approx(weight)
    assert whole.max == pytest.approx(single.max)
    step = (high - low) / 1000
    assert abs(whole.percentile(percent) - single.percentile(percent)) <= 0.021 * high + step + LEAST


@given(st.lists(spans), st.lists(spans))
def test_merging_is_recording_both(first, second):
    one, other, both = Histogram(), Histogram(), Histogram()
    for histogram, group in ((one, first), (other, second), (both, first + second)):
        for span in group:
            histogram.record_span(*span)
    one.merge(other)
    assert np.allclose(one.weights, both.weights)
    assert one.max == both.max


@given(st.lists(spans))
def test_percentiles_never_fall_and_survive_json(group):
    histogram = Histogram()
    for span in group:
        histogram.record_span(*span)
    percentiles = [histogram.percentile(p) for p in (0, 1, 25, 50, 75, 99, 99.9, 100)]
    assert percentiles == sorted(percentiles)
    again = Histogram.from_json(json.loads(json.dumps(histogram.to_json())))
    assert [again.percentile(p) for p in (0, 1, 25, 50, 75, 99, 99.9, 100)] == percentiles


def test_clocks_that_disagree_and_hours_have_their_places():
    histogram = Histogram()
    histogram.record(-0.5)
    histogram.record_span(-2.0, -1.0)
    assert (histogram.total, histogram.max) == (2, 0)
    histogram.record_span(-0.1, 0.1, 10)
    assert histogram.total == pytest.approx(12)
    histogram.record(50_000)
    assert histogram.percentile(99) == 50_000
    histogram.record(1.0, 0)
    assert histogram.total == pytest.approx(13)


@given(st.lists(st.tuples(st.integers(1, 5000), st.floats(0.0, 5.0)), min_size=1, max_size=8))
def test_a_timeline_has_every_record_in_the_slot_in_which_it_was_due(epochs):
    begin, rate = 1000.0, 500.0
    timeline, position = Timeline(begin), 0
    due, taken = [], []
    for records, delay in epochs:
        end = position + records
        acknowledged = begin + end / rate + delay
        timeline.record(begin + position / rate, begin + end / rate, records, acknowledged)
        due += [n / rate for n in range(position, end)]
        taken += [acknowledged - begin - n / rate for n in range(position, end)]
        position = end
    slots = {slot["second"]: slot for slot in timeline.to_json()}
    assert sum(slot["records"] for slot in slots.values()) == pytest.approx(position, abs=len(slots))
    numbers = np.floor(np.array(due) / timeline.slot + 1e-9)
    for number in set(numbers):
        slot = slots[number * timeline.slot]
        inside = np.array(taken)[numbers == number]
        assert slot["records"] == pytest.approx(len(inside), abs=2)
        assert slot["max_ms"] / 1e3 == pytest.approx(inside.max(), abs=2 / rate)


def test_a_stall_shows_in_the_slots_of_those_who_waited():
    timeline = Timeline(0.0)
    timeline.record(0.0, 1.0, 100, acknowledged=5.0)
    assert [(slot["second"], slot["records"], slot["max_ms"]) for slot in timeline.to_json()] == [
        (0.0, 25, 5000.0),
        (0.25, 25, 4750.0),
        (0.5, 25, 4500.0),
        (0.75, 25, 4250.0),
    ]
    timeline.record(1.0, 1.0, 3, acknowledged=1.5)
    assert timeline.to_json()[-1] == {
        "second": 1.0,
        "records": 3,
        "p50_ms": 500.0,
        "p99_ms": 500.0,
        "max_ms": 500.0,
    }
