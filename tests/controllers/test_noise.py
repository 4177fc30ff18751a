"""A load that is noisy: no oscillation while its mean stays, and at most three decisions when it changes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.made_up import NOW, sample
from controllers.simulated import hour
from sterna.configuration import Configuration
from sterna.controllers import View, autoscaler
from sterna.controllers.load import Load, measured

BASES = (45, 63, 70, 77, 90, 98, 105, 120)
PHASE = 60
BUSY = 0.02


def phases(steps, count):
    return [[step for step in steps if at * PHASE <= step[0] < (at + 1) * PHASE] for at in range(count)]


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.2, 0.3])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_phase_of_a_noisy_hour_has_steps_both_ways_or_more_than_three(noise, seed):
    for base in BASES:
        rates = [rate for rate in (base, 3 * base) * 3 for _ in range(PHASE)]
        seen, steps = hour(autoscaler(most=60), rates, noise=noise, seed=seed)
        for number, during in enumerate(phases(steps, 6)):
            assert len(during) <= 3, (base, during)
            assert len({to > was for _, was, to in during}) <= 1, (base, during)
            # In the end there are enough workers, and not many too many.
            need = rates[number * PHASE] * BUSY
            assert need / 0.9 <= seen[(number + 1) * PHASE - 1] <= math.ceil(need / 0.45), (base, number)


@pytest.mark.parametrize("noise", [0.2, 0.3])
def test_a_steady_load_however_noisy_is_left_alone_for_hours(noise):
    for base in BASES:
        _, steps = hour(autoscaler(most=60), [base] * 1000, noise=noise, seed=base)
        assert len({to > was for _, was, to in steps}) <= 1, (base, steps)
        assert len(steps) <= 3, (base, steps)


@pytest.mark.parametrize("seconds", [1.0, 60.0])
def test_short_and_long_epochs(seconds):
    rates = [rate for rate in (100, 300, 100) for _ in range(int(1800 / seconds))]
    seen, steps = hour(autoscaler(most=60), rates, noise=0.2, seed=5, seconds=seconds)
    each = len(rates) // 3
    for number in range(3):
        during = [step for step in steps if number * each <= step[0] < (number + 1) * each]
        assert 1 <= len(during) <= 3
        assert len({to > was for _, was, to in during}) == 1
    assert seen[2 * each - 1] >= 8


def test_a_change_is_followed_soon():
    for noise, within in ((0.0, 4), (0.2, 5), (0.3, 7)):
        _, steps = hour(autoscaler(most=60), [100] * 60 + [300] * 30, noise=noise, seed=9)
        assert 60 < next(epoch for epoch, was, to in steps if epoch >= 60 and to > was) <= 60 + within


@pytest.mark.parametrize("noise", [0.0, 0.2, 0.3])
def test_a_short_peak_is_followed_down_again(noise):
    rates = [100] * 60 + [300] * 8 + [100] * 60
    for seed in range(3):
        seen, steps = hour(autoscaler(most=60), rates, noise=noise, seed=seed)
        assert max(seen[60:80]) >= 7
        assert seen[-1] <= 4
        assert len([step for step in steps if step[0] >= 60]) <= 4


def told(rates, now=NOW, period=10.0):
    """A view of epochs with these rows a second."""
    cells = {"counts": ([0] * 16, Configuration.initial(16, 2).owners, 2, 0.0)}
    times = [now - period * back for back in range(len(rates), -1, -1)]
    rows = [0, *(round(rate * period) for rate in rates)]
    return View(
        now,
        tuple(
            sample(at, time, cells, rows=many)
            for at, (time, many) in enumerate(zip(times, rows, strict=True))
        ),
        {},
    )


def test_the_load_is_the_mean_since_its_last_change():
    found = measured(told([300] * 20 + [100] * 12))
    assert replace(found, apart=None) == Load(100, 0.0, 12, 120)
    assert found.apart > 100
    chance = np.random.default_rng(0)
    noisy = measured(told([*chance.uniform(240, 360, 40), *chance.uniform(80, 120, 20)]))
    assert noisy.epochs == pytest.approx(20, abs=1)
    assert noisy.rate == pytest.approx(100, rel=noisy.band)
    assert 0.05 < noisy.noise < 0.2


def test_time_without_epochs_is_time_without_rows():
    late = told([300] * 20)
    assert measured(late).rate == 300
    later = View(NOW + 5, late.samples, {})
    assert measured(later).rate == 300
    idle = measured(View(NOW + 40, late.samples, {}))
    assert (idle.rate, idle.seconds) == (0, 40)
    assert measured(told([])) is None


@given(
    st.lists(st.floats(1, 1e6), min_size=1, max_size=80),
    st.floats(0.01, 100),
)
def test_whatever_the_rates_the_load_is_among_them(rates, period):
    found = measured(told(rates, period=period))
    rows = [round(rate * period) / period for rate in rates]
    assert min(rows) * 0.999 <= found.rate <= max(rows) * 1.001
    assert 0 <= found.noise <= 3
    assert 0 < found.epochs <= 64.5


def test_loads_whose_difference_the_noise_explains_are_alike():
    noisy, even = Load(100, 0.2, 9), Load(100, 0.0, 9)
    assert noisy.alike(120, 9)
    assert not noisy.alike(200, 9)
    assert noisy.alike(150, 1)
    assert not even.alike(101, 1)
