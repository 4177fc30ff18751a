"""The run caches of a process, one for each store.

A process may serve one query after another. If it kept the files of all of them open, those that are deleted,
as with a checkpoint that is gone, would go on taking memory and disk, and every open file makes the garbage
collection after a task longer: in a session of ten queries epochs came to take several times as long as in
the first one. So a cache that nobody has asked for in a while is let go of; whoever comes back to its store
gets a new one, which opens and checks its files again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from sterna.state.runs import RunCache
from sterna.state.store import Store


@dataclass
class _Held:
    """A cache, and when it was last asked for."""

    cache: RunCache
    asked: float


class Caches:
    """See the module's docstring.

    Args:
        idle: after how many seconds a cache is let go of.
        clock: tells the seconds.
    """

    def __init__(self, idle: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._idle, self._clock = idle, clock
        self._held: list[_Held] = []
        self._lock = threading.Lock()

    def get(self, store: Store, local_dir: str | None = None) -> RunCache:
        """The one cache for a store, whose copies, if it is not local, are in a directory."""
        with self._lock:
            now = self._clock()
            for held in self._held:
                if held.cache.local_dir == local_dir and held.cache.store.same(store):
                    break
            else:
                held = _Held(RunCache(store, local_dir), now)
                self._held.append(held)
            held.asked = now
            self._held = [one for one in self._held if one.asked >= now - self._idle]
            return held.cache


_CACHES = Caches()


def cache_for(store: Store, local_dir: str | None = None) -> RunCache:
    """This process's one cache for a store."""
    return _CACHES.get(store, local_dir)
