"""Where workers sit: slots pinned to executors where there are several, anywhere where there is one.

Placement is a hint: correctness never depends on it.
"""

from __future__ import annotations

from typing import Any

from sterna.dataflow import Dataflow
from sterna.engine.epoch import Placement, plain_seats
from sterna.state.manifest import Manifest


class Pinned:
    """Placeholder until executors are pinned."""


class Placer:
    """Seats the workers of each epoch."""

    def __init__(self, spark: Any, flow: Dataflow) -> None:
        self.pinned = None

    def place(self, workers: tuple[int, ...]) -> Placement:
        """The seats of an epoch."""
        return Placement(plain_seats(workers), lambda *_: True)

    def learn(self, manifest: Manifest) -> None:
        """Takes note of where workers ran."""

    def close(self) -> None:
        """Releases the slots."""
