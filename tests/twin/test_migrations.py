"""Migrations in several steps: handles, control, restarts and conflicts."""

from __future__ import annotations

import pytest

from sterna import strategies
from sterna.errors import UpdateRefused
from sterna.migration import SETTLING
from sterna.targets import balance, bins, rescale
from twin.migrating import ROWS, moving, owners, put
from twin.small import adding, chain, counts, totals


@pytest.mark.parametrize(
    ("strategy", "steps"),
    [
        (strategies.all_at_once(), 1),
        (strategies.fluid(), 8),
        (strategies.batched(3), 3),
        (strategies.matched(), 8),
        (strategies.paced(bytes_per_epoch=10**9), 1),
    ],
)
def test_a_migration_takes_as_many_steps_as_its_strategy_says(twin, strategy, steps):
    outcome = moving(twin, strategy).wait()
    assert (outcome["status"], outcome["steps"], outcome["bins"]) == ("done", steps, 8)
    assert outcome["bytes"] > 0
    assert outcome["latency"]["before"]["epochs"] == 1
    assert outcome["latency"]["during"]["epochs"] == steps
    assert twin.coordinator.last.configurations["counts"].workers == 1
    moved = [event for event in twin.coordinator.history.events() if event["kind"] == "moved"]
    assert sum(event["bins"] for event in moved) == 8


def test_a_gap_leaves_epochs_between_steps(twin):
    handle = moving(twin, strategies.batched(4, gap=2))
    handle.wait()
    moved = [event["epoch"] for event in twin.coordinator.history.events() if event["kind"] == "moved"]
    assert moved == [1, 4]


def test_new_workers_are_there_from_the_first_step_and_old_ones_until_the_last(twin):
    handle = moving(twin, strategies.fluid(), rescale(4))
    assert twin.coordinator.last.configurations["counts"].workers == 4
    handle.wait()
    handle = moving(twin, strategies.fluid(), rescale(2))
    assert twin.coordinator.last.configurations["counts"].workers == 4
    handle.wait()
    assert twin.coordinator.last.configurations["counts"].workers == 2


def test_progress(twin):
    handle = twin.handle(twin.migrate(rescale(1), strategies.fluid()))
    assert handle.progress() == {"name": handle.name, "status": "waiting"}
    twin.epoch(ROWS)
    found = handle.progress()
    assert (found["status"], found["bins"], found["bins_left"], found["steps"]) == ("running", 1, 7, 1)
    assert found["estimated_end"] is not None
    assert handle.name in repr(handle)
    assert not handle.done


def test_pause_and_resume(twin):
    handle = moving(twin, strategies.fluid())
    handle.pause()
    for _ in range(3):
        twin.epoch(ROWS)
    assert (handle.status, handle.progress()["bins"]) == ("paused", 1)
    assert not twin.coordinator.wants_epoch()
    handle.resume()
    assert handle.wait()["status"] == "done"


def test_cancel_stays_where_it_is(twin):
    handle = moving(twin, strategies.fluid())
    here = owners(twin)
    handle.cancel()
    assert handle.wait()["status"] == "cancelled"
    assert owners(twin) == here
    assert set(totals(twin).values()) == {2}


def test_rollback_moves_back(twin):
    before = owners(twin)
    handle = moving(twin, strategies.batched(3))
    assert owners(twin) != before
    handle.rollback()
    assert handle.wait()["status"] == "rolled back"
    assert owners(twin) == before
    assert twin.coordinator.last.configurations["counts"].workers == 2
    told = next(one for one in twin.coordinator.history.told(twin.coordinator.last) if one["bins"])
    assert told["operators"]["counts"]["from"]["bins_by_worker"] == [8, 8]
    assert told["operators"]["counts"]["to"] != told["operators"]["counts"]["from"]
    assert set(totals(twin).values()) == {twin.coordinator.last.facts["rows_total"] // 40}


def test_rollback_of_what_is_done(twin):
    before = owners(twin)
    handle = moving(twin, strategies.all_at_once())
    assert handle.wait()["status"] == "done"
    handle.rollback()
    assert handle.wait()["status"] == "rolled back"
    assert owners(twin) == before


def test_waiting_tells_that_what_was_asked_for_was_refused(twin):
    handle = moving(twin, strategies.all_at_once())
    handle.wait()
    later = twin.migrate(rescale(3))
    handle.rollback()  # no epoch has seen the later one yet, so this is refused by the freeze alone
    with pytest.raises(UpdateRefused, match=f"rollback of migration {handle.name} was refused: .*{later}"):
        handle.wait()
    assert handle.wait()["status"] == "done"


def test_control_of_what_is_over_is_refused(twin):
    handle = moving(twin, strategies.all_at_once())
    for act in (handle.cancel, handle.pause, handle.resume):
        with pytest.raises(UpdateRefused, match="is over \\(done\\): nothing to"):
            act()
    with pytest.raises(UpdateRefused, match="no migration 'nobody'"):
        twin.handle("nobody").cancel()
    with pytest.raises(UpdateRefused, match="no migration 'nobody'"):
        twin.handle("nobody").progress()


def test_a_restart_goes_on_where_it_was(start):
    flow = counts()
    twin = start(flow, bins=16, workers=2)
    twin.epoch(ROWS)
    handle = moving(twin, strategies.matched())
    twin.epoch(ROWS)
    twin.close()
    again = start(flow, bins=16, workers=2)
    handle = again.handle(handle.name)
    assert handle.progress()["bins"] == 2
    outcome = handle.wait()
    assert (outcome["status"], outcome["steps"], outcome["bins"]) == ("done", 8, 8)
    assert set(totals(again).values()) == {3}


def test_the_history_has_the_epochs_after_it(twin):
    handle = moving(twin, strategies.all_at_once())
    for _ in range(SETTLING + 2):
        twin.epoch(ROWS)
    assert twin.coordinator.last.migrations == []
    found = handle.progress()
    assert found["latency"]["after"]["epochs"] == SETTLING
    assert found["latency"]["during"]["epochs"] == 1
    assert found["ended_epoch"] == found["started_epoch"]
    assert found["strategy"] == {"name": "all_at_once"}
    assert found["operators"]["counts"] == {
        "from": {"bins": 16, "workers": 2, "bins_by_worker": [8, 8]},
        "to": {"bins": 16, "workers": 1, "bins_by_worker": [16]},
    }
    assert found["moves"] == {"counts": ["8-15: 1 → 0"]}


def test_operators_are_taken_one_after_the_other(start):
    twin = start(chain(adding), bins=8, workers=2)
    twin.epoch(ROWS)
    handle = moving(twin, strategies.batched(2))
    assert [len(set(owners(twin, name))) for name in ("first", "second")] == [2, 2]
    handle.wait()
    moved = [(e["operator"], e["epoch"]) for e in twin.coordinator.history.events() if e["kind"] == "moved"]
    assert moved == [("first", 1), ("first", 2), ("second", 3), ("second", 4)]


# Two at a time


@pytest.mark.parametrize("seen", [False, True])
def test_one_that_waits_can_be_cancelled(twin, seen):
    handle = twin.handle(twin.migrate(rescale(1), at=9))
    if seen:
        twin.epoch(ROWS)
    handle.cancel()
    assert handle.wait()["status"] == "cancelled"
    assert "before it began" in handle.progress()["reason"]
    assert not twin.coordinator.wants_epoch()
    for _ in range(12):
        twin.epoch(ROWS)
    assert set(owners(twin)) == {0, 1}


def test_one_that_waits_can_only_be_cancelled(twin):
    handle = twin.handle(twin.migrate(rescale(1), at=9))
    twin.epoch(ROWS)
    for act in (handle.pause, handle.resume, handle.rollback):
        with pytest.raises(UpdateRefused, match="has not begun: it can be cancelled"):
            act()


def test_a_clock_that_is_behind_does_not_put_a_cancel_before_its_migration(twin):
    handle = twin.handle(twin.migrate(rescale(1), strategies.fluid()))
    put(twin, name="000-early", action="cancel", migration=handle.name)
    assert handle.wait()["status"] == "cancelled"


@pytest.mark.parametrize("strategy", [strategies.all_at_once(), strategies.fluid()])
def test_one_that_is_cancelled_before_an_epoch_has_seen_it_moves_nothing(twin, strategy):
    before = owners(twin)
    handle = twin.handle(twin.migrate(rescale(1), strategy))
    handle.cancel()
    assert handle.wait()["status"] == "cancelled"
    assert "before it began" in handle.progress()["reason"]
    assert owners(twin) == before


def test_one_that_is_paused_before_an_epoch_has_seen_it_moves_nothing_until_it_goes_on(twin):
    before = owners(twin)
    handle = twin.handle(twin.migrate(rescale(1), strategies.fluid()))
    put(twin, action="pause", migration=handle.name)
    assert (handle.status, owners(twin)) == ("paused", before)
    handle.resume()
    outcome = handle.wait()
    assert (outcome["status"], outcome["bins"], outcome["latency"]["during"]["epochs"]) == ("done", 8, 8)


def test_a_cancel_that_is_refused_only_delays_the_migration(twin):
    handle = twin.handle(twin.migrate(rescale(1)))
    put(twin, action="cancel", migration=handle.name, query="another")
    assert handle.wait()["status"] == "done"


def test_a_cancel_that_names_itself_is_refused(twin):
    put(twin, name="itself", action="cancel", migration="itself")
    assert twin.handle("itself").status == "refused"
    assert not twin.coordinator.wants_epoch()


def test_one_that_is_rolled_back_before_an_epoch_has_seen_it_moves_nothing(twin):
    before = owners(twin)
    handle = twin.handle(twin.migrate(rescale(1)))
    put(twin, action="rollback", migration=handle.name)
    assert (handle.status, owners(twin)) == ("rolled back", before)
    assert handle.progress()["bins"] == 0


def test_heat_is_known_again_after_a_restart(twin, start):
    hot = twin.coordinator.statistics("counts").rows
    twin.close()
    again = start(counts(), bins=16, workers=2).coordinator.statistics("counts").rows
    assert hot.sum() > 0
    assert again.tolist() == pytest.approx(hot.tolist(), rel=0.05)


def test_balance_beside_another_number_of_bins(twin):
    one, two = twin.migrate(bins(64)), twin.migrate(balance())
    twin.epoch(ROWS)
    assert [twin.handle(name).status for name in (one, two)] == ["done", "done"]
    assert twin.coordinator.last.configurations["counts"].bins == 64


def test_sizes_are_known_after_the_number_of_bins_has_changed(twin):
    twin.migrate(bins(64))
    size = twin.coordinator.statistics("counts").bytes.sum()
    paced = strategies.paced(bytes_per_epoch=int(size / 8))
    outcome = twin.handle(twin.migrate(rescale(1), paced)).wait()
    assert outcome["steps"] >= 4


def test_bins_that_are_joined_are_counted(twin):
    moving(twin, strategies.all_at_once(), {1: 1, 3: 1})
    outcome = twin.handle(twin.migrate(bins(8), strategies.fluid())).wait()
    assert (outcome["bins"], outcome["steps"]) == (2, 1)


def test_a_long_migration_does_not_drive_out_the_history_of_others(twin, monkeypatch):
    monkeypatch.setattr("sterna.history.KEEP", 4)
    first = moving(twin, strategies.all_at_once(), {0: 1})
    moving(twin, strategies.fluid()).wait()
    for _ in range(SETTLING):
        twin.epoch(ROWS)
    assert first.progress()["status"] == "done"
    steps = [event for event in twin.coordinator.history.events() if event["kind"] == "moved"]
    assert len(steps) < 9
