"""What is wished for: explicit sets, a number of workers, a number of bins; resolved, rewritten, written down."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from configuration.test_configurations import configurations
from sterna.configuration import Configuration, moves
from sterna.errors import UpdateRefused
from sterna.targets import Target, as_target, bins, explicit, rescale


def moved_bins(old, new):
    return int((old.owners != new.owners).sum())


@given(configurations(), st.integers(1, 12))
def test_rescaling_is_balanced(configuration, workers):
    new = rescale(workers).resolve(configuration)
    owned = new.owned()
    assert (new.workers, new.bits, len(owned)) == (workers, configuration.bits, workers)
    assert owned.max() - owned.min() <= 1
    assert owned.sum() == configuration.bins


@given(configurations(), st.integers(1, 12))
def test_rescaling_moves_as_few_bins_as_any_balanced_configuration(configuration, workers):
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
