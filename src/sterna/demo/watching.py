"""Shows a run while it is under way, from a thread of its own.

It also does so while whoever runs it waits for something.

Contract. ``Watcher`` reads what others write (the reports of a run, the last manifest of a query) and changes
nothing. What it calls the latency now is how long the oldest record has waited that is not acknowledged yet,
or had to wait in the last epoch, whichever is longer; so an outage grows before one's eyes.
"""

from __future__ import annotations

import itertools
import threading
import time
from types import TracebackType

import numpy as np

import sterna
from sterna.bench.acknowledge import Report
from sterna.bench.latency import Histogram
from sterna.bench.phases import Run, waits
from sterna.handle import MigrationHandle
from sterna.live import Migration, Snapshot, View, Worker
from sterna.strategies import describe

EVERY_S = 0.25
MINUTE_S, SLOT_S = 60.0, 0.5


class Watcher:
    """Feeds a view; a context manager. Say what is going on by setting its attributes."""

    def __init__(self, view: View) -> None:
        self.phase, self.message = "starting", ""
        self.rate: float | None = None
        self.query: sterna.Query | None = None
        self.moving: MigrationHandle | None = None
        self._run: Run | None = None
        self._view, self._began = view, time.monotonic()
        self._over: tuple[int, Histogram] = (0, Histogram())
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sterna-demo-view", daemon=True)

    def __enter__(self) -> Watcher:  # noqa: PYI034 - Python 3.10 has no Self
        self._view.__enter__()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()
        self._view.__exit__(kind, error, trace)

    def say(self, phase: str, message: str = "") -> None:
        """Something else begins."""
        self.phase, self.message = phase, message

    def watch(self, run: Run | None) -> None:
        """From now on, the latencies are those of this run; or there are none."""
        self._run, self._over = run, (0, Histogram())

    def _watch(self) -> None:
        while not self._end.wait(EVERY_S):
            self._view.update(self.snapshot())

    def snapshot(self) -> Snapshot:
        """What there is to see now."""
        shot: Snapshot = {
            "elapsed": time.monotonic() - self._began,
            "phase": self.phase,
            "rows_per_second": self.rate,
            "message": self.message,
            "migration": _migration(self.moving),
            "workers": _workers(self.query),
        }
        reports = list(self._run.reports) if self._run is not None else []
        if reports:
            self._latencies(shot, reports, time.time())
        return shot

    def _latencies(self, shot: Snapshot, reports: list[Report], now: float) -> None:
        recent = [report for report in reports if report.ended >= now - MINUTE_S] or reports[-1:]
        waited = waits(recent)
        oldest = now - reports[-1].began
        # Percentiles take milliseconds to make, so they are made once a second.
        if int(now) != self._over[0]:
            self._over = int(now), _histogram(recent)
        slots = np.zeros(round(MINUTE_S / SLOT_S))
        for ended, wait in [*waited, (now, oldest)]:
            slot = min(int((ended - now + MINUTE_S) / SLOT_S), len(slots) - 1)
            slots[max(slot, 0)] = max(slots[max(slot, 0)], wait * 1e3)
        shot["latency_now_ms"] = max(oldest, waited[-1][1] if waited else 0.0) * 1e3
        shot["p99_ms"] = self._over[1].percentile(99) * 1e3 or None
        shot["max_ms"] = max([oldest, *(wait for _, wait in waited)]) * 1e3
        shot["epoch"] = reports[-1].epoch
        shot["history"] = slots.tolist()


def _histogram(reports: list[Report]) -> Histogram:
    """The latencies of the records of some epochs, as far as their reports tell."""
    found = Histogram()
    for one, other in itertools.pairwise(reports):
        if other.epoch == one.epoch + 1:
            found.record_span(other.ended - other.began, other.ended - one.began, other.began - one.began)
    return found


def _workers(query: sterna.Query | None) -> list[Worker]:
    if query is None:
        return []
    configuration, amounts = query.configuration(), query.statistics().bytes
    if len(amounts) != configuration.bins:  # a manifest later
        return []
    held = np.bincount(configuration.owners, amounts, configuration.workers)
    return [
        {"worker": worker, "bins": int(bins), "bytes": int(held[worker])}
        for worker, bins in enumerate(configuration.owned())
    ]


def _migration(handle: MigrationHandle | None) -> Migration | None:
    if handle is None:
        return None
    progress = handle.progress()
    if "bins" not in progress:  # it waits for its first epoch
        return None
    ends = progress.get("estimated_end")
    return {
        "strategy": describe(progress["strategy"]),
        "bins_done": progress["bins"],
        "bins_total": progress["bins"] + progress.get("bins_left", 0),
        "bytes": progress["bytes"],
        "eta_s": None if ends is None else max(ends - time.time(), 0.0),
    }
