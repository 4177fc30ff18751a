"""Plots of the sweeps: marks on two axes, one line a series.

Bands of time are behind them, and a legend is beside them. What a mark stands for is told by its shape and by
the legend, never by text beside it, so that no two labels can touch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from sterna.bench.axes import Axis, LogAxis
from sterna.bench.charts import latency_tick
from sterna.bench.evaluation.pictures import PAD, WIDTH, Picture, picture, top
from sterna.bench.markup import number, tag

LEFT, RIGHT, LEGEND, FOOT = 92.0, 40.0, 212.0, 58.0
BAND_LABELS = 22.0
PLOT = 330.0
CHARACTER = 7.2
"""How wide a character is, at most, on the average."""
SIZE = 5.5
_SQUARE = [(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)]
_CROSS = [
    (-1, -0.45), (-0.45, -1), (0, -0.5), (0.45, -1), (1, -0.45), (0.5, 0), (1, 0.45), (0.45, 1), (0, 0.5),
    (-0.45, 1), (-1, 0.45), (-0.5, 0),
]  # fmt: skip
SHAPES: tuple[list[tuple[float, float]], ...] = (
    [(math.cos(math.pi * i / 8), math.sin(math.pi * i / 8)) for i in range(16)],
    _SQUARE,
    [(0, -1.15), (1.1, 0.85), (-1.1, 0.85)],
    [(0, -1.25), (1.0, 0), (0, 1.25), (-1.0, 0)],
    _CROSS,
    [(0, 1.15), (1.1, -0.85), (-1.1, -0.85)],
    [(math.cos(math.pi * (2 * i + 1) / 6), math.sin(math.pi * (2 * i + 1) / 6)) for i in range(6)],
)
"""A circle, a square, triangles and others, as corners around the middle."""


@dataclass(frozen=True)
class Scale:
    """An axis with its label and its ticks."""

    label: str
    axis: Axis | LogAxis
    ticks: tuple[tuple[float, str], ...]

    @classmethod
    def times(cls, label: str, milliseconds: Iterable[float]) -> Scale:
        """Durations on a logarithmic axis."""
        axis = LogAxis.over(milliseconds)
        return cls(f"{label} (logarithmic)", axis, tuple((tick, latency_tick(tick)) for tick in axis.ticks()))

    @classmethod
    def ratios(cls, label: str, values: Iterable[float]) -> Scale:
        """Ratios on a logarithmic axis."""
        axis = LogAxis.over(values)
        return cls(f"{label} (logarithmic)", axis, tuple((tick, f"{tick:,g}×") for tick in axis.ticks()))

    @classmethod
    def steps(cls, label: str, values: Sequence[tuple[float, str]]) -> Scale:
        """A few positive amounts, all of them ticks, on a logarithmic axis."""
        amounts = [value for value, _ in values]
        room = max(1.25, (max(amounts) / min(amounts)) ** 0.05)
        axis = LogAxis(min(amounts) / room, max(amounts) * room)
        return cls(f"{label} (logarithmic)", axis, tuple(values))

    @classmethod
    def amounts(cls, label: str, values: Iterable[float], unit: str, most: int = 6) -> Scale:
        """Amounts from 0 on."""
        axis = Axis(max([1.0, *values]))
        return cls(
            label, axis, tuple((tick, f"{tick:,g} {unit}" if tick else "0") for tick in axis.ticks(most))
        )


@dataclass(frozen=True)
class Mark:
    """A point; ``shape`` is the number of what it stands for, and the spread is that of y."""

    x: float
    y: float
    shape: int = 0
    spread: tuple[float, float] | None = None


@dataclass(frozen=True)
class Series:
    """Marks that are joined, of a kind that has a colour; without shapes only the line is drawn."""

    name: str
    kind: str
    marks: tuple[Mark, ...]
    marked: bool = True


@dataclass(frozen=True)
class Band:
    """From where to where something happened along x."""

    start: float
    end: float
    name: str


@dataclass(frozen=True)
class _Frame:
    """Where the plot is in the picture."""

    x: Scale
    y: Scale
    right: float
    top: float
    height: float

    def across(self, value: float) -> float:
        return LEFT + (self.right - LEFT) * self.x.axis.place(value)

    def down(self, value: float) -> float:
        return self.top + self.height * (1 - self.y.axis.place(value))

    @property
    def bottom(self) -> float:
        return self.top + self.height


def plot(
    file: str,
    title: str,
    told: str,
    x: Scale,
    y: Scale,
    series: Sequence[Series],
    *,
    shapes: Sequence[str] = (),
    bands: Sequence[Band] = (),
    notes: Sequence[str] = (),
    height: float = PLOT,
) -> Picture:
    """The whole picture; ``shapes`` says what each shape stands for, where it is not the series.

    A single series needs no legend.
    """
    begin = top(notes) + (BAND_LABELS if bands else 10.0)
    series = [one for one in series if one.marks]
    legend = LEGEND if len(series) > 1 else RIGHT
    frame = _Frame(x, y, WIDTH - legend, begin, height)
    parts = [*_bands(bands, frame), *_axes(frame)]
    for one in series:
        parts += _series(one, frame)
    if len(series) > 1:
        parts += _legend(series, shapes, frame)
    return picture(file, title, told, parts, frame.bottom + FOOT, notes)


def _axes(frame: _Frame) -> list[ET.Element]:
    parts = []
    for value, label in frame.y.ticks:
        y = frame.down(value)
        parts.append(tag("line", class_="rule", x1=LEFT, x2=frame.right, y1=y, y2=y))
        parts.append(tag("text", label, x=LEFT - 8, y=y, dy="0.32em", class_="end"))
    bottom = frame.bottom
    parts.append(tag("line", class_="axis", x1=LEFT, x2=frame.right, y1=bottom, y2=bottom))
    for value, label in frame.x.ticks:
        x = frame.across(value)
        parts.append(tag("line", class_="axis", x1=x, x2=x, y1=bottom, y2=bottom + 5))
        parts.append(tag("text", label, x=x, y=bottom + 20, class_="middle"))
    middle = (LEFT + frame.right) / 2
    parts.append(tag("text", frame.x.label, x=middle, y=bottom + 42, class_="middle ink"))
    turn = f"translate({number(PAD)} {number(frame.top + frame.height / 2)}) rotate(-90)"
    parts.append(tag("text", frame.y.label, transform=turn, class_="middle ink"))
    return parts


def _series(series: Series, frame: _Frame) -> list[ET.Element]:
    places = [(frame.across(mark.x), frame.down(mark.y)) for mark in series.marks]
    parts = []
    for mark, (x, _) in zip(series.marks, places, strict=True):
        if mark.spread is not None:
            low, high = (frame.down(value) for value in mark.spread)
            parts.append(tag("line", class_=f"whisker {series.kind}", x1=x, x2=x, y1=low, y2=high))
    if len(places) > 1:
        corners = "L".join(f"{number(x)} {number(y)}" for x, y in places)
        parts.append(tag("path", d=f"M{corners}", class_=f"series {series.kind}"))
    if series.marked:
        for mark, (x, y) in zip(series.marks, places, strict=True):
            parts.append(_shape(mark.shape, x, y, f"mark fill-{series.kind}"))
    return parts


def _shape(which: int, x: float, y: float, kind: str) -> ET.Element:
    corners = SHAPES[which % len(SHAPES)]
    d = "L".join(f"{number(x + SIZE * a)} {number(y + SIZE * b)}" for a, b in corners)
    return tag("path", d=f"M{d}Z", class_=kind)


def _legend(series: Sequence[Series], shapes: Sequence[str], frame: _Frame) -> list[ET.Element]:
    left, y, parts = frame.right + 22, frame.top + 8, []
    for one in series:
        parts.append(tag("path", d=f"M{number(left)} {number(y)}h26", class_=f"series {one.kind}"))
        if one.marked and not shapes:
            parts.append(_shape(one.marks[0].shape, left + 13, y, f"mark fill-{one.kind}"))
        parts.append(tag("text", one.name, x=left + 36, y=y, dy="0.32em", class_="ink"))
        y += 22
    y += 10
    for number_, label in enumerate(shapes):
        parts.append(_shape(number_, left + 13, y, "grey"))
        parts.append(tag("text", label, x=left + 36, y=y, dy="0.32em"))
        y += 20
    return parts


def _bands(bands: Sequence[Band], frame: _Frame) -> list[ET.Element]:
    """The bands, and their names above them, moved to the right where they would touch."""
    parts, free = [], LEFT
    for band in bands:
        start, end = frame.across(band.start), frame.across(band.end)
        wide = max(end - start, 2.0)
        half = CHARACTER * len(band.name) / 2
        middle = max((start + end) / 2, free + half)
        free = middle + half + 6
        parts.append(tag("rect", class_="shade", x=start, width=wide, y=frame.top, height=frame.height))
        parts.append(tag("line", class_="bracket", x1=start, x2=start + wide, y1=frame.top, y2=frame.top))
        parts.append(tag("text", band.name, x=middle, y=frame.top - 8, class_="moving middle"))
    return parts
