"""One page with everything that was measured: ``render`` makes a self-contained HTML file of a report.

The page asks nobody for anything: style, pictures and the few lines of script are in it. The script only
shows what is under the pointer; without it the page says the same. It follows the reader's wish for light or
dark, fits a telephone and prints. What may be missing in a report may be missing: see
``sterna.bench.report_data``.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any
from xml.etree import ElementTree as ET

from sterna.bench import charts, series
from sterna.bench.columns import COLUMNS
from sterna.bench.markup import data, number, page, tag
from sterna.bench.report_data import Latencies, Report, Run
from sterna.bench.series import Axes
from sterna.readable import count, duration, known, milliseconds, ratio, size, times


def render(report: Report) -> str:
    """The report as one HTML document."""
    title = report.get("title") or "What moving state costs"
    runs = report.get("runs") or []
    axes = Axes.of(report)
    body = [
        tag("header", tag("h1", title), tag("p", report.get("summary") or _summary(report), class_="lede")),
        _figures(report),
        _table(report) if runs else None,
        _timelines(report, axes) if runs else None,
        _method(),
        _machine(report.get("machine") or {}),
    ]
    head = [
        tag("meta", charset="utf-8"),
        tag("title", title),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("style", _part("report.css")),
    ]
    script = [data([_hovered(run, axes) for run in runs], "runs"), tag("script", _part("report.js"))]
    return page(tag("html", tag("head", *head), tag("body", tag("main", *body), *script), lang="en"))


def _part(name: str) -> str:
    return files("sterna.bench").joinpath(name).read_text(encoding="utf-8")


def _summary(report: Report) -> str:
    """Two sentences that say what happened, made from the figures."""
    steady = _steady(report)
    ranked = [(value, run["name"]) for run in report.get("runs") or [] if (value := known(run.get("max_ms")))]
    first = (
        "Records came at a fixed rate, whatever became of those before them, while state moved between "
        "workers."
    )
    if not ranked or not known(steady.get("max_ms")):
        return f"{first} The latency of a record runs from the time at which it was due."
    (low, gentle), (high, harsh) = min(ranked), max(ranked)
    second = f"The slowest record took {milliseconds(steady.get('max_ms'))} while nothing moved"
    if len(ranked) == 1:
        return f"{first} {second}, and {milliseconds(low)} with “{gentle}”."
    return f"{first} {second}, {milliseconds(low)} with “{gentle}” and {milliseconds(high)} with “{harsh}”."


def _steady(report: Report) -> Latencies:
    return report.get("steady") or {}


def _figures(report: Report) -> ET.Element:
    steady, match = _steady(report), report.get("outputs_match")
    verdict = {True: "all right", False: "some wrong", None: "not compared"}[match]
    cells = [
        ("steady median", milliseconds(steady.get("p50_ms")), None),
        ("steady 99th percentile", milliseconds(steady.get("p99_ms")), None),
        ("steady maximum", milliseconds(steady.get("max_ms")), None),
        ("counts of all runs", verdict, "wrong" if match is False else None),
    ]
    return tag(
        "dl",
        *(tag("div", tag("dt", name), tag("dd", value, class_=kind)) for name, value, kind in cells),
        class_="figures",
    )


def _table(report: Report) -> ET.Element:
    """The migrations; on a narrow page each row becomes a card, so every cell carries its column's name."""
    runs = report.get("runs") or []
    ratios = [times(run.get("max_ms"), series.steady_max(report, run)) for run in runs]
    longest = max([1.0, *(value for value in ratios if value)])
    rows = []
    for run, value in zip(runs, ratios, strict=True):
        cells = [tag("td", text(run), role="cell", data_name=name) for name, text in COLUMNS.items()]
        bar = tag("i", style=f"width:{number(100 * ((value or 0) / longest))}%")
        cells.append(
            tag(
                "td",
                tag(
                    "div",
                    tag("b", ratio(value)),
                    tag("span", bar, class_="bar") if value else None,
                    class_="ratio",
                ),
                role="cell",
                data_name="max to steady max",
            )
        )
        name = tag("th", run["name"], role="rowheader", scope="row")
        if run["strategy"].casefold() not in run["name"].casefold():
            name.append(tag("small", run["strategy"]))
        rows.append(tag("tr", name, *cells, role="row"))
    names = ["run", *COLUMNS, "max to steady max"]
    heads = [tag("th", name, role="columnheader", scope="col") for name in names]
    return tag(
        "section",
        tag("h2", "Migrations"),
        tag(
            "table",
            tag("thead", tag("tr", *heads, role="row"), role="rowgroup"),
            tag("tbody", *rows, role="rowgroup"),
            role="table",
        ),
    )


def _timelines(report: Report, axes: Axes) -> ET.Element:
    scales = "Both axes are" if axes.seconds else "The axis of latency is"
    words = (
        "The largest latency and the 99th percentile in each slot of time; the dotted line is the largest "
        f"one while nothing moves. {scales} the same in all of them; that of latency is logarithmic. The "
        "ticks at the bottom are garbage collections of the JVM, which delay records too, whatever moves."
    )
    figures = [
        _figure(i, run, axes, series.steady_max(report, run))
        for i, run in enumerate(report.get("runs") or [])
    ]
    return tag(
        "section",
        tag("h2", "Timelines"),
        tag("p", words, class_="words"),
        tag("div", *figures, class_="runs"),
    )


def _figure(index: int, run: Run, axes: Axes, steady_max: float | None) -> ET.Element:
    facts = [
        (run.get("bins"), f"{count(run.get('bins'))} bins"),
        (run.get("bytes"), size(run.get("bytes"))),
        (run.get("max_ms"), f"max {milliseconds(run.get('max_ms'))}"),
    ]
    line = " · ".join(text for value, text in facts if known(value))
    memory = charts.memory(run, axes)
    return tag(
        "figure",
        tag(
            "figcaption",
            tag("h3", run["name"]),
            tag("p", line, class_="facts"),
            tag("p", class_="hover", aria_hidden="true"),
        ),
        charts.timeline(run, axes, steady_max),
        tag("h4", "Memory") if memory is not None else None,
        memory,
        tag("p", run.get("note") or "", class_="note") if run.get("note") else None,
        data_run=str(index),
    )


def _hovered(run: Run, axes: Axes) -> dict[str, Any]:
    """What the script shows of a run: for each slot where it is, and what to say of it."""
    time, at, said = axes.time(run), [], []
    for slot in series.slots(run):
        at.append(round(time.place(slot["t"]), 5))
        parts = [("max", slot.get("max_ms")), ("p99", slot.get("p99_ms")), ("p50", slot.get("p50_ms"))]
        told = [
            duration(slot["t"]),
            *(f"{name} {milliseconds(value)}" for name, value in parts if known(value)),
        ]
        if slot.get("records"):
            told.append(f"{count(slot['records'])} records")
        said.append(" · ".join(told))
    return {"at": at, "said": said}


def _method() -> ET.Element:
    return tag(
        "section",
        tag("h2", "How it was measured"),
        tag(
            "p",
            (
                "The latency of a record is the time of its acknowledgement, when the epoch that contains it "
                "is committed, minus the time at which it was scheduled. The load is open-loop: records are "
                "scheduled at a fixed rate and wait for nobody, so that a pause counts for every record that "
                "was due in it, and not only for the first. Percentiles and maxima are over all records, not "
                "over epochs."
            ),
            class_="words",
        ),
        tag(
            "p",
            (
                "Steady figures are those of the same stream while nothing moves; a run with such a time of "
                "its own before it is compared with that one. Anonymous memory is what "
                "no file backs: memory-mapped state files are not part of it."
            ),
            class_="words",
        ),
    )


def _machine(facts: dict[str, Any]) -> ET.Element | None:
    if not facts:
        return None
    rows = [
        tag("div", tag("dt", str(name).replace("_", " ")), tag("dd", _plain(value)))
        for name, value in facts.items()
    ]
    return tag("section", tag("h2", "Machine"), tag("dl", *rows, class_="machine"))


def _plain(value: Any) -> str:
    """A fact in words: nested ones become lists with commas."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(inner)}" for name, inner in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_plain, value))
    return str(value)
