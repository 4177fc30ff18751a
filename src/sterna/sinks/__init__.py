"""Where outputs go: the sinks.

They are ``parquet(path)``, ``console()``, ``memory()``, ``noop()``, or any callable ``(df, epoch)``. All are
idempotent by epoch. A callable gets *staged* output: a DataFrame over files that are written once and are the
same on a replay, so it may evaluate it twice, partly, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sterna.errors import InvalidInput
from sterna.sinks.base import Sink
from sterna.sinks.files import Parquet, Staged
from sterna.sinks.small import Console, Memory, Noop

__all__ = ["Sink", "as_sink", "console", "memory", "noop", "parquet"]


def parquet(path: str) -> Parquet:
    """Parquet files below ``path``, one for each epoch and worker.

    Readers see whole epochs' files or none.
    """
    return Parquet(path)


def console(rows: int = 20) -> Console:
    """Prints the first rows of each epoch."""
    return Console(rows)


def memory() -> Memory:
    """Keeps all output in the driver's memory; for tests and notebooks."""
    return Memory()


def noop() -> Noop:
    """Throws output away, after it has been made; for benchmarks."""
    return Noop()


def as_sink(sink: Sink | Callable[[Any, int], Any]) -> Sink:
    """A sink, or a callable ``(df, epoch)`` taken as one."""
    if isinstance(sink, Sink):
        return sink
    if callable(sink):
        return Staged(sink)
    raise InvalidInput(f"sink={sink!r} is neither one of sterna.sinks nor a callable (df, epoch)")
