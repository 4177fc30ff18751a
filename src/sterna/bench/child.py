"""A process beside the benchmark that is always ended: by ``end``, or by leaving its context."""

from __future__ import annotations

import subprocess
import sys
from types import TracebackType
from typing import TypeVar

STOP_SECONDS = 10.0

_Child = TypeVar("_Child", bound="Child")


class Child:
    """A Python program of our own, run by its path and isolated.

    Importing Sterna, and Spark with it, would take seconds and memory.
    """

    def __init__(self, program: str, *arguments: str) -> None:
        self.process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-I", program, *arguments], stdout=subprocess.PIPE, text=True
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def end(self) -> str:
        """Ends it, by force if it does not listen; returns what it said."""
        self.process.terminate()
        try:
            said, _ = self.process.communicate(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            said, _ = self.process.communicate()
        return said

    def __enter__(self: _Child) -> _Child:  # noqa: PYI019 - Python 3.10 has no Self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.returncode is None:
            self.end()
