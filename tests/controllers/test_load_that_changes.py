"""A load that triples and falls back, over an hour of simulated time on the twin, with the autoscaler."""

from __future__ import annotations

import itertools
import math
import random
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.streams import rows
from sterna.controllers import autoscaler, predicted
from sterna.targets import rescale
from sterna.testing import Clock
from twin import small

SECONDS, BUSY = 10, 0.02
"""An epoch every so many seconds; a row keeps a worker busy for so long."""


def run(path, rates, scaler, noise=0.0, work=None, workers=2, seed=7):
    """The number of workers after each epoch; and the twin, closed."""
    clock, chance = Clock(), random.Random(seed)
    twin = None

    def busy(_, count):
        return work(count, twin.coordinator.last.configurations["counts"].workers) if work else count * BUSY

    twin = small.start(
        small.counts(), path, bins=64, workers=workers, clock=clock, controllers=[scaler], work=busy
    )
    seen = []
    for rate in rates:
        clock.move(SECONDS)
        came = round(rate * SECONDS * (1 + noise * chance.uniform(-1, 1)))
        twin.epoch(rows(np.full(64, came // 64)))
        seen.append(twin.coordinator.last.configurations["counts"].workers)
    twin.close()
    return seen, twin


def asked(twin):
    return [event for event in twin.coordinator.history.said() if event["outcome"] == "asked"]


@pytest.mark.parametrize(("noise", "seed"), [(0.1, 7), (0.2, 8), (0.3, 9)])
def test_three_decisions_at_the_most_for_each_change_and_no_oscillation_in_an_hour(tmp_path, noise, seed):
    minutes = [10, 10, 10, 10, 10, 10]
    loads = [100, 300, 100, 300, 100, 300]
    rates = [load for load, long in zip(loads, minutes, strict=True) for _ in range(long * 60 // SECONDS)]
    assert len(rates) * SECONDS == 3600
    seen, twin = run(tmp_path, rates, autoscaler(most=32), noise=noise, seed=seed)
    each = len(rates) // len(loads)
    for number, load in enumerate(loads):
        during = seen[number * each : (number + 1) * each]
        epochs = range(number * each, (number + 1) * each)
        assert len([one for one in asked(twin) if one["epoch"] in epochs]) <= 3
        steps = [b - a for a, b in itertools.pairwise(during) if a != b]
        assert all(step > 0 for step in steps) or all(step < 0 for step in steps)
        need = load * BUSY
        assert math.ceil(need / 0.85) <= during[-1] <= math.ceil(need / 0.5)
    assert len({one["name"] for one in twin.coordinator.history.told(twin.coordinator.last)}) == len(
        asked(twin)
    )


@given(st.floats(20, 400), st.floats(0, 1.5), st.integers(1, 12))
@settings(max_examples=6)
def test_at_a_steady_load_it_comes_to_rest_even_where_more_workers_help_little(rate, friction, workers):
    with tempfile.TemporaryDirectory() as folder:
        seen, twin = run(
            folder,
            [rate] * 90,
            autoscaler(most=40),
            work=lambda count, there: count * BUSY * there**friction / 2,
            workers=workers,
        )
        steps = [b - a for a, b in itertools.pairwise([workers, *seen]) if a != b]
        assert len(steps) == len(asked(twin)) <= 3
        assert all(step > 0 for step in steps) or all(step < 0 for step in steps)
        assert len(set(seen[45:])) == 1


def test_a_predicted_load_is_met_before_it_comes(tmp_path):
    began = Clock().now
    scaler = predicted(lambda at: 300 if at - began > 600 else 100, ahead="2 minutes", most=32)
    seen, _ = run(tmp_path, [100] * 60 + [300] * 12, scaler)
    assert seen[40] == 3
    assert seen[59] == 9
    assert seen[-1] == 9


def test_an_idle_stream_needs_no_workers_but_the_least(tmp_path):
    seen, _ = run(tmp_path, [200] * 12 + [0] * 24, autoscaler(most=8, least=2), workers=6)
    assert seen[-1] == 2


def test_what_was_decided_before_a_restart_is_not_forgotten(tmp_path):
    scaler = autoscaler(most=32)
    _, first = run(tmp_path, [300] * 8, scaler)
    (step,) = asked(first)
    assert step["facts"]["to"] == 9
    clock = Clock(first.coordinator.clock.now + 600)
    again = small.start(
        small.counts(), tmp_path, clock=clock, controllers=[scaler], work=lambda _, n: n * BUSY
    )
    found = []
    for _ in range(3):
        again.migrate(rescale(2))
        for _ in range(12):
            clock.move(SECONDS)
            again.epoch(rows(np.full(64, 3000 // 64)))
        found.append(again.coordinator.last.configurations["counts"].workers)
    again.close()
    # Two more of the three steps that this load may take, and then it lets the user be.
    assert found == [9, 9, 2]
    assert len(asked(again)) == 3
    assert again.coordinator.history.said()[-1]["outcome"] == "declined"


@pytest.mark.parametrize("load", [float("nan"), -1.0, None, "many", True])
def test_a_forecast_that_is_no_rate_switches_it_off(tmp_path, load):
    _, twin = run(tmp_path, [100] * 12, predicted(lambda _: load, ahead=0, most=8))
    (off,) = twin.coordinator.history.said()
    assert off["outcome"] == "off"
    assert "load must return rows a second" in off["reason"]
