"""Files of a checkpoint that are damaged, cut short or gone: found, named, and nothing made worse."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import sterna
from sterna.errors import CheckpointError, StateError


def counts(source):
    return sterna.read(source.stream()).key_by("key").aggregate(n=sterna.count())


@pytest.fixture
def stopped(feed, start):
    """A query that ran two epochs and ended."""
    source = feed("key long").add(*range(50)).add(*range(25))
    query = start(counts(source), trigger={"availableNow": True}, workers=1)
    assert query.await_termination(100)
    return source


def flip(path: Path) -> bytes:
    data = path.read_bytes()
    position = len(data) // 2
    path.write_bytes(data[:position] + bytes([data[position] ^ 0xFF]) + data[position + 1 :])
    return data


def cut(path: Path) -> bytes:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    return data


def gone(path: Path) -> bytes:
    data = path.read_bytes()
    path.unlink()
    return data


@pytest.fixture
def copied(stopped, checkpoint):
    """A copy of the checkpoint, whose files no process has opened yet."""
    shutil.copytree(checkpoint, f"{checkpoint}-copy")
    return f"{checkpoint}-copy"


def test_a_copy_of_a_checkpoint_goes_on(stopped, start, copied):
    stopped.add(*range(50))
    query = start(counts(stopped), checkpoint=copied, trigger={"availableNow": True})
    assert query.await_termination(100)
    assert sum(row["n"] for row in query.state().collect()) == 125


@pytest.mark.parametrize("harm", [flip, cut, gone])
def test_a_damaged_run_is_named_and_a_mended_one_goes_on(stopped, start, copied, harm):
    run = max((Path(copied) / "runs" / "aggregate").iterdir())
    whole = harm(run)
    stopped.add(*range(50))
    query = start(counts(stopped), checkpoint=copied, trigger={"availableNow": True})
    with pytest.raises(StateError) as raised:
        query.await_termination(100)
    assert str(run) in str(raised.value)
    assert query.status()["epoch"] == 1
    run.write_bytes(whole)
    again = start(counts(stopped), checkpoint=copied, trigger={"availableNow": True})
    assert again.await_termination(100)
    assert sum(row["n"] for row in again.state().collect()) == 125


@pytest.mark.parametrize("harm", [flip, cut])
def test_a_damaged_manifest_is_named(stopped, start, checkpoint, harm):
    newest = max((Path(checkpoint) / "epochs").glob("*.manifest.json"))
    whole = harm(newest)
    with pytest.raises(StateError) as raised:
        start(counts(stopped))
    assert str(newest) in str(raised.value)
    newest.write_bytes(whole)
    stopped.add(1)
    again = start(counts(stopped), trigger={"availableNow": True})
    assert again.await_termination(100)
    assert sum(row["n"] for row in again.state().collect()) == 76


def test_a_lost_manifest_is_not_overlooked(stopped, start, checkpoint):
    max((Path(checkpoint) / "epochs").glob("*.manifest.json")).unlink()
    stopped.add(1)
    query = start(counts(stopped), trigger={"availableNow": True})
    with pytest.raises(CheckpointError, match=r"epoch 2.*last epoch.*is 0"):
        query.await_termination(100)


def test_sparks_own_checkpoint_must_be_there_too(stopped, start, checkpoint):
    shutil.rmtree(Path(checkpoint) / "spark")
    query = start(counts(stopped), trigger={"availableNow": True})
    with pytest.raises(CheckpointError, match=r"epoch 0.*last epoch.*is 1.*do not belong together"):
        query.await_termination(100)


def test_a_checkpoint_of_another_format(stopped, start, checkpoint):
    from sterna.state.store import Store

    store = Store.open(checkpoint)
    store.write_document("sterna.json", {**store.read_document("sterna.json"), "format": 99})
    with pytest.raises(CheckpointError, match="format 99"):
        start(counts(stopped))


def test_a_damaged_control_entry_hurts_nobody(stopped, start, checkpoint):
    control = Path(checkpoint) / "control"
    control.mkdir(exist_ok=True)
    (control / "0001-x.json").write_bytes(b"{")
    stopped.add(1)
    query = start(counts(stopped), trigger={"availableNow": True})
    assert query.await_termination(100)
    (refused,) = [event for event in query.history() if event["kind"] == "refused"]
    assert "damaged" in refused["reason"]
    assert not list(control.glob("*.json"))


def test_no_room_for_state(feed, start, checkpoint, monkeypatch):
    source = feed("key long").add(*range(50)).add(*range(25))
    query = start(counts(source))
    query.process_all_available()
    runs = Path(checkpoint) / "epochs"

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sterna.state.store.write_local", full)
    source.add(*range(10))
    with pytest.raises(StateError, match=f"{runs}.*disk full"):
        query.await_termination(60)
    monkeypatch.undo()
    again = start(counts(source), trigger={"availableNow": True})
    assert again.await_termination(100)
    assert sum(row["n"] for row in again.state().collect()) == 85
