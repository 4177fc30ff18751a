"""An executor is drained before it goes, and one that comes is used.

That is tried on a real Spark of several processes, started once for all tests of that kind.
"""

from __future__ import annotations

import pytest

import sterna
from sterna.errors import InvalidInput


@pytest.fixture(scope="module")
def report(cluster):
    return cluster["drained"]


def test_the_bins_of_its_workers_move_to_the_others(report):
    assert sum(report["moved"]) > 0
    assert report["left"] == 0


def test_no_slot_is_left_there_and_no_worker_runs_there(report):
    assert all(report["leaver"] not in epoch.values() for epoch in report["epochs"])
    told = report["executors"][report["leaver"]]
    assert told == {"slots": 0, "workers": 0, "draining": False, "drained": True}
    assert sum(one["slots"] for one in report["executors"].values()) == 3


def test_an_executor_that_comes_is_used(report):
    assert len(set(report["after"].values())) == 3
    assert report["leaver"] not in report["after"].values()


def test_what_can_not_be_drained(report):
    gone, nowhere, everything = report["refused"]
    assert "no slot is on executor" in gone
    assert "no slot is on executor 'nowhere/1'" in nowhere
    assert "no slot is on any other executor" in everything


def test_no_row_is_lost_or_doubled(report):
    assert report["counted"] == report["rows"]


def test_with_one_executor_there_is_no_other_to_go_to(feed, start):
    source = feed("key long").add(1, 2, 3)
    query = start(sterna.read(source.stream()).key_by("key").aggregate(n=sterna.count()))
    query.process_all_available()
    assert query.executors() == {}
    with pytest.raises(InvalidInput, match="with one executor"):
        query.drain("here")
