"""Workers stay on their executors; one is drained before it goes, and one that comes is used.

That is tried on a real Spark of several processes, started once for all tests of that kind.
"""

from __future__ import annotations

from collections import Counter

import pytest

import sterna
from sterna.errors import InvalidInput


@pytest.fixture(scope="module")
def placed(cluster):
    return cluster["placed"]


@pytest.fixture(scope="module")
def drained(cluster):
    return cluster["drained"]


def phases(report):
    """For each number of workers, where they ran in each epoch."""
    out = {}
    for epoch in report["epochs"]:
        out.setdefault(epoch["workers"], []).append(epoch["hosts"])
    return out


def test_the_workers_are_spread_and_stay_where_they_are(placed):
    seen = phases(placed)
    assert list(seen) == [4, 8, 3]
    for workers, epochs in seen.items():
        assert len(epochs) >= 8
        assert all(hosts == epochs[0] for hosts in epochs)
        # Spreading is done by trying; on a busy machine one executor may get two of them.
        assert len(set(epochs[0].values())) >= min(3, workers) - 1


@pytest.mark.parametrize(("before", "after"), [(4, 8), (8, 3)])
def test_workers_that_go_on_keep_their_executors(placed, before, after):
    old, new = (phases(placed)[count][0] for count in (before, after))
    survivors = [worker for worker in old if worker in new]
    slots = Counter(new.values())
    possible = sum(min(count, slots[where]) for where, count in Counter(old[w] for w in survivors).items())
    assert sum(old[worker] == new[worker] for worker in survivors) == possible


def test_the_counts_are_right(placed):
    assert placed["counted"] == placed["rows"] == 500 * (placed["last"] + 1)
    assert [(event["workers"], event["shipped"]) for event in placed["moved"]] == [(8, True), (3, True)]


def test_the_bins_of_its_workers_move_to_the_others(drained):
    assert sum(drained["moved"]) > 0
    assert drained["left"] == 0


def test_no_slot_is_left_there_and_no_worker_runs_there(drained):
    assert all(drained["leaver"] not in epoch.values() for epoch in drained["epochs"])
    told = drained["executors"][drained["leaver"]]
    assert told == {"slots": 0, "workers": 0, "draining": False, "drained": True}
    assert sum(one["slots"] for one in drained["executors"].values()) == 3


def test_an_executor_that_comes_is_used(drained):
    assert len(set(drained["after"].values())) == 3
    assert drained["leaver"] not in drained["after"].values()


def test_what_can_not_be_drained(drained):
    gone, nowhere, everything = drained["refused"]
    assert "no slot is on executor" in gone
    assert "no slot is on executor 'nowhere/1'" in nowhere
    assert "no slot is on any other executor" in everything


def test_no_row_is_lost_or_doubled(drained):
    assert drained["counted"] == drained["rows"]


def test_with_one_executor_there_is_no_other_to_go_to(feed, start):
    source = feed("key long").add(1, 2, 3)
    query = start(sterna.read(source.stream()).key_by("key").aggregate(n=sterna.count()))
    query.process_all_available()
    assert query.executors() == {}
    with pytest.raises(InvalidInput, match="with one executor"):
        query.drain("here")
