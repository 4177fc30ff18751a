"""Strategies that get nowhere and entries that make no sense.

What is refused, and what the query makes of it.
"""

from __future__ import annotations

import json
import os
import time

import numpy as np
import pytest

from sterna import strategies
from sterna.control import DIRECTORY, LARGEST, new_name
from sterna.errors import InvalidInput, SternaError, UpdateRefused
from sterna.targets import balance, rescale
from twin.migrating import ROWS, moving, owners, put
from twin.small import counts, rows, totals


def test_steps_may_be_arrays(twin):
    @strategies.register("arrays")
    def arrays(current, target, statistics):
        bins = np.flatnonzero(current.owners != target.owners)
        yield np.column_stack([bins, target.owners[bins]])

    assert moving(twin, arrays).wait()["steps"] == 1


@pytest.mark.parametrize("bad", [[3, 4], [(0, 1)], []])
def test_a_strategy_of_ones_own_from_the_command_line_is_rehearsed_when_it_begins(twin, bad):
    @strategies.register("hasty")
    def hasty(current, target, statistics):
        while True:
            yield bad

    handle = put(twin, strategy={"name": "hasty"}, target=rescale(1).to_json())
    assert handle.status == "refused"
    told = twin.coordinator.history.migrations()[handle.name]
    assert (told["strategy"], told["target"]) == ({"name": "hasty"}, rescale(1).to_json())
    assert owners(twin) == [0] * 8 + [1] * 8
    assert not twin.coordinator.wants_epoch()


def test_a_strategy_that_never_gets_there(twin):
    @strategies.register("lazy")
    def lazy(current, target, statistics):
        yield [(15, 0)]

    @strategies.register("astray")
    def astray(current, target, statistics):
        while True:
            yield [(0, 1)]

    @strategies.register("waiting")
    def waiting(current, target, statistics):
        while True:
            yield []

    @strategies.register("broken")
    def broken(current, target, statistics):
        raise ZeroDivisionError("oops")

    for strategy, words in (
        (lazy, "ends with 7 bins"),
        (astray, "makes no progress"),
        (waiting, "waits for ever"),
        (broken, "oops"),
    ):
        with pytest.raises(UpdateRefused, match=words):
            twin.migrate(rescale(1), strategy)
    twin.epoch(ROWS)
    assert owners(twin) == [0] * 8 + [1] * 8


def test_a_strategy_that_goes_astray_later_ends_the_migration_and_not_the_query(twin):
    drawn = []

    @strategies.register("fickle")
    def fickle(current, target, statistics):
        drawn.append(1)
        for bin_ in np.flatnonzero(current.owners != target.owners).tolist():
            yield [(bin_, int(target.owners[bin_]))]
            if len(drawn) > 2:  # when it was asked for, and when it began, it was rehearsed
                return

    handle = moving(twin, fickle)
    twin.epoch(ROWS)
    with pytest.raises(UpdateRefused, match="ended before the target was reached"):
        handle.wait()
    assert handle.status == "failed"
    twin.epoch(ROWS)
    assert set(totals(twin).values()) == {4}


def test_a_strategy_that_is_gone_after_a_restart_pauses_the_migration(start):
    @strategies.register("passing")
    def passing(current, target, statistics):
        yield from strategies.fluid()(current, target, statistics)

    flow = counts()
    twin = start(flow, bins=16, workers=2)
    twin.epoch(ROWS)
    handle = moving(twin, passing)
    twin.close()
    del strategies._OWN["passing"]
    again = start(flow, bins=16, workers=2)
    again.epoch(ROWS)
    handle = again.handle(handle.name)
    assert handle.status == "paused"
    assert "there is no strategy 'passing'" in handle.progress()["reason"]
    strategies.register("passing")(passing)
    handle.resume()
    assert handle.wait()["status"] == "done"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"query": "another"}, "signed for query another"),
        ({"written": 1e12}, "clocks disagree"),
        ({"action": "explode"}, "one of migrate, pause"),
        ({"if_busy": "fight"}, "one of refuse, queue, merge"),
        ({"strategy": {"name": "magic"}}, "no strategy 'magic'"),
        ({"strategy": {"name": "batched", "size": -1}}, "from 1 on"),
        ({"strategy": {"name": "fluid", "size": "x"}}, "fluid does not take size"),
        ({"strategy": 5}, "strategy must be like"),
        ({"strategy": {"name": ["fluid"]}}, "strategy must be like"),
        ({"stratgy": {"name": "fluid"}}, "'stratgy', which is unknown"),
        ({"written": 10**400}, "not a control entry"),
        ({"written": float("nan")}, "written must be the seconds since 1970"),
        ({"target": None}, "a target must be like"),
        ({"when": {"epoch": 10**400}}, "not a control entry"),
        ({"action": "cancel", "migration": "nobody"}, "no migration 'nobody'"),
        ({"target": {"kind": "explicit", "assignment": [[1, 99]]}}, "worker 99 does not exist"),
        ({"operator": "nobody"}, "operator 'nobody' does not exist"),
        ({"query": 7}, "must be a name"),
    ],
)
def test_a_bad_entry_from_elsewhere_is_refused_and_the_query_goes_on(twin, changes, words):
    handle = put(twin, **changes)
    assert words in handle.progress()["reason"]
    assert owners(twin) == [0] * 8 + [1] * 8
    twin.epoch(ROWS)
    assert set(totals(twin).values()) == {3}


def test_an_entry_that_is_too_large_is_not_even_read(twin):
    name = new_name()
    twin.store.write(f"{DIRECTORY}/{name}.json", b"x")
    os.truncate(twin.store.local_path(f"{DIRECTORY}/{name}.json"), LARGEST + 1)
    twin.epoch(ROWS)
    assert "the most that an entry may have" in twin.handle(name).progress()["reason"]


def test_an_entry_that_is_nested_without_end(twin):
    name = "000-deep"
    twin.store.write(f"{DIRECTORY}/{name}.json", b"[" * 200_000)
    twin.epoch(ROWS)
    assert "damaged" in twin.handle(name).progress()["reason"]


def test_an_entry_that_is_not_text(twin):
    name = "000-noise"
    twin.store.write(f"{DIRECTORY}/{name}.json", b"\x80\x81\xff\n\x82")
    twin.epoch(ROWS)
    assert "it is not text" in twin.handle(name).progress()["reason"]


def test_an_entry_that_is_cut_short_gets_some_seconds_to_be_finished(twin):
    now, then = new_name(), new_name(time.time() - 60)
    for name in (now, then):
        twin.store.write(f"{DIRECTORY}/{name}.json", json.dumps({"name": name}).encode())
    twin.epoch(ROWS)
    assert [twin.handle(name).status for name in (now, then)] == ["waiting", "refused"]


def test_no_such_choice(twin):
    with pytest.raises(InvalidInput, match="no name"):
        twin.migrate(rescale(1), lambda *_: iter([]))
    with pytest.raises(UpdateRefused, match="worker 9 does not exist"):
        twin.migrate({0: 9}, strategies.fluid())


def test_balancing_a_query(start):
    twin = start(counts(), bins=64, workers=2)
    hot = list(range(200))
    twin.epoch(rows(*hot))
    twin.migrate(dict.fromkeys(range(32, 60), 0))
    twin.epoch(rows(*hot))
    twin.handle(twin.migrate(balance(), strategies.matched())).wait()
    twin.epoch(rows(*hot))
    shares = [one[0] for one in twin.coordinator.last.facts["workers"].values()]
    assert abs(shares[0] - shares[1]) < 40
    with pytest.raises(SternaError):
        twin.migrate({99: 0})
