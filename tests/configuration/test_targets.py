"""What is wished for: explicit sets, numbers of workers and of bins; resolved, rewritten, written down."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from configuration.test_configurations import configurations
from sterna import planning
from sterna.configuration import Configuration, moves
from sterna.errors import UpdateRefused
from sterna.statistics import Statistics
from sterna.targets import Target, as_target, balance, bins, explicit, rescale


def moved_bins(old, new):
    return int((old.owners != new.owners).sum())


@given(configurations(), st.integers(1, 12))
def test_rescaling_is_balanced(configuration, workers):
    workers = min(workers, configuration.bins)
    new = rescale(workers).resolve(configuration)
    owned = new.owned()
    assert (new.workers, new.bits, len(owned)) == (workers, configuration.bits, workers)
    assert owned.max() - owned.min() <= 1
    assert owned.sum() == configuration.bins


@given(configurations(), st.integers(1, 12))
def test_rescaling_moves_as_few_bins_as_any_balanced_configuration(configuration, workers):
    workers = min(workers, configuration.bins)
    held = np.zeros(max(workers, configuration.workers), int)
    held[: configuration.workers] = configuration.owned()
    base, extra = divmod(configuration.bins, workers)
    # What workers that stay hold beyond their share must go; those that hold most may keep one more.
    stays = np.sort(held[:workers])[::-1]
    quota = np.where(np.arange(workers) < extra, base + 1, base)
    least = configuration.bins - int(np.minimum(stays, quota).sum())
    assert moved_bins(configuration, rescale(workers).resolve(configuration)) == least


@given(configurations())
def test_rescaling_to_what_there_is_moves_nothing_once_it_is_balanced(configuration):
    balanced = rescale(configuration.workers).resolve(configuration)
    assert rescale(configuration.workers).resolve(balanced) == balanced


@given(configurations(), st.integers(0, 8))
def test_another_number_of_bins(configuration, bits):
    assert bins(1 << bits).resolve(configuration) == configuration.at_bits(bits)


@given(configurations(), st.data())
def test_explicit_sets_change_what_they_name_and_nothing_else(configuration, data):
    pairs = data.draw(
        st.dictionaries(
            st.integers(0, configuration.bins - 1), st.integers(0, configuration.workers - 1), min_size=1
        )
    )
    for wish in (pairs, list(pairs.items()), set(pairs.items())):
        new = as_target(wish).resolve(configuration)
        for b in range(configuration.bins):
            assert new.owners[b] == pairs.get(b, configuration.owners[b])


@given(configurations(max_bits=4), st.integers(0, 6), st.data())
def test_a_rewritten_set_means_the_same_where_bins_were_split(configuration, bits, data):
    pairs = data.draw(
        st.dictionaries(
            st.integers(0, configuration.bins - 1), st.integers(0, configuration.workers - 1), min_size=1
        )
    )
    target = explicit(pairs).numbered(configuration.bits)
    later = target.resolve(configuration.at_bits(bits))
    assert later.bits == bits
    if bits >= configuration.bits:
        assert moves(later, target.resolve(configuration)) == []
    else:
        width = 1 << (configuration.bits - bits)
        for b in range(later.bins):
            named = [w for old, w in sorted(pairs.items()) if old // width == b]
            assert later.owners[b] == (named[0] if named else configuration.owners[b * width])


@given(configurations(), st.data())
def test_targets_through_json_and_back(configuration, data):
    pairs = st.dictionaries(st.integers(0, configuration.bins - 1), st.integers(0, 7), min_size=1)
    target = data.draw(
        st.one_of(
            st.integers(1, 100).map(rescale),
            st.integers(0, 20).map(lambda bits: bins(1 << bits)),
            pairs.map(explicit),
            pairs.map(lambda some: explicit(some).numbered(configuration.bits)),
        )
    )
    assert Target.from_json(json.loads(json.dumps(target.to_json()))) == target


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"kind": "rescale"},
        {"kind": "rescale", "workers": 0},
        {"kind": "rescale", "workers": "2"},
        {"kind": "rescale", "workers": 2, "planer": "ssm"},
        {"kind": "bins", "bins": 8, "workers": 2},
        {"kind": "bins", "bins": 5},
        {"kind": "explicit"},
        {"kind": "explicit", "assignment": []},
        {"kind": "explicit", "assignment": [[0, 1]], "bins": 7},
        {"kind": "explicit", "assignment": [[0, None]]},
        {"kind": "explicit", "assignment": {"a": 1}},
        {"kind": "other"},
        {"kind": ["rescale"]},
        [],
        "rescale",
        None,
        5,
    ],
    ids=str,
)
def test_what_is_no_target_is_refused(data):
    with pytest.raises(UpdateRefused):
        Target.from_json(data)


def test_a_refusal_names_the_bin_as_the_user_did():
    target = explicit({9: 0}).numbered(3)
    with pytest.raises(UpdateRefused, match="bin 9 does not exist: there are 8 bins"):
        target.resolve(Configuration.initial(64, 2))


@pytest.mark.parametrize("planner", ["ssm", "general"])
@given(st.integers(1, 6), st.integers(1, 6), st.lists(st.integers(1, 9), min_size=32, max_size=32))
def test_a_planner_keeps_the_balance_and_lets_the_last_workers_leave(planner, before, after, rows):
    here = Configuration.initial(32, before)
    known = Statistics(np.arange(32) + 1.0, np.array(rows, float))
    new = rescale(after, planner, "least").resolve(here, known)
    even = getattr(planning, planner)(here.owners, known.bytes, known.rows, after, "least", leaving="last")
    assert new.workers == after
    load = np.bincount(new.owners, known.rows, after)
    assert load.max() <= (1 + even.tau) * load.mean() * (1 + 1e-9)


@pytest.mark.parametrize("how", [(), ("ssm", 1.0), ("general", 1.0)])
def test_there_is_a_bin_for_each_worker(how):
    here = Configuration.initial(8, 2)
    assert rescale(8, *how).resolve(here).workers == 8
    with pytest.raises(UpdateRefused, match=r"9 workers are more than the 8 bins.*bins\(16\)"):
        rescale(9, *how).resolve(here)


def test_where_there_are_more_workers_than_bins_some_may_go():
    assert rescale(3).resolve(Configuration.initial(2, 4)).owned().tolist() == [1, 0, 1]


def test_a_planner_moves_less_state_than_the_fewest_bins():
    sizes = np.array([100.0, 1, 1, 1, 1, 1, 1, 100])
    here = Configuration.initial(8, 2)
    known = Statistics(sizes, np.ones(8))
    few, least = (target.resolve(here, known) for target in (rescale(4), rescale(4, "general", 0.0)))
    assert sizes[here.owners != least.owners].sum() == 4
    assert sizes[here.owners != few.owners].sum() > 4


@pytest.mark.parametrize("target", [rescale(3, "ssm", 0.5), balance("general"), balance("ssm", "least")])
def test_planners_are_written_down(target):
    assert Target.from_json(json.loads(json.dumps(target.to_json()))) == target


def test_a_balance_that_can_not_be_had_is_refused_with_the_one_that_can():
    known = Statistics(np.ones(4), np.array([100.0, 1, 1, 1]))
    with pytest.raises(UpdateRefused, match="least tau"):
        balance("general", 0.1).resolve(Configuration.initial(4, 2), known)


def test_intervals_are_asked_of_bins_in_intervals():
    with pytest.raises(UpdateRefused, match="ssm has no plan: the bins of worker 0"):
        rescale(2, "ssm").resolve(Configuration(2, 2, np.array([0, 1, 0, 1], np.int32)))


@pytest.mark.parametrize(
    ("planner", "tau", "said"),
    [
        ("best", None, "there is no planner 'best'"),
        (None, 0.1, "tau is for a planner"),
        ("ssm", -1, "tau is -1"),
        ("ssm", float("nan"), "tau is nan"),
        ("ssm", True, "tau is True"),
        ("ssm", "most", "tau is 'most'"),
    ],
)
def test_planners_that_do_not_exist(planner, tau, said):
    with pytest.raises(UpdateRefused, match=said):
        rescale(2, planner, tau)


def test_a_plan_is_a_target_with_as_many_workers_as_it_names():
    here = Configuration.initial(8, 2)
    grown = as_target(planning.ssm(here.owners, np.ones(8), np.ones(8), 4, 0)).resolve(here)
    assert (grown.workers, grown.owned().tolist()) == (4, [2, 2, 2, 2])
    back = as_target(planning.ssm(grown.owners, np.ones(8), np.ones(8), 2, 0, leaving="last")).resolve(grown)
    assert (back.workers, back.owned().tolist()) == (2, [4, 4])


def test_a_plan_of_fewer_bins_is_one_for_their_parts():
    here = Configuration.initial(16, 2)
    plan = planning.ssm(here.at_bits(3).owners, np.ones(8), np.ones(8), 4, 0)
    assert as_target(plan).resolve(here).owned().tolist() == [4, 4, 4, 4]


def test_no_bin_is_left_at_a_worker_that_leaves():
    target = Target.from_json({"kind": "explicit", "workers": 1, "assignment": [[0, 0]]})
    with pytest.raises(UpdateRefused, match="bin 2 is at worker 1, and there will be 1 workers"):
        target.resolve(Configuration.initial(4, 2))
