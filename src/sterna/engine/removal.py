"""Removing files while nobody waits for it.

Unlinking a file frees all of its pages, which takes longer the larger it is, and a distant store takes a
round trip for each: an epoch has no reason to wait for either.

Contract. ``Removal.remove(paths)`` returns at once, and a thread deletes the files, in that order. More than
``MOST`` that wait make the caller wait. What the thread could not delete raises at the next call. ``close``
returns when everything is deleted, or has failed to be: files that no manifest names do no harm, and are
swept (``garbage``), as are those that a process leaves that dies.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence

from sterna.errors import SternaError
from sterna.state.store import Store

MOST = 1_000
"""How many lists of files may wait."""


class Removal:
    """A thread that deletes files of a store; it begins with the first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: queue.Queue[list[str] | None] = queue.Queue(MOST)
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def remove(self, paths: Sequence[str]) -> None:
        """See the module's docstring."""
        self._complain()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="sterna-removal", daemon=True)
            self._thread.start()
        self._waiting.put(list(paths))

    def close(self) -> None:
        """See the module's docstring."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        while (paths := self._waiting.get()) is not None:
            try:
                self._store.delete(paths)
            except (SternaError, OSError) as error:
                self._error = error

    def _complain(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error
