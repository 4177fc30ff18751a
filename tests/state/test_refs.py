"""References as differences: what a worker reports stays small however many it has."""

from __future__ import annotations

import json
import pickle

from hypothesis import given
from hypothesis import strategies as st

from sterna.state.refs import RunRef, from_changes, to_changes

REFS = st.builds(
    RunRef,
    st.sampled_from(["runs/a.arrow", "runs/b.arrow"]),
    st.integers(0, 3),
    st.integers(4, 7),
    st.integers(0, 2),
    st.integers(0, 2),
    st.just(1),
    st.just(1),
    st.integers(0, 2**64 - 1),
    st.booleans(),
    st.none() | st.integers(),
    st.none(),
)


@given(st.lists(REFS, unique=True, max_size=12), st.lists(REFS, max_size=6), st.randoms())
def test_what_is_reported_is_what_there_is(before, fresh, chance):
    after = [ref for ref in before if chance.random() < 0.8] + fresh
    changes = json.loads(json.dumps(to_changes(after, before)))
    assert from_changes(changes, before) == after


def test_a_thousand_references_that_stay_are_one_pair():
    many = [RunRef(f"runs/{i}.arrow", i, i + 1, 0, 0, 1, 1, 1, False, None, None) for i in range(1000)]
    assert to_changes(many, many) == [[0, 1000]]
    assert to_changes([*many[:500], *many[501:]], many) == [[0, 500], [501, 499]]


@given(REFS)
def test_a_reference_travels_whole(ref):
    assert pickle.loads(pickle.dumps(ref)) == ref
