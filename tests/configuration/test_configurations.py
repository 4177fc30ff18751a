"""Who owns which bin, in how many bins, and what must travel between two configurations."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna.configuration import HASHES, MAX_BITS, Configuration, bits_of, moves
from sterna.errors import InvalidInput

hashes = st.lists(st.integers(0, HASHES - 1), min_size=1, max_size=50).map(
    lambda some: np.array(some, np.uint64)
)


@st.composite
def configurations(draw, max_bits=6, max_workers=8):
    bits = draw(st.integers(0, max_bits))
    workers = draw(st.integers(1, max_workers))
    owners = draw(st.lists(st.integers(0, workers - 1), min_size=1 << bits, max_size=1 << bits))
    return Configuration(bits, workers, np.array(owners, np.int32))


@given(st.integers(0, 12), st.integers(1, 40))
def test_at_first_bins_are_spread_evenly_in_intervals(bits, workers):
    configuration = Configuration.initial(1 << bits, workers)
    owned = configuration.owned()
    assert owned.sum() == 1 << bits
    assert owned.max() - owned.min() <= 1
    assert (np.diff(configuration.owners) >= 0).all()


@given(configurations(), hashes)
def test_a_hash_goes_to_the_owner_of_its_bin(configuration, some):
    expected = [configuration.owners[int(h) >> (64 - configuration.bits)] for h in some]
    assert configuration.route(some).tolist() == expected


@given(configurations())
def test_the_ranges_of_all_workers_are_all_hashes(configuration):
    ranges = sorted((lo, hi, w) for w in range(configuration.workers) for lo, hi in configuration.ranges(w))
    assert ranges[0][0] == 0
    assert ranges[-1][1] == HASHES
    for (_, hi, mine), (lo, _, other) in itertools.pairwise(ranges):
        assert hi == lo
        assert mine != other  # adjacent ranges of one worker are one


@given(configurations())
def test_through_json_and_back(configuration):
    again = Configuration.from_json(json.loads(json.dumps(configuration.to_json())))
    assert again == configuration
    assert hash(again) == hash(configuration)


def test_json_stays_short_however_many_bins_there_are():
    assert len(json.dumps(Configuration.initial(1 << MAX_BITS, 4).to_json())) < 200


@given(configurations(), st.integers(0, 4), hashes)
def test_more_bins_are_the_same_function(configuration, more, some):
    finer = configuration.at_bits(configuration.bits + more)
    assert finer.route(some).tolist() == configuration.route(some).tolist()
    assert finer.at_bits(configuration.bits) == configuration
    assert moves(configuration, finer) == []


@given(configurations(), st.integers(0, 6))
def test_merged_bins_go_to_the_owner_of_the_first(configuration, bits):
    bits = min(bits, configuration.bits)
    coarser = configuration.at_bits(bits)
    width = 1 << (configuration.bits - bits)
    assert coarser.owners.tolist() == configuration.owners[::width].tolist()


@given(configurations(), configurations(), hashes)
def test_moves_are_what_differs_and_nothing_else(old, new, some):
    travel = moves(old, new)
    for move in travel:
        assert move.lo < move.hi
        assert move.source != move.target
    for one, two in itertools.pairwise(travel):
        assert one.hi <= two.lo
        assert one.hi < two.lo or (one.source, one.target) != (two.source, two.target)
    for h in some.tolist():
        one = np.array([h], np.uint64)
        before, after = int(old.route(one)[0]), int(new.route(one)[0])
        found = [(m.source, m.target) for m in travel if m.lo <= h < m.hi]
        assert found == ([] if before == after else [(before, after)])


def test_owners_can_not_be_changed():
    configuration = Configuration.initial(4, 2)
    with pytest.raises(ValueError, match="read-only"):
        configuration.owners[0] = 1


@pytest.mark.parametrize("wrong", [0, 3, -4, 2**21, 1.0, "4", True, None])
def test_a_number_of_bins_is_a_power_of_two(wrong):
    with pytest.raises(InvalidInput):
        bits_of(wrong)
    assert [bits_of(1 << bits) for bits in (0, 4, 20)] == [0, 4, 20]


def test_configurations_differ_from_other_things():
    assert Configuration.initial(4, 2) != 4
    assert Configuration.initial(4, 2) != Configuration.initial(4, 3)
