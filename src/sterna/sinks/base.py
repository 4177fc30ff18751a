"""What a sink is: a half that runs in the tasks and a half that runs at the driver.

The task half writes one worker's output somewhere no reader looks yet and returns a small JSON description,
which becomes part of the epoch's manifest. The driver half publishes these parts once the manifest is
durable. Publishing is idempotent by epoch: after a crash it is done again with the same parts. An epoch that
was committed is never published again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import pyarrow as pa

from sterna.state.store import Store

Part = dict[str, Any]


class TaskSink(ABC):
    """The half that runs in the tasks; picklable."""

    @abstractmethod
    def write(self, batch: pa.RecordBatch, epoch: int, worker: int, attempt: str) -> Part:
        """Writes one worker's output of one epoch; several attempts may do so, under names of their own."""


class Sink(ABC):
    """The half that runs at the driver."""

    @abstractmethod
    def open(self, checkpoint: Store, schema: pa.Schema, spark: Any, incarnation: int) -> None:
        """Gets ready to run; called once at each start of a query, before its first epoch."""

    @abstractmethod
    def task(self) -> TaskSink:
        """The half for the tasks."""

    @abstractmethod
    def publish(self, epoch: int, parts: list[Part]) -> None:
        """Makes the output of an epoch visible; called again with the same parts after a crash."""

    def takes(self, part: Part) -> bool:  # noqa: ARG002 - most sinks have parts of their own kind
        """Whether a part is of the kind that this sink's tasks write."""
        return True

    def forget(self, epoch: int, parts: list[Part]) -> None:  # noqa: B027 - most sinks keep nothing
        """Removes what was kept only for a replay of an epoch that can't be replayed any more."""
