"""Several migrations at once: refused, queued, merged, and what belongs to which."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from sterna import strategies
from sterna.errors import UpdateRefused
from sterna.targets import bins, rescale
from sterna.testing import Clock
from twin.migrating import ROWS, moving, owners, put
from twin.small import adding, chain, counts, totals


def test_a_second_one_is_refused(twin):
    moving(twin, strategies.fluid())
    with pytest.raises(UpdateRefused, match="is under way: cancel it or wait for it"):
        twin.migrate(rescale(3))
    later = twin.migrate(rescale(3), at=3)
    twin.epoch(ROWS)
    twin.epoch(ROWS)
    assert "is under way" in twin.handle(later).progress()["reason"]
    with pytest.raises(UpdateRefused, match="refused"):
        twin.handle(later).wait()


def test_a_second_one_waits(twin):
    first = moving(twin, strategies.fluid())
    second = twin.handle(twin.migrate(rescale(3), strategies.fluid(), if_busy="queue"))
    twin.epoch(ROWS)
    assert (first.status, second.status) == ("running", "waiting")
    second.wait()
    assert first.progress()["ended_epoch"] <= second.progress()["started_epoch"]
    assert twin.coordinator.last.configurations["counts"].workers == 3


def test_a_second_one_takes_over(twin):
    first = moving(twin, strategies.fluid())
    second = twin.handle(twin.migrate({0: 0, 15: 0, 3: 0}, strategies.batched(2), if_busy="merge"))
    twin.epoch(ROWS)
    assert first.status == "merged"
    second.wait()
    assert set(owners(twin)) == {0}


def test_another_number_of_bins_takes_over(twin):
    moving(twin, strategies.fluid())
    twin.handle(twin.migrate(bins(64), strategies.matched(), if_busy="merge")).wait()
    configuration = twin.coordinator.last.configurations["counts"]
    assert (configuration.bins, configuration.workers) == (64, 1)
    assert len(totals(twin)) == 40


def test_one_for_all_operators_takes_over_from_all_of_them(start):
    twin = start(chain(adding), bins=8, workers=2)
    twin.epoch(ROWS)
    one = moving(twin, strategies.fluid(gap=1), operator="first")
    two = moving(twin, strategies.fluid(gap=1), operator="second")
    both = twin.handle(twin.migrate(rescale(3), strategies.fluid(), if_busy="merge"))
    assert both.wait()["status"] == "done"
    assert (one.status, two.status) == ("merged", "merged")
    assert {c.workers for c in twin.coordinator.last.configurations.values()} == {3}


def test_what_came_after_is_not_rolled_back_along(twin):
    first = moving(twin, strategies.all_at_once(), {0: 1})
    second = moving(twin, strategies.all_at_once(), {1: 1})
    here = owners(twin)
    with pytest.raises(UpdateRefused, match=f"{second.name} came after {first.name}"):
        first.rollback()
    # From a process that does not know of the second one yet.
    handle = put(twin, action="rollback", migration=first.name)
    assert "rolling back would undo both" in handle.progress()["reason"]
    assert owners(twin) == here
    second.rollback()
    assert second.wait()["status"] == "rolled back"
    assert owners(twin)[:2] == [1, 0]


def test_bytes_belong_to_the_migration_that_moved_them(twin):
    first = moving(twin, strategies.fluid())
    moved = first.progress()["bytes"]
    twin.handle(twin.migrate(rescale(3), strategies.fluid(), if_busy="merge")).wait()
    assert first.progress()["bytes"] == moved


def test_other_operators_do_not_mind(start):
    twin = start(chain(adding), bins=8, workers=2)
    twin.epoch(ROWS)
    one = moving(twin, strategies.fluid(), operator="first")
    two = moving(twin, strategies.fluid(), operator="second")
    assert (one.status, two.status) == ("running", "running")
    one.wait()
    two.wait()


def test_two_that_begin_and_end_in_one_epoch_share_neither_bytes_nor_rollbacks(twin):
    first = twin.handle(twin.migrate({0: 1}))
    second = twin.handle(twin.migrate({1: 1}))
    twin.epoch(ROWS)
    moved = next(e["bytes"] for e in twin.coordinator.history.events() if e["kind"] == "moved")
    assert first.progress()["bytes"] + second.progress()["bytes"] == moved
    with pytest.raises(UpdateRefused, match="came after"):
        first.rollback()
    second.rollback()
    assert second.wait()["status"] == "rolled back"


# Waiting


def test_one_for_all_operators_is_not_overtaken_by_those_queued_after_it(start):
    twin = start(chain(adding), bins=16, workers=2)
    twin.epoch(ROWS)
    first = moving(twin, strategies.fluid(), operator="first")
    whole = twin.handle(twin.migrate(rescale(3), strategies.fluid(), if_busy="queue"))
    after = twin.handle(twin.migrate(rescale(4), strategies.fluid(), operator="second", if_busy="queue"))
    after.wait()
    ended = [one.progress() for one in (first, whole, after)]
    assert [one["status"] for one in ended] == ["done"] * 3
    assert ended[2]["started_epoch"] >= ended[1]["ended_epoch"]


def test_those_queued_behind_one_that_is_queued_behind_a_pause_make_no_epochs(start):
    twin = start(chain(adding), bins=16, workers=2)
    twin.epoch(ROWS)
    first = moving(twin, strategies.fluid(), operator="first")
    first.pause()
    twin.migrate(rescale(3), if_busy="queue")
    twin.migrate(rescale(4), operator="second", if_busy="queue")
    twin.epoch(ROWS)
    assert not twin.coordinator.wants_epoch()
    first.resume()
    assert twin.coordinator.wants_epoch()


def test_one_for_an_epoch_is_queued_too(twin):
    first = moving(twin, strategies.fluid())
    second = twin.handle(twin.migrate(rescale(3), at=3, if_busy="queue"))
    assert second.wait()["status"] == "done"
    assert second.progress()["started_epoch"] >= first.progress()["ended_epoch"] > 3


def test_one_that_is_queued_behind_a_pause_makes_no_epochs(twin):
    first = moving(twin, strategies.fluid())
    first.pause()
    twin.epoch(ROWS)
    second = twin.handle(twin.migrate(rescale(3), if_busy="queue"))
    twin.epoch(ROWS)
    assert (first.status, second.status) == ("paused", "waiting")
    assert not twin.coordinator.wants_epoch()
    first.resume()
    assert second.wait()["status"] == "done"


# What is known


@pytest.mark.parametrize(("if_busy", "status"), [("merge", "done"), ("refuse", "refused")])
def test_one_that_is_not_queued_does_not_wait_for_one_that_is_paused(start, if_busy, status):
    """Its moment comes while no data does, and nothing else wants an epoch."""
    clock = Clock()
    twin = start(counts(), bins=16, workers=2, clock=clock)
    twin.epoch(ROWS)
    first = moving(twin, strategies.fluid())
    first.pause()
    twin.epoch(ROWS)
    later = datetime.fromtimestamp(clock() + 100, timezone.utc)
    second = twin.handle(twin.migrate(rescale(3), strategies.fluid(), at=later, if_busy=if_busy))
    twin.epoch(ROWS)
    assert not twin.coordinator.wants_epoch()
    clock.move(101)
    assert twin.coordinator.wants_epoch()
    twin.drain(100)
    assert second.status == status
    assert not twin.coordinator.wants_epoch()
