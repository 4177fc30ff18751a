"""Files on disk: bounded over many epochs with moves, and never one too few.

Nothing is left of attempts that failed.
"""

from __future__ import annotations

import os
import random

import pytest

from sterna import history
from sterna.engine import garbage
from sterna.errors import StateError
from sterna.sinks import noop, parquet
from sterna.targets import bins, rescale
from sterna.testing import Crash, crashing
from twin.small import adding, chain, counts, rows, totals


def everything(directory):
    return [os.path.join(where, name) for where, _, names in os.walk(directory) for name in names]


def check_references(twin):
    """All that a retained manifest names is there, and can be read."""
    manifests = twin.coordinator.manifests
    for epoch in manifests.epochs():
        for ref in manifests.read(epoch).refs():
            assert twin.store.exists(ref.name), (epoch, ref.name)


def wander(twin, choice):
    """A random move, of one operator or all."""
    current = twin.coordinator.last.configurations["first"]
    target = choice.choice(
        [
            rescale(choice.randint(1, min(6, current.bins))),
            bins(1 << choice.randint(0, 6)),
            {choice.randrange(current.bins): choice.randrange(current.workers)},
        ]
    )
    twin.migrate(target, operator=choice.choice([None, "first"]) if not isinstance(target, dict) else "first")


@pytest.mark.parametrize("share", [True, False])
def test_files_stay_bounded_over_many_epochs_with_moves(start, monkeypatch, share):
    monkeypatch.setattr(garbage, "SWEEP_EVERY", 16)
    monkeypatch.setattr(history, "KEEP", 10)
    twin = start(chain(adding), retain=3, share_host_state=share, sink=noop())
    choice = random.Random(7)
    sizes, numbers, records = [], [], []
    for epoch in range(300):
        if epoch % 4 == 0:
            wander(twin, choice)
        twin.epoch([rows(*choice.sample(range(40), 10)) for _ in range(2)])
        if epoch % 10 == 9:
            check_references(twin)
            found = everything(twin.store.local_path(""))
            sizes.append(sum(os.path.getsize(path) for path in found))
            numbers.append(len(found))
            records.append(len(twin.store.read(f"epochs/{epoch + 1:012d}.manifest.json")))
    # After a while there is no trend any more: the last third is no larger than the one before.
    for series in (sizes, numbers, records):
        assert max(series[20:]) <= 1.5 * max(series[5:20])
    assert max(numbers) < 600
    assert sum(row["n"] for row in twin.state("second").to_pylist()) == 300 * 20


def test_what_is_retained_can_be_read_and_what_is_not_says_so(start):
    twin = start(counts(), retain=4)
    for _ in range(10):
        twin.epoch(rows(*range(10)))
    manifests = twin.coordinator.manifests
    assert manifests.epochs() == [6, 7, 8, 9]
    assert manifests.epochs("committed.json") == [6, 7, 8, 9]
    check_references(twin)
    with pytest.raises(StateError, match="no manifest of epoch 3; retained are epochs 6 to 9"):
        manifests.read(3)


def test_what_failed_attempts_left_behind_is_swept(start, monkeypatch):
    monkeypatch.setattr(garbage, "SWEEP_EVERY", 8)
    twin = start(counts(), retain=2, repeat=0.0)
    twin.epoch(rows(*range(10)))
    for attempt in range(3):
        with crashing("after-job", 1, after=0), pytest.raises(Crash):
            twin.epoch(rows(*range(10)), number=1)
        if attempt == 1:
            twin.close()
            twin = start(counts(), retain=2, repeat=0.0)
    orphans = set(everything(twin.store.local_path("runs"))) - set(
        map(twin.store.local_path, [ref.name for ref in twin.coordinator.last.refs()])
    )
    assert orphans
    for _ in range(17):
        twin.epoch(rows(*range(10)))
        check_references(twin)
    assert not orphans & set(everything(twin.store.local_path("runs")))
    assert totals(twin) == dict.fromkeys(range(10), 18)


def test_files_of_a_later_incarnation_are_left_alone(start, monkeypatch):
    monkeypatch.setattr(garbage, "SWEEP_EVERY", 2)
    twin = start(counts(), retain=2)
    theirs = "runs/counts/state-w0-e0-i9-abc-1.arrow"
    mine = "runs/counts/state-w0-e0-i1-abc-1.arrow"
    twin.store.write(theirs, b"x")
    twin.store.write(mine, b"x")
    for _ in range(7):
        twin.epoch(rows(1))
    assert twin.store.exists(theirs)
    assert not twin.store.exists(mine)


def test_a_crash_while_old_epochs_are_forgotten_leaves_nothing_behind_for_ever(start, monkeypatch):
    twin = start(counts(), retain=2)
    for _ in range(4):
        twin.epoch(rows(*range(10)))
    delete, calls = twin.store.delete, []

    def stop(paths):
        for path in paths:
            calls.append(path)
            if "committed" in path:
                raise Crash("in the middle")
            delete([path])

    monkeypatch.setattr(twin.store, "delete", stop)
    with pytest.raises(Crash):
        twin.epoch(rows(*range(10)))
    twin.close()
    again = start(counts(), retain=2)
    assert again.epoch(rows(*range(10)), number=4) is None
    for _ in range(4):
        again.epoch(rows(*range(10)))
        check_references(again)
    assert again.coordinator.manifests.epochs("committed.json") == [7, 8]
    assert again.coordinator.manifests.epochs("frozen.json") == [7, 8]


def test_history_keeps_the_latest(start, monkeypatch):
    monkeypatch.setattr(history, "KEEP", 3)
    twin = start(counts())
    for epoch in range(6):
        twin.migrate(rescale(1 + epoch % 3))
        twin.epoch(rows(1))
    assert sorted({event["epoch"] for event in twin.coordinator.history.events()}) == [3, 4, 5]


@pytest.mark.parametrize("point", ["after-prepare", "during-publish", "after-publish", "after-commit"])
def test_parquet_files_survive_a_crash_while_they_are_published(start, tmp_path, point):
    import pyarrow.parquet as pq

    out = str(tmp_path / "out")
    twin = start(counts(), sink=parquet(out), repeat=1.0)
    twin.epoch(rows(*range(20)))
    with crashing(point, 1), pytest.raises(Crash):
        twin.epoch(rows(*range(20)), number=1)
    twin.close()
    again = start(counts(), sink=parquet(out))
    assert again.epoch(rows(*range(20)), number=1) is None
    again.epoch(rows(*range(20)), number=2)
    found = sorted((row["k"], row["n"]) for row in pq.read_table(out).to_pylist())
    assert found == sorted((k, n) for k in range(20) for n in (1, 2, 3))
