"""The balancer as a function of made-up statistics."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.made_up import NOW, view
from sterna import strategies
from sterna.configuration import Configuration
from sterna.controllers import Said, balancer
from sterna.errors import InvalidInput
from sterna.migration import Migration

EVEN = [100] * 16
SKEWED = [400] * 4 + [100] * 12


def test_what_is_level_stays():
    verdict = balancer()(view([EVEN] * 5))
    assert verdict.target is None
    assert not verdict.declined
    assert "1.00 times the mean" in verdict.why


def test_a_worker_with_more_than_its_share_gives_bins_away():
    verdict = balancer(strategy=strategies.fluid())(view([SKEWED] * 3))
    owners = Configuration.initial(16, 4).owners.copy()
    for bin_, worker in verdict.target.assignment:
        owners[bin_] = worker
    loads = np.bincount(owners, SKEWED)
    assert loads.max() / loads.mean() <= 1.2
    assert verdict.operator == "counts"
    assert verdict.strategy == strategies.fluid()
    assert "worker 0 has 2.29 times the mean load" in verdict.why
    assert verdict.facts["after"] < 1.2 < verdict.facts["before"]


def test_it_waits_until_it_has_been_so_for_some_epochs():
    for before in (1, 2):
        assert balancer()(view([EVEN] * 3 + [SKEWED] * before)).target is None
    assert balancer(epochs=2)(view([EVEN, SKEWED, SKEWED])).target is not None
    assert "got rows in 2 epochs" in balancer()(view([SKEWED] * 2)).why
    # One quiet epoch is enough to begin again.
    assert balancer()(view([SKEWED, EVEN, SKEWED])).target is None


def test_epochs_without_rows_tell_nothing_and_are_left_out():
    assert balancer()(view([SKEWED, [0] * 16, SKEWED, [0] * 16, SKEWED])).target is not None


def test_between_what_it_levels_to_and_what_makes_it_act_it_stays():
    slightly = [115] * 16 + [100] * 48
    assert balancer(above=1.2)(view([slightly] * 3)).target is None
    assert balancer(above=1.05, tau=0.0)(view([slightly] * 3)).target is not None


@pytest.mark.parametrize(
    ("others", "rests"),
    [
        ({"settled": {"counts": NOW - 10}}, True),
        ({"settled": {"counts": NOW - 40}}, False),
        ({"settled": {"another": NOW - 10}}, False),
        ({"said": (Said("declined", 3, NOW - 10, "counts"),)}, True),
        ({"said": (Said("asked", 3, NOW - 40, "counts"),)}, False),
        ({"said": (Said("asked", 3, NOW - 10, "another"),)}, False),
        ({"said": (Said("refused", 3, NOW - 10, None),)}, True),
    ],
)
def test_after_a_move_and_after_its_own_word_it_lets_some_time_pass(others, rests):
    verdict = balancer(cool_down="30 seconds")(view([SKEWED] * 3, **others))
    assert (verdict.target is None) is rests
    if rests:
        assert "20.0 s of the cool-down are left" in verdict.why


def test_bytes_that_do_not_pay_are_not_moved():
    seen = view([SKEWED] * 3, size=10**12)
    verdict = balancer()(seen)
    assert verdict.target is None
    assert verdict.declined
    assert "not worth moving" in verdict.why
    # The same bytes pay if the gain lasts long enough, or is large enough.
    assert balancer(pays_back="10 weeks")(seen).target is not None
    assert balancer()(view([SKEWED] * 3, size=10**12, cost=10.0)).target is not None


def test_a_bin_that_is_hot_by_itself_can_not_be_parted_by_moving():
    verdict = balancer()(view([[5000] + [100] * 15] * 3, owners=[0] + [1, 2, 3] * 5))
    assert verdict.declined
    assert "bin 0 alone has" in verdict.why
    assert "more bins may part it" in verdict.why
    coarse = balancer(above=1.05, tau=0.0)(
        view([[100] * 16] * 3, workers=3, owners=[0] * 6 + [1] * 5 + [2] * 5)
    )
    assert coarse.declined
    assert coarse.why.endswith("no plan helps")


def test_a_few_rows_are_chance():
    verdict = balancer()(view([[2] * 4 + [1] * 12] * 3))
    assert verdict.target is None
    assert "too few" in verdict.why


def test_while_something_moves_and_with_one_worker_it_stays():
    here = view([SKEWED] * 3)
    configuration = here.operators["counts"].configuration
    running = Migration("m1", {}, {}, "", {"counts": configuration}, {"counts": configuration}, (1, NOW))
    assert "m1" in balancer()(replace(here, migrations=(running,))).why
    assert "one worker" in balancer()(view([SKEWED] * 3, workers=1)).why


def test_a_plan_of_ones_own():
    asked = []

    def plan(assignment, sizes, loads, workers, tau):
        asked.append((assignment.tolist(), sizes.tolist(), round(loads[0]), workers, tau))
        return SimpleNamespace(assignment=np.arange(16) % workers)

    verdict = balancer(plan=plan, tau=0.05)(view([SKEWED] * 3, size=700))
    ((owners, sizes, load, workers, tau),) = asked
    assert owners == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
    assert sizes == pytest.approx([700] * 16)
    assert load == pytest.approx(400, rel=0.05)
    assert (workers, tau) == (4, 0.05)
    assert len(verdict.target.assignment) == 12


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (None, "assignment of 16 whole numbers"),
        (SimpleNamespace(assignment=[0] * 15), "assignment of 16 whole numbers"),
        (SimpleNamespace(assignment=[0.5] * 16), "assignment of 16 whole numbers"),
        (SimpleNamespace(assignment=[4] * 16), "worker 4, and there are 4"),
        (SimpleNamespace(assignment=[-1] * 16), "worker -1, and there are 4"),
    ],
)
def test_a_plan_that_is_none(plan, words):
    with pytest.raises(InvalidInput, match=words):
        balancer(plan=lambda *_: plan)(view([SKEWED] * 3))


@given(
    st.lists(st.integers(0, 2000), min_size=32, max_size=32),
    st.lists(st.integers(0, 3), min_size=32, max_size=32),
)
def test_whatever_it_wants_makes_the_fullest_worker_less_full(load, owners):
    seen = view([load] * 3, owners=owners)
    verdict = balancer()(seen)
    if verdict.target is None:
        return
    after = verdict.target.resolve(seen.operators["counts"].configuration)
    # Loads are known to a tenth.
    before, then = (np.bincount(one, load, 4).max() for one in (owners, after.owners))
    assert then < 1.1 * before
    assert balancer()(view([load] * 3, owners=after.owners)).target is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"above": 1.0}, "above must be"),
        ({"above": "much"}, "above must be"),
        ({"above": 1.1, "tau": 0.2}, "above=1.1 must be more than"),
        ({"tau": -1}, "tau must be"),
        ({"epochs": 0}, "epochs must be"),
        ({"epochs": 2.5}, "epochs must be"),
        ({"cool_down": "soon"}, "cool_down: 'soon' is not a duration"),
        ({"pays_back": -1}, "pays_back: a duration"),
        ({"plan": 3}, "plan must be"),
        ({"strategy": "fluid"}, "strategy: 'fluid'"),
        ({"operator": 3}, "operator must be a name"),
        ({"name": ""}, "name must be a name"),
    ],
)
def test_wrong_options_are_named(options, words):
    with pytest.raises(InvalidInput, match=words):
        balancer(**options)
