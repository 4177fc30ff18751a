"""The autoscaler, and what DS2 tells it, as functions of made-up statistics."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.made_up import NOW, sample, view
from sterna.configuration import Configuration
from sterna.controllers import Said, Standing, View, autoscaler, predicted
from sterna.controllers.ds2 import needs, parallelism
from sterna.errors import InvalidInput
from sterna.migration import Migration

BINS = 256


def loaded(rate, *, workers=4, cost=0.01, epochs=12, period=5.0, **others):
    """A query that got so many rows a second, each of which keeps a worker busy for ``cost`` seconds."""
    rows = [rate * period / BINS] * BINS
    return view([rows] * epochs, workers=workers, period=period, cost=cost, **others)


def wanted(verdict):
    return None if verdict.target is None else verdict.target.workers


def asked(to, was, rate, ago):
    return Said("asked", 1, NOW - ago, facts={"rate": rate, "from": was, "to": to})


@given(st.floats(10, 2000), st.floats(1e-4, 0.05), st.integers(1, 40))
def test_it_has_as_many_workers_as_keep_up_with_room_to_spare(rate, cost, workers):
    verdict = autoscaler(most=1000)(loaded(rate, cost=cost, workers=workers))
    came = int(rate * 5 / BINS * BINS)  # rows are whole
    need = came / 5 * cost
    after = wanted(verdict) or workers
    assert need / after <= 0.78
    # It goes down only to where there is room to spare, and has no more than that takes, and one for the
    # rounding.
    assert after <= math.ceil(need / 0.63) + 1
    if verdict.target is not None:
        assert after != workers
        assert autoscaler(most=1000)(loaded(rate, cost=cost, workers=after)).target is None


def test_there_are_no_more_workers_than_bins():
    verdict = autoscaler(most=1000)(loaded(2000, cost=0.5, workers=4))
    assert wanted(verdict) == BINS
    there = autoscaler(most=1000)(loaded(2000, cost=0.5, workers=BINS))
    assert there.target is None
    assert f"{BINS} of " in there.why


def test_the_true_rate_does_not_depend_on_how_busy_workers_are():
    for rate in (40, 400):
        (need,) = needs(loaded(rate).samples, 100.0)
        assert need.true_rate == pytest.approx(100, rel=0.01)
        assert need.workers == pytest.approx(1.0, rel=0.01)


def test_what_operators_need_follows_the_selectivities_and_adds_up():
    first, second = Configuration.initial(16, 2), Configuration.initial(16, 2)
    samples = tuple(
        sample(
            at,
            NOW - 5 * (9 - at),
            {
                "first": ([100] * 16, first.owners, 2, 0.01),
                "second": ([25] * 16, second.owners, 2, 0.02),
            },
        )
        for at in range(10)
    )
    found = needs(samples, 200.0)
    assert [(one.operator, one.selectivity) for one in found] == [("first", 1.0), ("second", 0.25)]
    assert [one.true_rate for one in found] == pytest.approx([100, 50])
    assert [one.workers for one in found] == pytest.approx([2.0, 1.0])
    assert parallelism(found, 0.75) == 4
    operators = {name: Standing(name, first, samples) for name in ("first", "second")}
    assert wanted(autoscaler(most=20)(View(NOW, samples, operators))) == math.ceil(320 * 0.015 / 0.7)


def test_an_operator_that_works_without_rows_counts_too():
    quiet = sample(0, NOW, {"windows": ([0] * BINS, Configuration.initial(BINS, 2).owners, 2, 0.0)}, rows=100)
    busy = replace(quiet.operators["windows"], busy=(0.5, 0.5))
    (need,) = needs([replace(quiet, operators={"windows": busy})], 200.0)
    assert need.true_rate is None
    assert need.workers == pytest.approx(2.0)
    assert needs([replace(quiet, cost=replace(quiet.cost, rows=0))], 200.0) == []


def test_a_step_that_would_undo_the_last_one_at_the_same_load_is_not_taken():
    said = (asked(12, 8, 380, 300),)
    verdict = autoscaler(most=20)(loaded(400, workers=12, said=said))
    assert verdict.declined
    assert "undo the last step" in verdict.why
    assert wanted(autoscaler(most=20)(loaded(400, workers=12, said=(asked(12, 8, 1000, 300),)))) == 7


def test_no_more_than_three_steps_for_one_change():
    busy = {"rate": 1000, "workers": 5}
    one, two, three = asked(3, 2, 400, 270), asked(4, 3, 700, 180), asked(5, 4, 990, 90)
    assert wanted(autoscaler(most=20)(loaded(**busy, said=(one, two)))) == 15
    verdict = autoscaler(most=20)(loaded(**busy, said=(one, two, three)))
    assert verdict.declined
    assert "3 steps were taken" in verdict.why
    # Another load, some time later, is another change; so is the other direction in between.
    late = tuple(replace(step, time=step.time - 600) for step in (one, two, three))
    assert autoscaler(most=20)(loaded(**busy, said=late)).declined
    other = (*late[:2], replace(late[2], facts={**late[2].facts, "rate": 500}))
    assert wanted(autoscaler(most=20)(loaded(**busy, said=other))) == 15
    down = asked(4, 6, 300, 180)
    assert wanted(autoscaler(most=20)(loaded(**busy, said=(one, down, three)))) == 15


def test_it_lets_some_time_pass_after_its_own_word_and_after_every_change_of_workers():
    scaler = autoscaler(most=20, cool_down="60 seconds")
    for outcome in ("asked", "advised", "declined", "refused"):
        said = (Said(outcome, 1, NOW - 20, facts={"rate": 10, "from": 3, "to": 4}),)
        verdict = scaler(loaded(1000, said=said))
        assert verdict.target is None
        assert "40.0 s of the cool-down" in verdict.why
    before, now = loaded(1000, workers=2), loaded(1000, workers=4)
    mixed = replace(now, samples=before.samples[:-5] + now.samples[-5:])
    assert "35.0 s of the cool-down" in scaler(mixed).why
    few = replace(now, samples=before.samples[:-2] + now.samples[-2:])
    assert "2 quiet epochs" in scaler(few).why


def test_down_only_if_it_pays():
    seen = loaded(100, workers=8, size=10**13)
    verdict = autoscaler(most=20)(seen)
    assert verdict.declined
    assert "not worth moving" in verdict.why
    assert wanted(autoscaler(most=20, pays_back="100 weeks")(seen)) == 2
    # Up without enough workers at any price, and at no other.
    assert wanted(autoscaler(most=20)(loaded(1000, workers=8, size=10**13))) == 15
    assert autoscaler(most=20)(loaded(700, workers=8, size=10**13)).declined
    assert wanted(autoscaler(most=20)(loaded(700, workers=8))) == 10


def test_the_limits_hold():
    verdict = autoscaler(most=6)(loaded(1000, workers=6))
    assert verdict.target is None
    assert "6 of 15 workers are there" in verdict.why
    assert wanted(autoscaler(most=6)(loaded(1000, workers=2))) == 6
    assert wanted(autoscaler(most=6, least=3)(loaded(10, workers=4))) == 3
    # Outside the limits it comes back, whatever was done last.
    assert wanted(autoscaler(most=6)(loaded(1000, workers=8, said=(asked(8, 6, 1000, 300),)))) == 6


def test_what_waits_at_the_sources_has_to_be_caught_up_with():
    assert wanted(autoscaler(most=50)(loaded(250, backlog=None))) is None
    assert wanted(autoscaler(most=50, catch_up="100 seconds")(loaded(250, backlog=50_000))) == 11


def test_a_forecast_counts_if_it_is_more_than_what_is_measured():
    rising = predicted(lambda at: 1000 if at > NOW + 30 else 0, ahead="1 minute", most=50)
    assert wanted(rising(loaded(250))) == 15
    assert predicted(lambda _: 10, ahead=0, most=50)(loaded(250)).target is None


def test_a_peak_is_not_forgotten_within_the_window():
    low, high = ([rate * 5 / BINS] * BINS for rate in (100, 300))
    falling = view([high] * 9 + [low] * 3, workers=5, period=5.0, cost=0.01)
    assert autoscaler(most=20)(falling).target is None
    assert wanted(autoscaler(most=20)(view([high] * 6 + [low] * 6, workers=5, period=5.0, cost=0.01))) == 2


def test_too_little_is_known():
    scaler = autoscaler(most=20)
    assert "not known yet" in scaler(loaded(1000, epochs=1)).why
    assert "not known yet" in scaler(loaded(1000, epochs=3)).why
    here = loaded(1000)
    configuration = here.operators["counts"].configuration
    running = Migration("m1", {}, {}, "", {"counts": configuration}, {"counts": configuration}, (1, NOW))
    assert "m1" in scaler(replace(here, migrations=(running,))).why


def test_the_time_in_which_the_query_was_stopped_does_not_count():
    here = loaded(300, workers=5)
    old = [replace(one, time=one.time - 1000, incarnation=0) for one in here.samples]
    new = [replace(one, incarnation=1) for one in here.samples]
    both = replace(here, samples=(*old, *new))
    assert both.rate(30) == pytest.approx(here.rate(30))
    assert autoscaler(most=20)(both).target is None


@given(
    st.lists(st.tuples(st.floats(0.01, 20), st.integers(0, 1000)), min_size=2, max_size=20),
    st.floats(0.1, 100),
    st.floats(0, 20),
)
def test_a_rate_is_the_rows_of_the_time(epochs, seconds, until):
    times = NOW - np.cumsum([0.0, *(gap for gap, _ in epochs)])[::-1]
    cells = {"counts": ([0] * BINS, Configuration.initial(BINS, 2).owners, 2, 0.0)}
    counts = [0, *(rows for _, rows in epochs)]
    samples = [
        sample(at, time, cells, rows=rows) for at, (time, rows) in enumerate(zip(times, counts, strict=True))
    ]
    seen = View(NOW, tuple(samples), {})
    found = seen.rate(seconds, until)
    if until >= NOW - times[0]:
        assert found is None
        return
    cumulative = np.interp([NOW - until - seconds, NOW - until], times, np.cumsum(counts))
    measured = min(seconds, NOW - until - times[0])
    assert found * measured == pytest.approx(cumulative[1] - cumulative[0], rel=1e-6, abs=1e-3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"most": 0}, "most: the number of workers"),
        ({"most": "many"}, "most: the number of workers"),
        ({"most": 3, "least": 4}, "least=4 is more than most=3"),
        ({"most": 3, "utilisation": 1.5}, "utilisation must be"),
        ({"most": 3, "utilisation": 0}, "utilisation must be a number above 0 and up to 1, not 0"),
        ({"most": 3, "utilisation": float("nan")}, "utilisation must be"),
        ({"most": 3, "tolerance": 1}, "tolerance must be"),
        ({"most": 3, "tolerance": -0.1}, "tolerance must be a number from 0 on and up to 0.9, not -0.1"),
        ({"most": 3, "window": 0}, "window must be"),
        ({"most": 3, "catch_up": "never"}, "catch_up: 'never'"),
        ({"most": 3, "cool_down": None}, "cool_down: None"),
        ({"most": 3, "steps": 0}, "steps must be"),
        ({"most": 3, "strategy": 1}, "strategy: 1"),
    ],
)
def test_wrong_options_are_named(options, words):
    with pytest.raises(InvalidInput, match=words):
        autoscaler(**options)


def test_wrong_options_of_a_forecast():
    with pytest.raises(InvalidInput, match="load must be a function"):
        predicted(5, ahead=0, most=3)
    with pytest.raises(InvalidInput, match="ahead: 'soon'"):
        predicted(lambda _: 5, ahead="soon", most=3)


def test_numbers_of_numpy_are_numbers():
    made = autoscaler(
        most=np.int64(3), utilisation=np.float32(0.5), tolerance=np.float64(0), window=np.int32(20)
    )
    assert (made.most, made.utilisation, made.tolerance, made.window) == (3, 0.5, 0.0, 20.0)
    assert wanted(predicted(lambda _: np.float32(1000), ahead=0, most=50)(loaded(250))) == 15
