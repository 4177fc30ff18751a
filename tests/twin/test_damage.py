"""Files that are damaged, missing, or can't be written.

There is an error that names the file, nothing is lost, and on it goes once that is mended.
"""

from __future__ import annotations

import errno
import os

import pytest

from sterna.errors import StateError
from sterna.sinks import memory
from sterna.state import files as local_files
from sterna.targets import rescale
from twin.small import adding, chain, counts, rows, totals


def files(twin, part):
    return sorted(name for name in twin.store.list(part) if not name.startswith("."))


def corrupt(path, how):
    with open(path, "rb") as file:
        data = bytearray(file.read())
    good = bytes(data)
    if how == "cut short":
        data = data[: len(data) // 2]
    elif how == "emptied":
        data = data[:0]
    else:
        data[len(data) // 2] ^= 0x10
    with open(path, "wb") as file:
        file.write(data)
    return good


def put_back(path, good):
    with open(path, "wb") as file:
        file.write(good)


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("how", ["cut short", "emptied", "flipped bit"])
def test_a_damaged_run_is_named_and_nothing_is_committed(start, how, share):
    twin = start(counts(), share_host_state=share)
    twin.epoch(rows(*range(20)))
    twin.close()
    name = files(twin, "runs/counts")[0]
    path = twin.store.local_path(f"runs/counts/{name}")
    good = corrupt(path, how)
    again = start(counts(), share_host_state=share)
    again.migrate(rescale(5))
    with pytest.raises(StateError) as caught:
        again.epoch(rows(*range(20)))
    assert path in str(caught.value)
    assert again.coordinator.last.epoch == 0
    put_back(path, good)
    again.epoch(rows(*range(20)), number=1)
    assert totals(again) == dict.fromkeys(range(20), 2)


def test_a_missing_run_is_named(start):
    twin = start(counts())
    twin.epoch(rows(*range(20)))
    twin.close()
    name = files(twin, "runs/counts")[0]
    path = twin.store.local_path(f"runs/counts/{name}")
    os.rename(path, path + ".away")
    again = start(counts())
    with pytest.raises(StateError, match=name):
        again.epoch(rows(*range(20)))
    os.rename(path + ".away", path)
    again.epoch(rows(*range(20)))
    assert totals(again) == dict.fromkeys(range(20), 2)


@pytest.mark.parametrize("how", ["cut short", "emptied", "flipped bit"])
@pytest.mark.parametrize("document", ["manifest", "frozen"])
def test_a_damaged_document_of_an_epoch_is_named(start, how, document):
    twin = start(counts())
    twin.epoch(rows(1))
    twin.coordinator.freeze(1)
    twin.close()
    name = [name for name in files(twin, "epochs") if document in name][-1]
    path = twin.store.local_path(f"epochs/{name}")
    good = corrupt(path, how)
    with pytest.raises(StateError) as caught:
        start(counts()).epoch(rows(1), number=1)
    assert path in str(caught.value)
    put_back(path, good)
    # A start that failed lets go of the checkpoint; one that failed at its first epoch must be closed.
    if document == "frozen":
        return
    again = start(counts())
    again.epoch(rows(1), number=1)
    assert totals(again) == {1: 2}


def test_a_manifest_that_is_none_is_named(start):
    twin = start(counts())
    twin.epoch(rows(1))
    twin.close()
    name = [name for name in files(twin, "epochs") if "manifest" in name][-1]
    twin.store.write_document(f"epochs/{name}", {"epoch": 0})
    with pytest.raises(StateError, match=f"{name} is not a manifest"):
        start(counts())


def test_an_old_damaged_manifest_hinders_nobody(start):
    twin = start(counts(), retain=3)
    for _ in range(3):
        twin.epoch(rows(1))
    twin.close()
    corrupt(twin.store.local_path(f"epochs/{files(twin, 'epochs')[0]}"), "flipped bit")
    again = start(counts(), retain=3)
    for _ in range(6):
        again.epoch(rows(1))
    assert totals(again) == {1: 9}


def test_a_damaged_history_hides_nothing_else(start):
    twin = start(counts())
    for workers in (2, 4):
        twin.migrate(rescale(workers))
        twin.epoch(rows(1))
    corrupt(twin.store.local_path(f"history/{files(twin, 'history')[0]}"), "flipped bit")
    events = twin.coordinator.history.events()
    assert events[0]["kind"] == "damaged"
    assert events[1]["kind"] == "applied"


class Full:
    """A disk that is full from some write on."""

    def __init__(self, monkeypatch, match, after=0):
        self.original, self.match, self.left = local_files.write_file, match, after
        self.struck = []
        monkeypatch.setattr(local_files, "write_file", self)

    def __call__(self, path, data, **options):
        if self.match in path:
            if self.left <= 0:
                self.struck.append(path)
                raise OSError(errno.ENOSPC, "No space left on device")
            self.left -= 1
        self.original(path, data, **options)


@pytest.mark.parametrize(
    ("match", "after"),
    [
        ("/runs/first/", 0),
        ("/runs/first/", 2),
        ("/runs/second/", 1),
        (".frozen.json", 0),
        (".manifest.json", 0),
        (".committed.json", 0),
        ("/history/", 0),
    ],
)
def test_a_full_disk_fails_the_epoch_and_it_goes_on_after(start, monkeypatch, match, after):
    sink = memory()
    twin = start(chain(adding), sink=sink, repeat=0.0)
    twin.epoch(rows(*range(20)))
    twin.migrate(rescale(5))
    with monkeypatch.context() as patch:
        full = Full(patch, match, after)
        with pytest.raises(StateError, match="disk full") as caught:
            twin.epoch(rows(*range(20)), number=1)
        assert full.struck
        assert match.strip("/.") in str(caught.value)
        committed = ".committed" in match
        assert twin.coordinator.manifests.epochs()[-1] == (1 if committed else 0)
        assert not twin.coordinator.manifests.committed(1)
        # Still full: still refused, and still nothing lost.
        with pytest.raises(StateError, match="disk full"):
            twin.epoch(rows(*range(20)), number=1)
    twin.epoch(rows(*range(20)), number=1)
    twin.epoch(rows(*range(20)), number=2)
    assert totals(twin, "first") == dict.fromkeys(range(20), 3)
    assert sorted(sink.epochs) == [0, 1, 2]
    assert not [name for name in os.listdir(twin.store.local_path("runs/first")) if name.endswith(".tmp")]


def test_a_full_disk_refuses_a_wish(start, monkeypatch):
    twin = start(counts())
    with monkeypatch.context() as patch:
        Full(patch, "/control/")
        with pytest.raises(StateError, match="disk full"):
            twin.migrate(rescale(2))
    twin.epoch(rows(1))
    assert twin.coordinator.last.configurations["counts"].workers == 3
