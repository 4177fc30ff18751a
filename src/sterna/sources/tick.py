"""The tick source: makes Spark run an epoch although no data came.

Spark calls nobody while its sources are idle. This source, unioned with the user's, is a directory that Spark
watches; a new file in it is new data, of no rows. ``Ticker`` drops one when the query wants an epoch (control
entries that are due, notifications that would fire) and no data is about to bring one: Spark remembers every
tick for ever, so they must be few. It polls, because anyone may append to the control stream from outside.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from sterna.errors import SternaError
from sterna.state.store import Store

DIRECTORY = "ticks"
KEPT_EPOCHS = 3
BUSY_SECONDS = 0.05
"""How soon to look again while data brings epochs anyway."""


def tick_frame(spark: Any, store: Store) -> Any:
    """The streaming DataFrame of ticks; its rows must be thrown away."""
    store.write(f"{DIRECTORY}/_made", b"")  # a hidden file, so that the directory exists
    return (
        spark.readStream.schema("value string")
        .option("ignoreMissingFiles", True)
        .text(spark_path(store, DIRECTORY))
    )


def spark_path(store: Store, path: str) -> str:
    """A path of the store as Spark names it."""
    name = store.name(path)
    return "s3a://" + name[len("s3://") :] if name.startswith("s3://") else name


class Ticker:
    """Drops a tick while there is something to do; at most one that Spark has not taken yet.

    Args:
        store: where ticks go.
        wants: whether there is something to do.
        idle: whether no epoch would come without a tick.
        epoch: the last epoch that was frozen.
    """

    def __init__(
        self, store: Store, wants: Callable[[], bool], idle: Callable[[], bool], epoch: Callable[[], int]
    ) -> None:
        self._store, self._wants, self._idle, self._epoch = store, wants, idle, epoch
        self._wake = threading.Event()
        self._stop = threading.Event()
        # Those of an earlier start may still be read again, if its last epoch is replayed.
        now = epoch()
        self._dropped = [
            (now, f"{DIRECTORY}/{name}") for name in store.list(DIRECTORY) if name.startswith("tick-")
        ]
        self._latest: int | None = None
        self._interval = 0.2 if store.is_local else 2.0
        self._thread = threading.Thread(target=self._run, name="sterna-ticker", daemon=True)

    def start(self) -> None:
        """Begins to look."""
        self._thread.start()

    def nudge(self) -> None:
        """Looks now rather than at the next poll."""
        self._wake.set()

    def stop(self) -> None:
        """Ends; joins the thread."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def tick(self) -> None:
        """Drops a tick, unless one is waiting."""
        epoch = self._epoch()
        if self._latest == epoch:
            return
        path = f"{DIRECTORY}/tick-{int(time.time() * 1e6):018d}"
        self._store.write(path, b"tick\n")
        self._dropped.append((epoch, path))
        self._latest = epoch

    def _tidy(self) -> None:
        # A tick is read in the epoch after it was dropped or in the one after that, and again if that one is
        # replayed.
        epoch = self._epoch()
        done = [path for dropped, path in self._dropped if dropped + KEPT_EPOCHS < epoch]
        if done:
            self._store.delete(done)
            self._dropped = [one for one in self._dropped if one[0] + KEPT_EPOCHS >= epoch]

    def _run(self) -> None:
        while not self._stop.is_set():
            pause = self._interval
            try:
                self._tidy()
                if not self._idle():
                    pause = BUSY_SECONDS
                elif self._wants():
                    self.tick()
            except (SternaError, OSError):
                # The query itself will meet the same trouble and report it.
                pass
            self._wake.wait(pause)
            self._wake.clear()
