"""Wrong input is refused, whoever is asked, with an error that names it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sterna.errors import InvalidInput
from sterna.planning import BoundedPlan, general, sequence, ssm
from sterna.planning.baselines import BASELINES

GOOD = {"assignment": [0, 0, 1], "sizes": [1, 2, 3], "loads": [1, 1, 1], "workers": 2, "tau": 1}


def sequential(assignment, sizes, loads, workers, tau):
    return sequence(assignment, sizes, loads, [workers], tau)


PLANNERS = {"ssm": ssm, "general": general, "sequence": sequential, **BASELINES}


@pytest.mark.parametrize("name", PLANNERS)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"loads": [1, math.nan, 1]}, "the load of bin 1 is nan: it must be a number from 0 on"),
        ({"loads": [1, 1, None]}, "the load of bin 2 is nan"),
        ({"loads": [1, 1]}, "there are 3 bins and 2 loads: each bin must have one"),
        ({"loads": [[1, 1, 1]]}, "the loads must be a list of numbers"),
        ({"loads": ["a", "b", "c"]}, "the loads must be numbers, one for each bin"),
        ({"loads": [1e308, 1e308, 1]}, "the loads add up to more than a number can hold"),
        ({"sizes": [1, 2, -3]}, "the size of bin 2 is -3.0"),
        ({"sizes": [1, math.inf, 3]}, "the size of bin 1 is inf"),
        ({"assignment": [0, -1, 1]}, "the worker of bin 1 is -1"),
        ({"assignment": [0, 0, 10**9]}, "the worker of bin 2 is 1000000000"),
        ({"assignment": []}, "the assignment must be a list of whole numbers"),
        ({"assignment": [0.0, 0.5, 1.0]}, "the assignment must be a list of whole numbers"),
        ({"workers": 0}, "the number of workers must be between 1 and"),
        ({"workers": 1.5}, "the number of workers must be an integer"),
        ({"tau": -0.1}, "tau is -0.1: it must be a number from 0 on"),
        ({"tau": math.nan}, "tau is nan"),
        ({"tau": "most"}, "tau is 'most'"),
        ({"tau": None}, "tau is None"),
        ({"tau": True}, "tau is True"),
    ],
)
def test_wrong_input_is_named(name, wrong, message):
    with pytest.raises(InvalidInput, match=message):
        PLANNERS[name](**{**GOOD, **wrong})


@pytest.mark.parametrize("planner", [ssm, general])
def test_who_leaves_is_any_or_the_last(planner):
    with pytest.raises(InvalidInput, match="leaving is 'first'"):
        planner(**GOOD, leaving="first")


def test_the_time_allowed_is_a_number():
    with pytest.raises(InvalidInput, match="seconds is -1"):
        general(**GOOD, seconds=-1)


@pytest.mark.parametrize("name", PLANNERS)
def test_numbers_of_numpy_are_numbers(name):
    exact = {"workers": np.int64(2), "tau": np.float32(1), "loads": np.ones(3, np.float32)}
    assert PLANNERS[name](**{**GOOD, **exact})


def test_a_plan_can_not_be_changed_by_accident():
    with pytest.raises(ValueError, match="read-only"):
        ssm(**GOOD).assignment[0] = 1


@pytest.mark.parametrize("name", PLANNERS)
def test_the_input_is_left_as_it_was(name):
    arrays = {key: np.array(GOOD[key]) for key in ("assignment", "sizes", "loads")}
    PLANNERS[name](**{**GOOD, **arrays})
    assert {key: array.tolist() for key, array in arrays.items()} == {key: GOOD[key] for key in arrays}
    assert all(array.flags.writeable for array in arrays.values())


def test_the_gap_is_what_may_be_saved_of_what_moves():
    plan = BoundedPlan(np.array([0]), moved=10.0, kept=0.0, tau=0.0, bound=9.0)
    assert plan.gap == pytest.approx(0.1)
    assert not plan.optimal
    assert BoundedPlan(np.array([0]), moved=0.0, kept=1.0, tau=0.0, bound=0.0).optimal
