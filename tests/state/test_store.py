from __future__ import annotations

import errno
import os
import pickle

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from sterna.errors import StateError
from sterna.state import Store
from sterna.state import files as local_files


def remote(tmp_path):
    (tmp_path / "far").mkdir(exist_ok=True)
    return Store.open(
        "base", filesystem=pafs.SubTreeFileSystem(str(tmp_path / "far"), pafs.LocalFileSystem())
    )


@pytest.fixture(params=["path", "file-uri", "subtree", "mock"])
def any_store(request, tmp_path):
    if request.param == "path":
        return Store.open(str(tmp_path / "s"))
    if request.param == "file-uri":
        return Store.open((tmp_path / "s").as_uri())
    if request.param == "subtree":
        return remote(tmp_path)
    return Store.open("base", filesystem=pafs._MockFileSystem())


def test_files_come_back_as_written(any_store):
    any_store.write("a/b/one", b"1")
    any_store.write("a/b/two", pa.py_buffer(b"22"), durable=True)
    any_store.write("a/b/one", b"111")
    assert any_store.read("a/b/one") == b"111"
    assert any_store.list("a/b") == ["one", "two"]
    assert any_store.list("a") == []
    assert any_store.list("nowhere") == []
    assert any_store.exists("a/b/two")
    assert not any_store.exists("a/b")
    any_store.delete(["a/b/one", "a/b/never"])
    assert any_store.list("a/b") == ["two"]
    with pytest.raises(FileNotFoundError, match="one"):
        any_store.read("a/b/one")


def test_exclusive_create_lets_one_win(any_store):
    assert any_store.create_exclusive("locks/x", b"first")
    assert not any_store.create_exclusive("locks/x", b"second")
    assert any_store.read("locks/x") == b"first"
    assert any_store.list("locks") == ["x"]


def test_exclusive_create_where_links_are_not_known(store, monkeypatch):
    def no_links(*_):
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    assert store.create_exclusive("x", b"first")
    assert not store.create_exclusive("x", b"second")
    assert store.read("x") == b"first"


def test_only_local_stores_have_paths(tmp_path):
    assert Store.open(str(tmp_path)).local_path("x/y") == str(tmp_path / "x/y")
    assert Store.open(str(tmp_path)).is_local
    assert remote(tmp_path).local_path("x/y") is None
    assert not remote(tmp_path).is_local


def test_a_pickled_store_finds_its_files(tmp_path):
    for one in (Store.open(str(tmp_path / "s")), remote(tmp_path)):
        one.write("a/x", b"x")
        copy = pickle.loads(pickle.dumps(one))
        assert copy.read("a/x") == b"x"
        copy.write("b/y", b"y")
        assert one.read("b/y") == b"y"


def test_documents_come_back_and_damage_is_named(any_store):
    document = {"epoch": 3, "hash": 2**64 - 1, "names": ["a", "ü"], "none": None}
    any_store.write_document("m/3.json", document)
    assert any_store.read_document("m/3.json") == document
    good = any_store.read("m/3.json")
    for bad in (b"", good[:10], good[:-1], good.replace(b"epoch", b"epoxy"), b"{}\n[]"):
        any_store.write("m/3.json", bad)
        with pytest.raises(StateError, match=r"m/3\.json"):
            any_store.read_document("m/3.json")


class _FullDisk:
    """A raw file that takes a few bytes, then none."""

    def __init__(self, file):
        self.file = file
        self.room = 4

    def write(self, data):
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = self.file.write(bytes(data[: self.room]))
        self.room = 0
        return taken

    def fileno(self):
        return self.file.fileno()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()


def test_a_full_disk_is_named_and_leaves_the_old_file(store, monkeypatch):
    store.write("a/x", b"the old content")
    monkeypatch.setattr(
        local_files,
        "open",
        lambda path, mode, buffering: _FullDisk(open(path, mode, buffering)),  # noqa: SIM115
        raising=False,
    )
    for action in (store.write, store.create_exclusive):
        for name in ("a/x", "a/new"):
            with pytest.raises(StateError, match=f"{name}.*disk full"):
                action(name, b"much longer than there is room for")
    monkeypatch.undo()
    assert store.read("a/x") == b"the old content"
    assert os.listdir(store.local_path("a")) == ["x"]


def test_what_killed_writers_left_is_found_once_it_is_old(store):
    store.write("a/x", b"x")
    path = store.local_path("a/y.123.tmp")
    with open(path, "wb") as file:
        file.write(b"half")
    assert store.list("a") == ["x"]
    assert store.leftovers("a") == []
    os.utime(path, (0, 0))
    assert store.leftovers("a") == ["a/y.123.tmp"]
    store.delete(store.leftovers("a"))
    assert os.listdir(store.local_path("a")) == ["x"]
