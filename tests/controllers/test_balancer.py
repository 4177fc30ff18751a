"""The balancer as a function of made-up statistics."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.made_up import NOW, view
from sterna import planning, strategies
from sterna.configuration import Configuration
from sterna.controllers import Said, balancer
from sterna.errors import InvalidInput
from sterna.keys import Keys
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


HOT = [5000] + [100] * 15
ALONE = [0] + [1, 2, 3] * 5


def keys(*rows, total):
    """Keys with these rows in the first bin of sixteen, as far apart there as can be."""
    hashes = [at * 2**60 // len(rows) for at in range(len(rows))]
    return Keys(np.array(hashes, np.uint64), np.array(rows, float), 0.0, total)


@pytest.mark.parametrize(
    ("known", "words", "facts"),
    [
        # Of 6,500 rows, four workers have 1,625 each, and 1,787 at the most.
        (
            keys(4900, total=6500),
            "one key has 75 % of the rows: no number of bins parts it",
            {"key": 0, "share": 0.754},
        ),
        (keys(1700, 1600, 1500, total=6500), "more bins may part it, as sterna.bins(64) would", {"bins": 64}),
        (Keys.none(), "more bins may part it, as sterna.bins(64) would", {"bins": 64}),
    ],
    ids=["one key", "some keys", "unknown"],
)
def test_what_is_said_of_a_bin_that_is_too_hot_depends_on_its_keys(known, words, facts):
    verdict = balancer()(view([HOT] * 3, owners=ALONE, keys=known))
    assert verdict.declined
    assert "no plan helps: bin 0 alone has 3.08 times the mean of a worker" in verdict.why
    assert words in verdict.why
    assert facts.items() <= verdict.facts.items()
    assert ("key" in verdict.facts) == ("key" in facts)


def test_a_key_that_dominates_its_bin_is_parted_from_its_neighbours_where_that_helps():
    # The key is within the limit of 1,260 for a worker; its bin, 2,000, is not.
    load = [2000] + [200] * 13 + [0] * 2
    verdict = balancer(above=1.15)(view([load] * 3, owners=ALONE, keys=keys(1200, total=4600)))
    assert verdict.declined
    assert (
        "in which one key has 26 % of the rows: sterna.bins(256) parts it from its neighbours" in verdict.why
    )
    assert verdict.facts["bins"] == 256


def test_keys_so_near_to_each_other_that_nothing_parts_them():
    near = Keys(np.array([0, 1], np.uint64), np.array([1200.0, 800.0]), 0.0, 4600)
    load = [2000] + [200] * 13 + [0] * 2
    verdict = balancer(above=1.15)(view([load] * 3, owners=ALONE, keys=near))
    assert "others are so near to it that no number of bins parts them" in verdict.why


def test_where_a_plan_helps_as_far_as_a_key_allows_both_are_said():
    verdict = balancer()(view([[5000, *[100] * 15]] * 3, keys=keys(4900, total=6500)))
    assert verdict.target is not None
    assert "bins moved it is 3.08 times: bin 0 alone has" in verdict.why
    assert "no number of bins parts it" in verdict.why


@pytest.mark.parametrize(
    ("plan", "load", "owners", "words"),
    [
        (planning.ssm, HOT, [0] + [1] * 5 + [2] * 5 + [3] * 5, "bin 0 alone has 3.077 times the mean"),
        (planning.general, HOT, ALONE, "bin 0 alone has 3.077 times the mean"),
        (planning.ssm, [400, 100, 100, 100] * 4, [0, 1, 2, 3] * 4, "the bins of worker 0 are no interval"),
    ],
    ids=["ssm", "general", "no intervals"],
)
def test_where_there_is_no_plan_it_says_why_and_is_asked_again(plan, load, owners, words):
    verdict = balancer(plan=plan)(view([load] * 3, owners=owners))
    assert verdict.target is None
    assert verdict.declined
    assert verdict.operator == "counts"
    assert "there is no plan: " in verdict.why
    assert words in verdict.why


@pytest.mark.parametrize(
    ("plan", "most"),
    [(None, 1.05), (planning.general, 1.05), (planning.ssm, 1.34)],
    ids=["default", "general", "ssm"],
)
def test_the_least_tau(plan, most):
    verdict = balancer(plan=plan, tau="least")(view([[600] * 4 + [100] * 12] * 3))
    after = verdict.target.resolve(Configuration.initial(16, 4))
    loads = np.bincount(after.owners, [600] * 4 + [100] * 12)
    assert loads.max() / loads.mean() <= most
    assert verdict.facts["after"] == pytest.approx(loads.max() / loads.mean(), abs=0.03)


def promising(came, *, before=2.0, after=1.05, ago=20.0, **more):
    """A view in which a plan has promised to make the fullest worker's load ``after``, and this came."""
    load = np.array([came] * 4 + [(4 - came) / 3] * 12) * 1000
    facts = {"before": before, "after": after, **more}
    said = (Said("asked", 1, NOW - ago, "counts", {"assignment": [[0, 0], [15, 3]]}, facts),)
    return view([load] * 6, said=said, settled={"counts": NOW - 5})


def test_a_plan_that_did_not_bring_what_it_promised_is_told_at_once_and_the_next_waits_longer():
    seen = promising(1.6)
    first = balancer(cool_down="30 seconds")(seen)
    assert first.declined
    assert "promised 1.05 times the mean, and 1.60 times came" in first.why
    assert first.facts == {"promised": 1.05, "came": 1.6, "failed": 1}
    told = (*seen.said, Said("declined", 3, NOW - 2, "counts", None, first.facts))
    assert (
        "58.0 s of the cool-down are left" in balancer(cool_down="30 seconds")(replace(seen, said=told)).why
    )
    again = balancer(cool_down=1)(replace(seen, said=told))
    assert again.target is not None
    assert again.facts["failed"] == 1
    third = balancer(cool_down=1)(promising(1.6, failed=2))
    assert third.facts["failed"] == 3


@pytest.mark.parametrize(
    "seen",
    [
        promising(1.25),  # more than half of it came
        promising(1.6, after=1.58),  # no more was promised
        replace(promising(1.6), settled={}),  # it has not ended
        replace(promising(1.6), settled={"counts": NOW - 1}),  # too early to tell
        replace(promising(1.6), said=()),  # nothing was promised
        # Somebody has moved the bins since.
        replace(promising(1.6), said=(replace(promising(1.6).said[0], target={"assignment": [[0, 1]]}),)),
    ],
    ids=range(6),
)
def test_no_promise_was_broken(seen):
    verdict = balancer(cool_down=0)(seen)
    assert verdict.target is not None
    assert "promised" not in verdict.why


def test_a_load_that_moved_after_a_plan_had_worked_is_no_failure():
    level, moved = [100] * 16, [100] * 4 + [400] * 4 + [100] * 8
    said = promising(1.6).said
    seen = view([level] * 4 + [moved] * 3, said=said, settled={"counts": NOW - 6})
    assert balancer(cool_down=0)(seen).target is not None


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
        ({"tau": -1}, "tau must be a number from 0 on, or 'least', not -1"),
        ({"tau": "most"}, "tau must be a number from 0 on, or 'least', not 'most'"),
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


def test_numbers_of_numpy_are_numbers():
    made = balancer(above=np.float32(1.5), tau=np.float32(0.25), cool_down=np.float32(7))
    assert (made.above, made.tau, made.cool_down) == (1.5, 0.25, 7.0)
    assert balancer(above=1.05, tau="least").tau == "least"
