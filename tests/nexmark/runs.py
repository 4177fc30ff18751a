"""A query on a twin of the engine."""

from __future__ import annotations

from nexmark import reference
from sterna.engine.coordinator import Options
from sterna.sinks import memory
from sterna.testing import Clock, Crash, Twin


class Run:
    """A query on a twin that starts again after a crash."""

    def __init__(self, flow, path, delay=0, bins=16, **twin):
        self._arguments = (flow, str(path), Options(bins, 4, delay))
        self._more = {"clock": Clock(), **twin}
        self.sink = memory()
        self._start()

    def _start(self):
        flow, path, options = self._arguments
        self.twin = Twin(flow, path, self.sink, options, **self._more)

    def epoch(self, tables):
        number = self.twin.next_epoch
        try:
            self.twin.epoch(tables, number=number)
        except Crash:
            self.twin.close()
            self._start()
            self.twin.epoch(tables, number=number)

    def answer(self, query):
        self.twin.flush()
        self.twin.close()
        rows = [tuple(row.values()) for row in self.sink.table().to_pylist()]
        if query in reference.LAST_OF_KEY:
            rows = list({row[0]: row for row in rows}.values())
        return reference.comparable(rows)
