"""What a rollback undoes, what a wish that comes twice does, and what is asked for later."""

from __future__ import annotations

import pytest

from sterna import strategies
from sterna.control import Entry
from sterna.errors import UpdateRefused
from sterna.targets import bins, rescale
from twin.migrating import ROWS, moving, owners, put


def done(twin, target):
    handle = twin.handle(twin.migrate(target))
    assert handle.wait()["status"] == "done"
    return handle


@pytest.mark.parametrize("later", [bins(64), rescale(5), {0: 1}], ids=["bins", "workers", "owners"])
def test_what_came_after_is_never_undone_along(twin, later):
    first = done(twin, {1: 1})
    done(twin, later)
    here = twin.coordinator.last.configurations
    with pytest.raises(UpdateRefused, match=f"came after {first.name}"):
        first.rollback()
    assert twin.coordinator.last.configurations == here


def test_what_came_after_and_moved_nothing_is_no_obstacle(twin):
    before = owners(twin)
    first = done(twin, {0: 1})
    done(twin, {0: 1})
    first.rollback()
    assert first.wait()["status"] == "rolled back"
    assert owners(twin) == before


def test_one_that_moved_nothing_has_nothing_to_undo_once_others_did(twin):
    first = done(twin, {0: 1})
    second = done(twin, {0: 1})
    first.rollback()
    first.wait()
    here = owners(twin)
    with pytest.raises(UpdateRefused, match=f"{first.name} was rolled back after {second.name}"):
        second.rollback()
    assert owners(twin) == here


def test_migrations_are_undone_one_after_the_other_from_the_last(twin):
    before = owners(twin)
    first, second = done(twin, {0: 1}), done(twin, {1: 1})
    for one in (second, first):
        one.rollback()
        assert one.wait()["status"] == "rolled back"
    assert owners(twin) == before


def test_one_that_was_cancelled_is_undone_unless_something_came_after(twin):
    before = owners(twin)
    first = moving(twin, strategies.fluid())
    first.cancel()
    twin.epoch(ROWS)
    second = done(twin, {0: 1})
    with pytest.raises(UpdateRefused, match="came after"):
        first.rollback()
    second.rollback()
    second.wait()
    first.rollback()
    assert first.wait()["status"] == "rolled back"
    assert owners(twin) == before


@pytest.mark.parametrize("when", ["running", "over", "forgotten"])
def test_an_entry_that_a_store_delivers_twice_counts_once(twin, when):
    name = twin.migrate({0: 1}, strategies.fluid(gap=2) if when == "running" else None)
    (path,) = twin.coordinator.control.names()
    (entry,), _, _ = twin.coordinator.control.read([path], twin.coordinator.clock())
    handle = twin.handle(name)
    twin.epoch(ROWS)
    done_then = handle.wait() if when != "running" else None
    if done_then is not None:
        done(twin, {0: 0})
    for _ in range(40 if when == "forgotten" else 0):
        twin.epoch(ROWS)
    here = owners(twin)
    twin.coordinator.control.append(entry)
    twin.epoch(ROWS)
    twin.epoch(ROWS)
    assert owners(twin) == here
    assert not twin.coordinator.control.names()
    names = [one.name for one in twin.coordinator.last.migrations]
    assert len(names) == len(set(names))
    assert not [event for event in twin.coordinator.history.events() if event["kind"] == "refused"]


def test_a_cancel_for_a_later_epoch_waits_for_it(twin):
    handle = twin.handle(twin.migrate(rescale(1), at=4))
    control = twin.coordinator.control
    control.append(Entry("0" * 18 + "-cancel", None, {"epoch": 3}, action="cancel", migration=handle.name))
    twin.epoch(ROWS)
    assert handle.status == "waiting"
    while twin.coordinator.last.epoch < 4:
        twin.epoch(ROWS)
    assert handle.status == "cancelled"
    assert put(twin, action="cancel", migration=handle.name).status == "refused"


@pytest.mark.parametrize("others", [("pause",), ("pause", "resume"), ("rollback",)])
def test_what_is_cancelled_before_its_first_epoch_is_cancelled_whatever_else_was_asked(twin, others):
    handle = twin.handle(twin.migrate(rescale(1)))
    for action in (*others, "cancel"):
        getattr(handle, action)()
    before = owners(twin)
    assert handle.wait()["status"] == "cancelled"
    assert owners(twin) == before


def test_what_led_to_the_same_place_again_is_not_undone_along(twin):
    """As an autoscaler does: out, in, and out again."""
    first = done(twin, rescale(4))
    done(twin, rescale(2))
    last = done(twin, rescale(4))
    here = owners(twin)
    with pytest.raises(UpdateRefused, match="came after"):
        first.rollback()
    last.rollback()
    last.wait()
    assert owners(twin) != here
