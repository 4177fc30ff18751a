"""What each worker starts an epoch with: exactly its ranges, linked or shipped, and nothing twice."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from configuration.test_configurations import configurations
from sterna.configuration import HASHES, Configuration
from sterna.engine.plans import plan_operator
from sterna.state.refs import RunRef, keep

TABLES = ["a", "b"]


def ref(name, lo=0, hi=HASHES):
    return RunRef(name, lo, hi, 1, 0, 100, 1000, 0, False, None, None)


def held(refs):
    """(file, range) of references, joined."""
    out = defaultdict(list)
    for one in sorted(refs, key=lambda r: (r.name, r.lo)):
        ranges = out[one.name]
        if ranges and ranges[-1][1] == one.lo:
            ranges[-1] = (ranges[-1][0], one.hi)
        else:
            assert not ranges or ranges[-1][1] < one.lo
            ranges.append((one.lo, one.hi))
    return dict(out)


@st.composite
def states(draw):
    """A configuration, and for each worker some files cut to what it owns."""
    old = draw(configurations(max_bits=4, max_workers=5))
    state = {}
    for worker in range(old.workers):
        names = draw(st.sets(st.integers(0, 2)))
        state[worker] = {
            table: keep([ref(f"{table}{n}") for n in sorted(names)], old.ranges(worker)) for table in TABLES
        }
    return old, state


@given(states(), configurations(max_bits=4, max_workers=5), st.integers(1, 3), st.booleans())
@settings(max_examples=200)
def test_all_state_arrives_once_where_it_belongs(held_by, new, hosts, share):
    old, state = held_by
    plan = plan_operator(0, state, old, new, TABLES, lambda a, b: share and a % hosts == b % hosts)
    assert sorted(plan.refs) == list(range(new.workers))
    arrived = {
        worker: {table: list(refs) for table, refs in tables.items()} for worker, tables in plan.refs.items()
    }
    for extraction in plan.extractions:
        for target, ranges in extraction.ranges.items():
            assert ranges == sorted(ranges)
            assert not (share and extraction.worker % hosts == target % hosts)
            for table in TABLES:
                arrived[target][table] += keep(extraction.refs[table], ranges)
    whole = {table: [one for tables in state.values() for one in tables[table]] for table in TABLES}
    for worker in range(new.workers):
        for table in TABLES:
            assert held(arrived[worker][table]) == held(keep(whole[table], new.ranges(worker)))
    assert all(move.source < old.workers and move.target < new.workers for move in plan.moves)
    assert (plan.linked_bytes > 0) <= bool(plan.moves)


@given(states())
def test_nothing_moves_for_nothing(held_by):
    old, state = held_by
    plan = plan_operator(0, state, old, old, TABLES, lambda *_: True)
    assert (plan.moves, plan.extractions, plan.linked_bytes) == ([], [], 0)
    assert plan.refs == state


def test_bins_that_leave_one_by_one_do_not_leave_a_piece_each():
    # Worker 0 has the first half, and every other bin of the second half; its run spans all of it.
    owners = np.array([0] * 16 + [0, 1] * 8, np.int32)
    refs = {0: {"a": [ref("run")]}, 1: {"a": []}}
    for bin_ in range(16, 32, 2):
        old = Configuration(5, 2, owners)
        owners = owners.copy()
        owners[bin_] = 1
        plan = plan_operator(0, refs, old, Configuration(5, 2, owners), ["a"], lambda *_: False)
        refs = {0: plan.refs[0], 1: {"a": []}}
        assert len(refs[0]["a"]) <= 2
    assert held(refs[0]["a"]) == {"run": [(0, HASHES // 2)]}
