"""Named places at which a test may end the process or raise, to see that nothing is lost.

``crash_point(name)`` does nothing unless a hook is set (by the in-process twin), or the environment variable
``STERNA_CRASH`` names this point, as ``name`` or ``name@epoch``: then the process kills itself, as ``kill
-9`` would. If ``STERNA_CRASH_ONCE`` names a file, the first process that gets there makes it and dies, and
all others live: executors inherit the driver's environment, and a task that is tried again must not meet the
same end.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

POINTS = (
    "before-freeze",
    "after-freeze",
    "after-route",
    "before-apply",
    "after-flush",
    "before-receipt",
    "after-job",
    "after-prepare",
    "during-publish",
    "after-publish",
    "after-commit",
)

_hook: Callable[[str, int], None] | None = None


def set_hook(hook: Callable[[str, int], None] | None) -> None:
    """Calls ``hook(name, epoch)`` at every crash point; it may raise."""
    global _hook  # noqa: PLW0603 - one hook for the process is the point
    _hook = hook


def crash_point(name: str, epoch: int) -> None:
    """A place where a test may strike."""
    if _hook is not None:
        _hook(name, epoch)
    wanted = os.environ.get("STERNA_CRASH")
    if wanted and wanted in (name, f"{name}@{epoch}"):
        once = os.environ.get("STERNA_CRASH_ONCE")
        if once is None or _first(once):
            os.kill(os.getpid(), signal.SIGKILL)


def _first(marker: str) -> bool:
    try:
        with open(marker, "x") as file:
            file.write(f"{os.getpid()}\n")
    except FileExistsError:
        return False
    return True
