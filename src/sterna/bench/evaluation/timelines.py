"""Latency over time: the timelines of the HTML report in one picture, side by side or one below another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from sterna.bench import charts, series
from sterna.bench.evaluation.entries import Entry
from sterna.bench.evaluation.pictures import PAD, WIDTH, Picture, picture, top
from sterna.bench.evaluation.words import listed
from sterna.bench.latency import SLOT_SECONDS
from sterna.bench.markup import number, tag
from sterna.bench.report_data import Run, Slot
from sterna.bench.series import Axes
from sterna.readable import known

MARGIN_LEFT, MARGIN_RIGHT, HEAD, BETWEEN, FOOT = 84.0, 44.0, 26.0, 26.0, 30.0
AROUND_SECONDS = 20.0
MOST_POINTS = 320
MOST_SLOTS = 7
"""Slots are taken together by at most so many: more, and a gap between two would look like an outage."""
NOTE = (
    "Dark: the longest latency of the records that were due in a slot of time; light: their 99th percentile; "
    "dotted: the longest in the quiet time before. Axis of latency logarithmic, the same in all panels; x is "
    "time."
)


@dataclass(frozen=True)
class Panel:
    """A run, and the longest latency of the quiet time that it is compared with."""

    run: Run
    quiet_max: float | None


def run_around(entry: Entry, name: str, timeline: list[Entry]) -> Run:
    """A migration that began at ``second`` of a whole timeline, with some of what was before and after it."""
    start = entry.number("second")
    begin, end = max(0.0, start - AROUND_SECONDS), start + entry.number("seconds")
    within = [slot for slot in timeline if begin <= slot.number("second") < end + AROUND_SECONDS]
    return {
        "name": name,
        "strategy": entry.text("strategy"),
        "timeline": [_slot(slot, slot.number("second") - begin) for slot in within],
        "migration": {"start": start - begin, "end": end - begin},
    }


def run_alone(entry: Entry) -> Run:
    """A migration with a timeline of its own."""
    run: Run = {
        "name": entry.text("name"),
        "strategy": entry.text("strategy"),
        "timeline": [_slot(slot, slot.number("t")) for slot in entry.each("timeline")]
        if entry.has("timeline")
        else [],
    }
    if entry.has("migration"):
        run["migration"] = {
            "start": entry.number("migration", "start"),
            "end": entry.number("migration", "end"),
        }
    return run


def _slot(slot: Entry, at: float) -> Slot:
    return {
        "t": round(at, 3),
        "records": int(slot.number("records")),
        "p99_ms": slot.maybe("p99_ms"),
        "max_ms": slot.maybe("max_ms"),
    }


def timelines(file: str, title: str, panels: Sequence[Panel], columns: int) -> Picture:
    """A picture of all panels on the same axis of latency."""
    quiet = [value for panel in panels if (value := known(panel.quiet_max)) is not None]
    runs = [thinned(panel.run) for panel in panels]
    axes = Axes.of({"runs": runs, "steady": {"max_ms": max(quiet, default=None)}})
    notes = [NOTE]
    wide = (WIDTH - 2 * PAD + 16) / columns
    parts: list[ET.Element] = []
    y, row_height = top(notes), 0.0
    for i, (panel, run) in enumerate(zip(panels, runs, strict=True)):
        column = i % columns
        if i and not column:
            y += row_height + BETWEEN
        chart = charts.timeline(run, axes, panel.quiet_max)
        parts += _placed(chart, run, PAD - 8 + wide * column, y, wide)
        row_height = HEAD + float(chart.get("height", "0"))
    told = f"{title}: {listed(run['name'] for run in runs)}."
    return picture(file, title, told, parts, y + row_height + FOOT, notes)


def _placed(chart: ET.Element, run: Run, x: float, y: float, wide: float) -> list[ET.Element]:
    """A chart at a place, with the run's name above it and the names of its axes beside it."""
    height = float(chart.get("height", "0"))
    for name, value in (
        ("x", x + MARGIN_LEFT),
        ("y", y + HEAD),
        ("width", wide - MARGIN_LEFT - MARGIN_RIGHT),
    ):
        chart.set(name, number(value))
    # The role and the sentence are those of the whole picture here.
    for name in ("role", "aria-label"):
        chart.attrib.pop(name, None)
    turn = f"translate({number(x + 16)} {number(y + HEAD + height / 2)}) rotate(-90)"
    return [
        tag("text", run["name"], x=x + MARGIN_LEFT, y=y + 14, class_="name"),
        chart,
        tag("text", "latency", transform=turn, class_="middle ink"),
        tag(
            "text",
            "time",
            x=x + (wide + MARGIN_LEFT - MARGIN_RIGHT) / 2,
            y=y + HEAD + height + 14,
            class_="middle ink",
        ),
    ]


def thinned(run: Run) -> Run:
    """The run with several slots taken together where there are many.

    They have the highest of each latency, and no garbage collections.
    """
    slots = series.slots(run)
    together = min(max(1, math.ceil(len(slots) / MOST_POINTS)), MOST_SLOTS)
    wide = SLOT_SECONDS * together
    found: dict[int, Slot] = {}
    for slot in slots:
        bucket = math.floor(slot["t"] / wide + 1e-9)
        kept = found.setdefault(bucket, {"t": round(bucket * wide, 3), "records": 0})
        kept["records"] += slot.get("records", 1)
        kept["max_ms"] = _higher(kept.get("max_ms"), slot.get("max_ms"))
        kept["p99_ms"] = _higher(kept.get("p99_ms"), slot.get("p99_ms"))
    return {**run, "timeline": list(found.values()), "gc": [], "memory": []}


def _higher(one: float | None, other: float | None) -> float | None:
    values = [value for value in (known(one), known(other)) if value is not None]
    return max(values, default=None)
