"""The charts of a report, as SVG that is as wide as the page.

A chart has no view box: lengths along x are percentages of its width, and only the lines are in an inner
drawing that stretches. So text keeps its size on a telephone and on a wide screen. Labels of axes hang over
the chart's edges, where the style sheet leaves room. Amounts are labelled where they are drawn; there are no
legends.
"""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree as ET

from sterna.bench import series
from sterna.bench.axes import Axis
from sterna.bench.markup import number, share, tag
from sterna.bench.report_data import Run
from sterna.bench.series import Axes, Point
from sterna.readable import duration, known, milliseconds, size

WIDTH = 1000.0
"""Units along x of the inner drawing, which is stretched to the chart's width."""
HEAD, PLOT, MOVED, GAP, COLLECTIONS, FOOT = 20.0, 170.0, 34.0, 8.0, 16.0, 20.0
MEMORY = 84.0
LINE_HEIGHT = 14.0


def timeline(run: Run, axes: Axes, steady_max: float | None) -> ET.Element:
    """Latency over time with the migration, the bytes moved so far and the garbage collections."""
    time, moved, collections = axes.time(run), series.moved(run), series.collections(run)
    plot_end = HEAD + PLOT
    moved_end = plot_end + (MOVED if moved else GAP)
    bottom = moved_end + (COLLECTIONS if collections else 0)
    label = _described(run)
    return _chart(
        label,
        bottom + FOOT,
        "timeline",
        [
            *_migration(run, time, moved_end),
            *_latency_grid(axes, steady_max),
            *_silences(run, time),
            *_latency_lines(run, axes, time),
            *(_moved(moved, time, plot_end) if moved else []),
            *(_collections(collections, time, moved_end) if collections else []),
            *_seconds(time, bottom),
            *_latency_labels(run, axes, time),
            tag("line", class_="cursor", x1="0", x2="0", y1=HEAD, y2=moved_end),
        ],
    )


def memory(run: Run, axes: Axes) -> ET.Element | None:
    """Memory over time, if it was measured."""
    lines = [
        (what, points)
        for what, points in (
            ("JVM, resident", series.jvm_memory(run)),
            ("Python workers, anonymous", series.python_memory(run)),
        )
        if points
    ]
    if not lines:
        return None
    time, bottom = axes.time(run), HEAD + MEMORY

    def y(value: float) -> float:
        return bottom - MEMORY * axes.memory.place(value)

    peaks = [max(value for _, value in points) for _, points in lines]
    labels = [f"{what}: at most {size(peak)}" for (what, _), peak in zip(lines, peaks, strict=True)]
    places = _apart([y(peak) - 6 for peak in peaks], bottom - 4)
    parts = [
        rule
        for tick in axes.memory.ticks(3)
        for rule in _rule(y(tick), size(tick).replace(".00 ", " ") if tick else "0")
    ]
    parts.append(_drawing(bottom, [_line(points, time, y, "memory") for _, points in lines]))
    parts += [
        tag("text", label, x="0", dx="4", y=place, class_="halo")
        for label, place in zip(labels, places, strict=True)
    ]
    return _chart(f"Memory over time, {run['name']}. {'. '.join(labels)}.", bottom + 8, "memory", parts)


def _chart(label: str, height: float, kind: str, parts: list[ET.Element]) -> ET.Element:
    return tag("svg", *parts, class_=f"chart {kind}", role="img", aria_label=label, height=height)


def _drawing(height: float, lines: list[ET.Element]) -> ET.Element:
    """The part that stretches along x."""
    box = f"0 0 {number(WIDTH)} {number(height)}"
    return tag("svg", *lines, width="100%", height=height, viewBox=box, preserveAspectRatio="none")


def _line(points: list[Point], time: Axis, y: Callable[[float], float], kind: str) -> ET.Element:
    corners = [f"{number(WIDTH * time.place(t))} {number(y(value))}" for t, value in points]
    # A line of no length makes a single point visible: a dot, as its ends are round.
    return tag("path", d=f"M{'L'.join(corners)}h0", class_=f"line {kind}")


def _area(points: list[Point], time: Axis, y: Callable[[float], float], floor: float) -> ET.Element:
    corners = [f"{number(WIDTH * time.place(t))} {number(y(value))}" for t, value in points]
    first, last = (number(WIDTH * time.place(points[i][0])) for i in (0, -1))
    return tag(
        "path", d=f"M{first} {number(floor)}L{'L'.join(corners)}L{last} {number(floor)}z", class_="area"
    )


def _rule(y: float, label: str) -> list[ET.Element]:
    """A line of the grid, with its label to the left of the chart."""
    return [
        tag("line", class_="rule", x1="0", x2="100%", y1=y, y2=y),
        tag("text", label, x="-8", y=y, dy="0.32em", class_="end"),
    ]


def latency_tick(tick: float) -> str:
    """A round latency, short enough for the margin."""
    return f"{tick:g} ms" if tick < 1000 else f"{tick / 1000:,g} s"


def _latency_y(axes: Axes) -> Callable[[float], float]:
    return lambda value: HEAD + PLOT * (1 - axes.latency.place(value))


def _latency_grid(axes: Axes, steady_max: float | None) -> list[ET.Element]:
    """The grid, and a dotted line at the steady maximum.

    The amount of the maximum takes the place of ticks that it would touch.
    """
    y, steady = _latency_y(axes), known(steady_max)
    parts = []
    for tick in axes.latency.ticks():
        rule, label = _rule(y(tick), latency_tick(tick))
        touches = steady and abs(y(tick) - y(steady)) < LINE_HEIGHT
        parts += [rule] if touches else [rule, label]
    if steady:
        line, label = _rule(y(steady), milliseconds(steady))
        line.set("class", "steady")
        label.set("class", "end strong")
        parts += [line, label]
    return parts


def _latency_lines(run: Run, axes: Axes, time: Axis) -> list[ET.Element]:
    y, floor = _latency_y(axes), HEAD + PLOT
    most, p99 = series.unbroken(series.largest(run)), series.unbroken(series.p99(run))
    lines = [_area(piece, time, y, floor) for piece in most]
    lines += [_line(piece, time, y, "p99") for piece in p99]
    lines += [_line(piece, time, y, "max") for piece in most]
    return [_drawing(floor, lines)] if lines else []


def _latency_labels(run: Run, axes: Axes, time: Axis) -> list[ET.Element]:
    """The names of the lines at their ends, and the largest latency where it is; or that there is nothing."""
    y, most, p99 = _latency_y(axes), series.largest(run), series.p99(run)
    if not most and not p99:
        middle = HEAD + PLOT / 2
        return [tag("text", "no latencies were recorded", x="50%", y=middle, class_="middle")]
    ends = [(name, points[-1]) for name, points in (("max", most), ("p99", p99)) if points]
    places = _apart([y(point[1]) for _, point in ends], HEAD + PLOT)
    parts = [
        tag("text", name, x=share(time.place(point[0])), dx="6", y=place, dy="0.32em", class_=f"halo {name}")
        for (name, point), place in zip(ends, places, strict=True)
    ]
    if most:
        parts += _peak(max(most, key=lambda point: point[1]), y, time)
    return parts


def _peak(point: Point, y: Callable[[float], float], time: Axis) -> list[ET.Element]:
    """A dot, and the amount above it; beside it where there is no room above, or where the chart ends."""
    at, top = time.place(point[0]), y(point[1])
    dot = tag("circle", cx=share(at), cy=top, r="3.5", class_="peak")
    beside = top < HEAD + 2 * LINE_HEIGHT or not 0.1 < at < 0.9
    side = "middle" if not beside else "end" if at > 0.7 else "start"
    dx = {"middle": "0", "end": "-9", "start": "9"}[side]
    place = top + 4 if beside else top - 8
    label = milliseconds(point[1])
    return [dot, tag("text", label, x=share(at), dx=dx, y=place, class_=f"halo peak-label {side}")]


def _migration(run: Run, time: Axis, bottom: float) -> list[ET.Element]:
    """The time in which state moved: shaded, and labelled above the plot."""
    moving = series.span(run)
    if moving is None:
        return []
    start, end = (time.place(t) for t in moving)
    wide = share(end - start)
    left = start < 0.6
    label = f"migration, {duration(moving[1] - moving[0])}"
    return [
        tag("rect", class_="shade", x=share(start), width=wide, y=HEAD, height=bottom - HEAD),
        tag("line", class_="bracket", x1=share(start), x2=share(end), y1=HEAD, y2=HEAD),
        tag(
            "text",
            label,
            x=share(start if left else end),
            y=HEAD - 7,
            class_="moving" if left else "moving end",
        ),
    ]


def _silences(run: Run, time: Axis) -> list[ET.Element]:
    """Where nothing was acknowledged: a line at the bottom, and for how long."""
    parts = []
    for start, end in series.silences(series.largest(run)):
        a, b, y = time.place(start), time.place(end), HEAD + PLOT - 1
        parts.append(tag("line", class_="silence", x1=share(a), x2=share(b), y1=y, y2=y))
        if b - a > 0.15:
            words = f"no answer for {duration(end - start)}"
            parts.append(tag("text", words, x=share((a + b) / 2), y=y - 7, class_="halo middle"))
    return parts


def _moved(points: list[Point], time: Axis, top: float) -> list[ET.Element]:
    """Bytes moved so far, in a strip of its own below the latencies."""
    most = max(value for _, value in points)
    bottom, height = top + MOVED - 6, MOVED - 14

    def y(value: float) -> float:
        return bottom - (height * value / most if most else 0)

    last = time.place(points[-1][0])
    return [
        _drawing(bottom + 2, [_line(points, time, y, "moved")]),
        tag("text", "moved", x="-8", y=bottom - 2, class_="end"),
        tag("text", size(most), x=share(last), dx="6", y=y(points[-1][1]), dy="0.32em", class_="halo moving"),
    ]


def _collections(points: list[Point], time: Axis, top: float) -> list[ET.Element]:
    """One tick a garbage collection, as wide as it was long and never too thin to see."""
    parts = [tag("text", "JVM gc", x="-8", y=top + 10, class_="end")]
    for t, took in points:
        wide = time.place(t + took / 1000) - time.place(t)
        mark = tag("rect", x=share(time.place(t)), width=share(wide), y=top + 2, height="8", class_="gc")
        mark.append(tag("title", f"garbage collection at {duration(t)}, {milliseconds(took)}"))
        parts.append(mark)
    return parts


def _seconds(time: Axis, top: float) -> list[ET.Element]:
    parts = [tag("line", class_="axis", x1="0", x2="100%", y1=top, y2=top)]
    for tick in time.ticks(7):
        at = share(time.place(tick))
        label = f"{tick:,g} s" if tick else "0"
        parts.append(tag("line", class_="axis", x1=at, x2=at, y1=top, y2=top + 4))
        parts.append(tag("text", label, x=at, y=top + 16, class_="middle"))
    return parts


def _apart(places: list[float], lowest: float) -> list[float]:
    """Places of labels, the upper one first, moved so that they do not touch and none is below the lowest."""
    if len(places) < 2 or places[1] - places[0] >= LINE_HEIGHT:
        return places
    lower = min(max(places[1], places[0] + LINE_HEIGHT / 2), lowest)
    return [lower - LINE_HEIGHT, lower]


def _described(run: Run) -> str:
    """The timeline in a sentence or two, for those who do not see it."""
    most, moving = series.largest(run), series.span(run)
    if not most:
        return f"Latency over time, {run['name']}: nothing was recorded."
    t, value = max(most, key=lambda point: point[1])
    words = f"Latency over time, {run['name']}: at most {milliseconds(value)}, at {duration(t)}."
    if moving:
        words += f" State moved from {duration(moving[0])} to {duration(moving[1])}."
    return words
