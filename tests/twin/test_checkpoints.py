"""Whose checkpoint it is: another dataflow's, version's or query's; and which epochs may run."""

from __future__ import annotations

import json
import pickle

import pytest

from sterna.engine.checkpoint import DOCUMENT
from sterna.engine.fencing import Incarnation
from sterna.errors import CheckpointError, FencedError, UpdateRefused
from sterna.sinks import memory
from sterna.state.store import Store
from sterna.targets import rescale
from sterna.testing import Crash, crashing
from twin.small import adding, chain, counts, machine, rows, totals, unary


def test_a_checkpoint_of_another_dataflow(start):
    start(counts()).close()
    for other in (machine(adding), chain(adding), unary(lambda *_: None)):
        with pytest.raises(
            CheckpointError, match=r"belongs to another dataflow.*Aggregate 'counts' keyed by \(k\)"
        ):
            start(other)
    start(counts())


def test_a_checkpoint_of_another_version(start, tmp_path):
    twin = start(counts())
    document = twin.store.read_document(DOCUMENT)
    twin.store.write_document(DOCUMENT, {**document, "format": 99})
    twin.close()
    with pytest.raises(CheckpointError, match="written in format 99"):
        start(counts())


def test_a_checkpoint_that_lost_its_name(start):
    twin = start(counts())
    twin.epoch(rows(1))
    twin.close()
    twin.store.delete([DOCUMENT])
    with pytest.raises(CheckpointError, match="not a whole checkpoint"):
        start(counts())


def test_of_two_that_start_at_once_only_the_one_that_runs_names_the_checkpoint(start, monkeypatch):
    """The other may have found a new checkpoint before the first one took it."""
    first = start(counts())
    named = first.store.read(DOCUMENT)
    read = Store.read_document
    late = iter([True])

    def not_yet(self, path):
        if path == DOCUMENT and next(late, False):
            raise FileNotFoundError(path)
        return read(self, path)

    monkeypatch.setattr(Store, "read_document", not_yet)
    with pytest.raises(CheckpointError, match="in use by another running query"):
        start(machine(adding))
    assert first.store.read(DOCUMENT) == named
    first.close()
    assert start(counts()).coordinator.query == first.coordinator.query


def test_the_identity_that_another_start_left_meanwhile_is_taken(start, monkeypatch):
    first = start(counts())
    first.close()
    take = Incarnation._take_lock
    found = first.store.read(DOCUMENT)
    first.store.delete([DOCUMENT])

    def after_another(self):
        first.store.write(DOCUMENT, found)
        take(self)

    monkeypatch.setattr(Incarnation, "_take_lock", after_another)
    assert start(counts()).coordinator.query == first.coordinator.query
    assert first.store.read(DOCUMENT) == found


def test_two_queries_on_one_checkpoint(start):
    first = start(counts())
    first.epoch(rows(1))
    with pytest.raises(CheckpointError, match="in use by another running query"):
        start(counts())
    first.epoch(rows(1))
    first.close()
    second = start(counts())
    second.epoch(rows(1))
    assert totals(second) == {1: 3}


def test_a_later_incarnation_fences_an_earlier_one_off(start):
    """Where there is no lock, the file of a later incarnation is all there is to see."""
    sink = memory()
    first = start(counts(), sink=sink)
    first.epoch(rows(1))
    first.coordinator.incarnation.release()
    second = start(counts())
    with pytest.raises(FencedError, match="incarnation 2 of this query has taken over"):
        first.epoch(rows(1))
    assert sorted(sink.epochs) == [0]
    assert second.coordinator.manifests.epochs()[-1] == 0
    second.epoch(rows(1))
    with pytest.raises(FencedError):
        first.epoch(rows(1))
    assert totals(second) == {1: 2}


@pytest.mark.parametrize("point", ["after-freeze", "after-job"])
def test_fenced_off_in_the_middle_of_an_epoch_nothing_is_committed(start, point):
    sink = memory()
    first = start(counts(), sink=sink)
    first.epoch(rows(1))
    taken = []

    def take_over(name, epoch):
        if name == point and not taken:
            first.coordinator.incarnation.release()
            taken.append(start(counts()))

    from sterna.engine import crash

    crash.set_hook(take_over)
    try:
        with pytest.raises(FencedError):
            first.epoch(rows(1))
    finally:
        crash.set_hook(None)
    assert sorted(sink.epochs) == [0]
    assert taken[0].coordinator.manifests.epochs()[-1] == 0
    taken[0].epoch(rows(1), number=1)
    assert totals(taken[0]) == {1: 2}


def test_only_the_last_epoch_or_the_next_may_run(start):
    twin = start(counts())
    for epoch in range(3):
        twin.epoch(rows(1), number=epoch)
    for wrong in (0, 1, 4, 17):
        with pytest.raises(
            CheckpointError, match=f"Spark asks for epoch {wrong}, but the last epoch in .* is 2"
        ):
            twin.epoch(rows(1), number=wrong)
    assert twin.epoch(rows(1), number=2) is None
    assert totals(twin) == {1: 3}


def test_an_epoch_that_was_prepared_is_published_once_more_after_a_crash_and_not_run_again(start):
    sink = memory()
    twin = start(counts(), sink=sink)
    with crashing("after-prepare", 0), pytest.raises(Crash):
        twin.epoch(rows(1), number=0)
    assert sink.epochs == {}
    twin.close()
    again = start(counts(), sink=sink)
    assert again.epoch(rows(1), number=0) is None
    assert sink.rows() == [{"k": 1, "n": 1, "total": 1}]
    assert again.epoch(rows(1), number=0) is None
    assert sink.published == 1


def test_an_update_for_an_epoch_that_an_earlier_start_froze_is_refused(start):
    twin = start(counts())
    with crashing("after-freeze", 0), pytest.raises(Crash):
        twin.epoch(rows(1), number=0)
    twin.close()
    again = start(counts())
    with pytest.raises(
        UpdateRefused, match="epoch 0 is already frozen; the earliest epoch that can still change is 1"
    ):
        again.migrate(rescale(2), at=0)
    again.migrate(rescale(2), at=1)
    again.epoch(rows(1), number=0)
    assert again.coordinator.last.configurations["counts"].workers == 3
    again.epoch(rows(1))
    assert again.coordinator.last.configurations["counts"].workers == 2


def test_history_survives_a_crash_right_after_the_epoch_was_prepared(start):
    twin = start(counts())
    name = twin.migrate(rescale(2))
    with crashing("after-prepare", 0), pytest.raises(Crash):
        twin.epoch(rows(1), number=0)
    twin.close()
    again = start(counts())
    assert again.epoch(rows(1), number=0) is None
    events = again.coordinator.history.events()
    assert [event["kind"] for event in events] == ["applied", "moved", "migration"]
    assert events[0]["entry"]["name"] == events[2]["name"] == name


def test_checkpoints_and_dataflows_travel_to_workers(start):
    twin = start(counts())
    assert pickle.loads(pickle.dumps(twin.flow)).fingerprint() == twin.flow.fingerprint()
    assert json.dumps(twin.flow.description())
