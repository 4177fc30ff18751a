"""A checkpoint on a filesystem that is not this machine's disk.

No lock, no rename, no memory-mapping; copies of runs are kept here.
"""

from __future__ import annotations

import os
import time

import pyarrow.fs as pafs
import pytest

from sterna.engine.coordinator import Options
from sterna.errors import FencedError, StateError
from sterna.sinks import memory
from sterna.state import runs
from sterna.state.store import Store
from sterna.targets import rescale
from sterna.testing import Crash, Twin, crashing
from twin.small import adding, chain, rows


@pytest.fixture
def begin(tmp_path):
    """Starts a twin on a checkpoint that only its own filesystem object reaches."""
    (tmp_path / "bucket").mkdir()
    remote = pafs.SubTreeFileSystem(str(tmp_path / "bucket"), pafs.LocalFileSystem())
    twins = []

    def begin(sink, **options):
        store = Store.open("checkpoint", remote)
        assert not store.is_local
        flow = chain(adding)
        twins.append(
            Twin(
                flow,
                store,
                sink,
                Options(bins=16, workers=3, retain=2),
                local=str(tmp_path / "copies"),
                **options,
            )
        )
        return twins[-1]

    yield begin
    for twin in twins:
        twin.close()


def test_moves_crashes_and_restarts(begin, tmp_path):
    sink = memory()
    twin = begin(sink)
    for epoch, point in enumerate(
        ["after-freeze", "after-flush", "after-job", "after-prepare", "after-commit"]
    ):
        twin.migrate(rescale(1 + epoch))
        with crashing(point, epoch), pytest.raises(Crash):
            twin.epoch(rows(*range(20)), number=epoch)
        twin.close()
        if epoch % 2:  # another machine, which has no copies
            os.rename(tmp_path / "copies", tmp_path / f"lost{epoch}")
        twin = begin(sink)
        twin.epoch(rows(*range(20)), number=epoch)
    assert {row["n"] for row in twin.state("first").to_pylist()} == {5}
    assert sorted(sink.epochs) == [0, 1, 2, 3, 4]
    twin.epoch(rows(1))
    assert twin.coordinator.manifests.epochs() == [4, 5]


def test_a_damaged_copy_is_fetched_again(begin, tmp_path):
    twin = begin(memory())
    twin.epoch(rows(*range(20)))
    twin.close()
    for where, _, names in os.walk(tmp_path / "copies"):
        for name in names:
            with open(os.path.join(where, name), "r+b") as file:
                file.seek(100)
                file.write(b"\xff" * 8)
    again = begin(memory())
    again.epoch(rows(*range(20)))
    assert {row["n"] for row in again.state("first").to_pylist()} == {2}


def test_what_is_damaged_in_the_store_itself_is_named(begin, tmp_path):
    twin = begin(memory())
    twin.epoch(rows(*range(20)))
    twin.close()
    os.rename(tmp_path / "copies", tmp_path / "lost")
    folder = tmp_path / "bucket" / "checkpoint" / "runs" / "first"
    for name in os.listdir(folder):
        os.truncate(folder / name, 50)
    with pytest.raises(StateError, match="damaged in the store"):
        begin(memory()).epoch(rows(*range(20)))


def test_without_a_lock_the_older_query_yields(begin):
    sink = memory()
    first = begin(sink)
    first.epoch(rows(1))
    second = begin(memory())
    with pytest.raises(FencedError, match="incarnation 2"):
        first.epoch(rows(1))
    second.epoch(rows(1))
    assert sorted(sink.epochs) == [0]


def test_copies_that_nobody_opens_any_more_are_removed(begin, tmp_path, monkeypatch):
    twin = begin(memory())
    twin.epoch(rows(*range(20)))
    copies = [os.path.join(where, name) for where, _, names in os.walk(tmp_path / "copies") for name in names]
    old = time.time() - 2 * runs.COPY_SECONDS
    for path in copies:
        os.utime(path, (old, old))
    twin.close()
    again = begin(memory())
    for _ in range(3):
        again.epoch(rows(1))
    left = [path for path in copies if os.path.exists(path)]
    assert 0 < len(left) < len(copies)  # those of the key that was looked up have been opened, and so kept
    again.epoch(rows(*range(20)))
    assert sorted({row["n"] for row in again.state("first").to_pylist()}) == [2, 5]


def test_what_a_process_remembers_of_files_is_bounded(begin, tmp_path):
    twin = begin(memory())
    twin.cache._limit, twin.cache._in_use, twin.cache._most = 4, 0.0, 4
    for _ in range(20):
        twin.epoch(rows(*range(20)))
    assert len(twin.cache._open) <= 4
    assert len(twin.cache._verified) <= 32
