"""Workers stay on their executors.

That is tried on a real Spark of several processes, started once for all tests of that kind.
"""

from __future__ import annotations

from collections import Counter

import pytest


@pytest.fixture(scope="module")
def report(cluster):
    return cluster["placed"]


def phases(report):
    """For each number of workers, where they ran in each epoch."""
    out = {}
    for epoch in report["epochs"]:
        out.setdefault(epoch["workers"], []).append(epoch["hosts"])
    return out


def test_the_workers_are_spread_and_stay_where_they_are(report):
    seen = phases(report)
    assert list(seen) == [4, 8, 3]
    for workers, epochs in seen.items():
        assert len(epochs) >= 8
        assert all(hosts == epochs[0] for hosts in epochs)
        # Spreading is done by trying; on a busy machine one executor may get two of them.
        assert len(set(epochs[0].values())) >= min(3, workers) - 1


@pytest.mark.parametrize(("before", "after"), [(4, 8), (8, 3)])
def test_workers_that_go_on_keep_their_executors(report, before, after):
    old, new = (phases(report)[count][0] for count in (before, after))
    survivors = [worker for worker in old if worker in new]
    slots = Counter(new.values())
    possible = sum(min(count, slots[where]) for where, count in Counter(old[w] for w in survivors).items())
    assert sum(old[worker] == new[worker] for worker in survivors) == possible


def test_the_counts_are_right(report):
    assert report["counted"] == report["rows"] == 500 * (report["last"] + 1)
    assert [(event["workers"], event["shipped"]) for event in report["moved"]] == [(8, True), (3, True)]
