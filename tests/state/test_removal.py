"""Files are deleted by a thread, and nobody waits for it."""

from __future__ import annotations

import threading

import pytest

from sterna.engine.removal import Removal
from sterna.errors import StateError


class Held:
    """A store whose deletions wait until they are let go."""

    def __init__(self, store):
        self._store, self.go, self.fails = store, threading.Event(), False

    def delete(self, paths):
        assert self.go.wait(60)
        if self.fails:
            raise StateError("the disk is gone")
        self._store.delete(paths)


def test_files_go_in_the_background_and_all_of_them_by_the_end(store):
    for number in range(4):
        store.write(f"runs/{number}", b"x")
    held = Held(store)
    removal = Removal(held)
    removal.remove(["runs/0", "runs/1"])
    removal.remove(["runs/2", "runs/nobody"])
    assert sorted(store.list("runs")) == ["0", "1", "2", "3"]
    held.go.set()
    removal.close()
    assert store.list("runs") == ["3"]


def test_what_cannot_be_deleted_is_told_at_the_next_call_and_once(store):
    held = Held(store)
    held.fails = True
    held.go.set()
    removal = Removal(held)
    removal.remove(["runs/0"])
    removal.close()
    with pytest.raises(StateError, match="the disk is gone"):
        removal.remove(["runs/1"])
    held.fails = False
    removal.remove(["runs/1"])
    removal.close()


def test_nothing_to_delete_needs_no_thread(store):
    before = threading.active_count()
    Removal(store).close()
    assert threading.active_count() == before
