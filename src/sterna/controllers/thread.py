"""Threads that ask the controllers, so that no epoch ever waits for one of them.

One of them is told of every committed epoch and asks at once; while the query is idle it asks now and then,
because time alone may be a reason to act. Another one watches it: if a controller does not answer for long,
whether epochs come or not, it is given up and the others are asked by a new thread; the one that hangs does
nothing more, whatever it answers. Neither ends by what goes wrong while they ask; the history tells.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable

from sterna.controllers.running import REMEMBERED, Controllers
from sterna.errors import SternaError
from sterna.state.manifest import Manifest

IDLE_SECONDS = 10.0

LOOK_SECONDS = 0.01
"""The least time between two looks at whether a controller has answered."""


class Asking:
    """See the module's docstring.

    Args:
        controllers: whom to ask.
        idle: whether no epoch is running.
    """

    def __init__(self, controllers: Controllers, idle: Callable[[], bool]) -> None:
        self._controllers, self._idle = controllers, idle
        self._new: deque[Manifest] = deque(maxlen=REMEMBERED)
        self._wake, self._stopped = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begins to ask, if there is anyone to ask."""
        if self._controllers:
            self._begin()
            threading.Thread(target=self._watch, name="sterna-controllers-watch", daemon=True).start()

    def _begin(self) -> None:
        self._thread = threading.Thread(target=self._run, name="sterna-controllers", daemon=True)
        self._thread.start()

    def committed(self, manifest: Manifest) -> None:
        """Has them asked about an epoch; returns at once."""
        if self._thread is None:
            return
        self._new.append(manifest)
        self._wake.set()

    def stop(self) -> None:
        """Ends; waits a little for an answer that is on its way."""
        self._stopped.set()
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)

    def _watch(self) -> None:
        """Gives up on a controller as soon as its time is over."""
        while not self._stopped.wait(max(self._controllers.patience(), LOOK_SECONDS)):
            try:
                given_up = self._controllers.give_up()
            except Exception:  # noqa: BLE001 - it is given up, though that could not be written down
                given_up = True
            if given_up:
                self._begin()
                self._wake.set()

    def _run(self) -> None:
        mine = threading.current_thread()
        while True:
            told = self._wake.wait(IDLE_SECONDS)
            self._wake.clear()
            if self._thread is not mine:
                self._wake.set()  # it was meant for the thread that asks in its stead
                return
            if self._stopped.is_set():
                return
            if not told and not self._idle():
                continue
            self._ask()

    def _ask(self) -> None:
        """Has them asked about what is new; whatever goes wrong, they are asked again."""
        try:
            while self._new:
                self._controllers.committed(self._new.popleft())
            self._controllers.ask()
        except (SternaError, OSError):
            return  # the query itself will meet the same trouble and report it
        except BaseException as error:  # noqa: BLE001 - without this thread none would ever be asked again
            with contextlib.suppress(Exception):
                self._controllers.stumbled(error)
