"""Wrong input is refused, whoever is asked, with an error that names it."""

from __future__ import annotations

import math
import os
import subprocess
import sys

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
        ({"loads": [1, 1, None]}, "the load of bin 2 is None"),
        ({"loads": [1, "1", 1]}, "the load of bin 1 is '1': it must be a number from 0 on"),
        ({"loads": [1, b"1", 1]}, "the load of bin 1 is b'1'"),
        ({"loads": np.array(["1", "1", "1"])}, "the load of bin 0 is '1'"),
        ({"loads": [1, 10**400, 1]}, "the load of bin 1 is 1000"),
        ({"loads": [1, 1j, 1]}, "the load of bin 1 is 1j"),
        ({"loads": np.ma.array([1, 1, 1], mask=[0, 1, 0])}, "the load of bin 1 is masked"),
        ({"loads": (1 for _ in range(3))}, "the loads must be a list of numbers"),
        ({"loads": None}, "the loads must be a list of numbers"),
        ({"loads": [1, 1]}, "there are 3 bins and 2 loads: each bin must have one"),
        ({"loads": [[1, 1, 1]]}, "the loads must be a list of numbers"),
        ({"loads": [[1], [1, 2], [1]]}, r"the load of bin 0 is \[1\]"),
        ({"loads": [1e308, 1e308, 1]}, "the loads add up to more than a number can hold"),
        ({"sizes": [1, 2, -3]}, "the size of bin 2 is -3: it must be a number from 0 on"),
        ({"sizes": np.array([1, 2, -3.0])}, "the size of bin 2 is -3.0"),
        ({"sizes": [1, math.inf, 3]}, "the size of bin 1 is inf"),
        ({"assignment": [0, -1, 1]}, "the worker of bin 1 is -1"),
        ({"assignment": [0, 0, 10**9]}, "the worker of bin 2 is 1000000000"),
        ({"assignment": []}, "the assignment must be a list of whole numbers"),
        ({"assignment": np.ma.array([0, 0, 1], mask=[0, 0, 1])}, "the worker of bin 2 is masked"),
        ({"assignment": [0.0, 0.5, 1.0]}, "the assignment must be a list of whole numbers"),
        ({"assignment": [0, None, 1]}, "the worker of bin 1 is None: the assignment must be a list of whole"),
        ({"assignment": [0, 0, math.nan]}, "the worker of bin 2 is nan"),
        ({"assignment": np.array([0.0, 0.5, 1.0])}, "the worker of bin 1 is 0.5"),
        ({"assignment": [0.0, 0.0, 1.0]}, "the worker of bin 0 is 0.0"),
        ({"assignment": ["0", "0", "1"]}, "the worker of bin 0 is '0'"),
        ({"assignment": [0, [0], [1, 1]]}, r"the worker of bin 1 is \[0\]"),
        ({"assignment": [0, 0, 10**30]}, "the worker of bin 2 is 1000000"),
        ({"assignment": [True, True, False]}, "the worker of bin 0 is True"),
        ({"loads": [1, np.complex64(1), 1]}, "the load of bin 1 is"),
        ({"loads": [1, np.ma.masked, 1]}, "the load of bin 1 is masked"),
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
    plan = BoundedPlan(np.array([0]), moved=10.0, kept=0.0, tau=0.0, workers=1, bound=9.0)
    assert plan.gap == pytest.approx(0.1)
    assert not plan.optimal
    assert BoundedPlan(np.array([0]), moved=0.0, kept=1.0, tau=0.0, workers=1, bound=0.0).optimal


def test_arrays_without_a_masked_entry_are_arrays():
    sizes = np.ma.array([1, 2, 3], mask=[0, 0, 0])
    assert ssm(**{**GOOD, "sizes": sizes}).moved == ssm(**GOOD).moved


@pytest.mark.parametrize("counts", [3, "34", None])
def test_a_sequence_takes_a_list_of_counts(counts):
    with pytest.raises(InvalidInput, match=r"counts is .*: it must be a list"):
        sequence([0, 0, 1], [1] * 3, [1] * 3, counts, 1)


EVERYWHERE = """
import numpy as np
from sterna.planning import Matrix, baselines, general, mtm, precompute, sequence, ssm

random = np.random.default_rng(3)
for count, old, new in ((12, 3, 4), (48, 6, 6), (64, 8, 5)):
    loads, sizes = random.uniform(0.5, 2, count), random.random(count).round(1)
    owners = np.arange(count) * old // count
    for planner in (ssm, general, *baselines.BASELINES.values()):
        print(planner(owners, sizes, loads, new, 0.3).assignment.tolist())
print([plan.assignment.tolist() for plan in sequence([0] * 8 + [1] * 8, [1] * 16, [1] * 16, [3, 4], 0.5)])
values = precompute(sizes[:24], loads[:24], Matrix.learnt([(2, 3), (3, 4), (4, 2)]), 0.5, 0.8)
print(mtm([0] * 12 + [1] * 12, sizes[:24], loads[:24], 3, values).assignment.tolist())
"""


def test_the_same_input_gives_the_same_plans_in_another_process():
    found = [
        subprocess.run(
            [sys.executable, "-c", EVERYWHERE],
            env={**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, threads in (("1", "1"), ("2", "2"))
    ]
    assert found[0] == found[1]
    assert len(found[0].splitlines()) == 3 * (2 + len(BASELINES)) + 2
