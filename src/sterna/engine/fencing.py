"""Incarnations: one start of a query, and how a later one fences an earlier one off.

On a local filesystem an operating-system lock on ``driver.lock`` keeps a second driver out while the first is
alive, and goes away with it. Everywhere, each start takes the next incarnation number, a file under
``incarnations/``; before an epoch is prepared or committed the driver looks for a greater one, and yields if
there is.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from typing import IO

from sterna.errors import CheckpointError, FencedError
from sterna.state.store import Store

DIRECTORY = "incarnations"


class Incarnation:
    """This start of the query."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock: IO[str] | None = None
        self._take_lock()
        self.number = self._take_number()

    def _take_lock(self) -> None:
        path = self._store.local_path("driver.lock")
        if path is None:
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        lock = open(path, "a+")  # noqa: SIM115 - held as long as the query runs
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.seek(0)
            holder = lock.read().strip() or "another process"
            lock.close()
            raise CheckpointError(
                f"the checkpoint {self._store.name('')} is in use by another running query ({holder}); stop "
                "that one first, or give this one a checkpoint of its own"
            ) from error
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {socket.gethostname()}")
        lock.flush()
        self._lock = lock

    def _take_number(self) -> int:
        while True:
            number = max(self._numbers(), default=0) + 1
            who = {"pid": os.getpid(), "host": socket.gethostname(), "started": time.time()}
            if self._store.create_exclusive(f"{DIRECTORY}/{number:09d}", json.dumps(who).encode()):
                old = [f"{DIRECTORY}/{n:09d}" for n in self._numbers() if n < number - 10]
                self._store.delete(old)
                return number

    def _numbers(self) -> list[int]:
        return [int(name) for name in self._store.list(DIRECTORY) if name.isdigit()]

    def check(self) -> None:
        """Raises ``FencedError`` if a later incarnation has taken over."""
        latest = max(self._numbers(), default=self.number)
        if latest > self.number:
            raise FencedError(
                f"incarnation {latest} of this query has taken over the checkpoint {self._store.name('')}; "
                f"this one (incarnation {self.number}) stops"
            )

    def release(self) -> None:
        """Lets the next start have the checkpoint."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
