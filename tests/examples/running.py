"""An example on a twin, from its first epoch to the end of time."""

from __future__ import annotations

import sterna
from sterna.sinks import memory
from sterna.testing import Clock, Crash
from twin import small

STRATEGIES = {
    "all_at_once": sterna.all_at_once(),
    "fluid": sterna.fluid(),
    "batched": sterna.batched(5),
    "matched": sterna.matched(),
    "paced": sterna.paced(bytes_per_epoch=20_000),
}


class Run:
    """A query that starts again after a crash."""

    def __init__(self, flow, path, **options):
        self.sink = memory()
        self._arguments = (flow, path / "checkpoint")
        self._options = {
            "sink": self.sink,
            "workers": 4,
            "watermark_delay": 0,
            "clock": Clock(),
            "hosts": lambda slot: f"host{slot % 2}",
            **options,
        }
        self._start()

    def _start(self):
        flow, path = self._arguments
        self.twin = small.start(flow, path, **self._options)

    def epoch(self, *partitions):
        number = self.twin.next_epoch
        try:
            self.twin.epoch(list(partitions), number=number)
        except Crash:
            self.twin.close()
            self._start()
            self.twin.epoch(list(partitions), number=number)

    def end(self):
        """Lets all time pass."""
        self.twin.flush()
        self.twin.close()
        return self

    def epochs(self):
        """The output of each epoch, in an order of its own."""
        return [sorted(map(str, self.sink.epochs[number].to_pylist())) for number in sorted(self.sink.epochs)]
