"""Which executor this process belongs to."""

from __future__ import annotations

import os
import socket
from functools import lru_cache

import psutil


@lru_cache(maxsize=1)
def executor() -> str:
    """Identifies the executor that this Python worker belongs to: its host and its JVM's process id."""
    pid = os.getppid()
    try:
        for parent in psutil.Process().parents():
            pid = parent.pid
            if "java" in parent.name():
                break
    except (OSError, psutil.Error):
        pass
    return f"{socket.gethostname()}/{pid}"
