"""What of a run can be drawn: finite numbers in order of time, and the axes that all runs share.

Whatever is missing, not finite or before the run's beginning is left out here, once, so that the charts need
not ask.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from sterna.bench.axes import Axis, LogAxis
from sterna.bench.report_data import Report, Run, Slot
from sterna.readable import known

Point = tuple[float, float]
LONGEST_SILENCE_S = 2.0
"""Slots without records further apart than this are shown as a gap: an epoch is shorter, an outage is not."""
ALIKE = 3.0
"""Runs whose lengths differ by no more than this share their axis of time."""


@dataclass(frozen=True)
class Axes:
    """The axes of all timelines of a page."""

    latency: LogAxis
    memory: Axis
    seconds: Axis | None
    """The axis of time, if the runs are about as long as each other."""

    @classmethod
    def of(cls, report: Report) -> Axes:
        """Axes on which every run of the report can be drawn."""
        runs = report.get("runs") or []
        still = [known((report.get("steady") or {}).get("max_ms"))]
        still += [known(steady_max(report, run)) for run in runs]
        shown = [value for run in runs for slot in slots(run) for value in _drawn(slot)]
        ends = [end(run) for run in runs if end(run) > 0]
        used = [value for run in runs for _, value in [*python_memory(run), *jvm_memory(run)]]
        return cls(
            LogAxis.over(shown + [value for value in still if value]),
            Axis(1.1 * min(max([1.0, *used]), 1e300)),
            Axis(max([1.0, *ends])) if ends and max(ends) <= ALIKE * min(ends) else None,
        )

    def time(self, run: Run) -> Axis:
        """The axis of time of a run."""
        return self.seconds or Axis(max(end(run), 1.0))


def steady_max(report: Report, run: Run) -> float | None:
    """The largest latency while nothing moves that a run is compared with."""
    own = run.get("steady_max_ms")
    return (report.get("steady") or {}).get("max_ms") if known(own) is None else own


def slots(run: Run) -> list[Slot]:
    """The slots in which something was acknowledged, in order."""
    return _ordered(slot for slot in run.get("timeline") or [] if slot.get("records", 1))


def _ordered(found: Iterable[Slot]) -> list[Slot]:
    return sorted((slot for slot in found if known(slot.get("t")) is not None), key=lambda slot: slot["t"])


def largest(run: Run) -> list[Point]:
    """The largest latency of each slot."""
    return _points((slot["t"], slot.get("max_ms")) for slot in slots(run))


def p99(run: Run) -> list[Point]:
    """The 99th percentile of each slot."""
    return _points((slot["t"], slot.get("p99_ms")) for slot in slots(run))


def moved(run: Run) -> list[Point]:
    """Bytes moved so far."""
    return sorted(_points(run.get("moved") or []))


def collections(run: Run) -> list[Point]:
    """Garbage collections: when, and how many milliseconds."""
    return sorted(_points(run.get("gc") or []))


def python_memory(run: Run) -> list[Point]:
    """Anonymous memory of the Python workers."""
    return sorted(
        _points((at["t"], at.get("python_anonymous")) for at in run.get("memory") or [] if "t" in at)
    )


def jvm_memory(run: Run) -> list[Point]:
    """Resident memory of the JVM."""
    return sorted(_points((at["t"], at.get("jvm_resident")) for at in run.get("memory") or [] if "t" in at))


def span(run: Run) -> Point | None:
    """From when to when state moved."""
    given = run.get("migration")
    if not given:
        return None
    start, stop = known(given.get("start")), known(given.get("end"))
    return None if start is None or stop is None else (start, max(start, stop))


def end(run: Run) -> float:
    """When the last thing happens that is drawn of a run."""
    every = [*largest(run), *p99(run), *moved(run), *collections(run), *python_memory(run), *jvm_memory(run)]
    moving = span(run)
    return max([t for t, _ in every] + [moving[1] if moving else 0.0])


def unbroken(points: list[Point]) -> list[list[Point]]:
    """The points, cut where nothing was acknowledged for long."""
    pieces = [points[:1]]
    for before, point in pairwise(points):
        if point[0] - before[0] > LONGEST_SILENCE_S:
            pieces.append([])
        pieces[-1].append(point)
    return [piece for piece in pieces if piece]


def silences(points: list[Point]) -> list[Point]:
    """From when to when nothing was acknowledged for long."""
    return [(a[0], b[0]) for a, b in pairwise(points) if b[0] - a[0] > LONGEST_SILENCE_S]


def _drawn(slot: Slot) -> list[float]:
    found = (known(slot.get("max_ms")), known(slot.get("p99_ms")))
    return [value for value in found if value is not None]


def _points(pairs: Iterable[tuple[float, float | None]]) -> list[Point]:
    checked = ((known(t), known(value)) for t, value in pairs)
    return [(t, value) for t, value in checked if t is not None and value is not None]
