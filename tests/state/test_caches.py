"""Which run caches a process holds."""

from __future__ import annotations

import weakref

import pyarrow.fs as pafs

from sterna.state import Store, cache_for
from sterna.state.caches import Caches


def test_one_cache_for_a_store_in_a_process(store, tmp_path):
    assert cache_for(store) is cache_for(Store.open(store.uri))
    far = [Store.open("base", filesystem=pafs._MockFileSystem()) for _ in range(2)]
    assert cache_for(far[0], str(tmp_path)) is cache_for(far[0], str(tmp_path))
    assert cache_for(far[0], str(tmp_path)) is not cache_for(far[1], str(tmp_path))


def test_what_nobody_has_asked_for_in_a_while_is_let_go_of(tmp_path):
    now = [0.0]
    caches = Caches(60.0, lambda: now[0])
    first, second = (Store.open(str(tmp_path / name)) for name in ("first", "second"))
    held, kept = weakref.ref(caches.get(first)), caches.get(second)
    now[0] = 60.0
    assert caches.get(second) is kept
    assert held() is not None
    now[0] = 61.0
    assert caches.get(second) is kept
    assert held() is None
    now[0] = 1000.0
    assert caches.get(second) is kept  # who asks has it, however long ago that was
