"""Figures 16 to 18: the longest latency against the duration, as bins, keys, or both in proportion grow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sterna.bench.evaluation import files
from sterna.bench.evaluation.entries import Entry, Figures
from sterna.bench.evaluation.markdown import Section, bullets, figures_link, missing, shown, table
from sterna.bench.evaluation.moves import HEADS, Move, cells, moves, of, rounds, strategies, unfinished
from sterna.bench.evaluation.pictures import KINDS, Picture
from sterna.bench.evaluation.plots import Scale, Series, plot
from sterna.bench.evaluation.trends import Trend, meaning
from sterna.bench.evaluation.words import changed, code, listed, power, short
from sterna.readable import count, milliseconds, size


@dataclass(frozen=True)
class Sweep:
    """One of the three.

    Attributes:
        experiment: its name in ``sterna bench migrate``.
        figure: the number of the paper's figure.
        title: the section's heading.
        paper: what the paper finds.
        sizes: the sizes that the paper has.
        over: what grows.
        label: how a mark is named in the legend.
    """

    experiment: str
    figure: int
    title: str
    paper: str
    sizes: str
    over: Callable[[Move], int]
    label: Callable[[Move], str]


SWEEPS = (
    Sweep(
        "bins",
        16,
        "Figure 16: more bins, the same state",
        (
            "more bins lower the longest latency of fluid and batched migrations and leave their duration as "
            "it is; all-at-once does not change"
        ),
        "4096 million keys in 2⁴ to 2¹⁴ bins",
        lambda move: move.bins,
        lambda move: f"{power(move.bins)} bins",
    ),
    Sweep(
        "keys",
        17,
        "Figure 17: more keys, the same bins",
        "latency and duration grow in proportion to the keys, with every strategy",
        "256 to 8192 million keys",
        lambda move: move.keys,
        lambda move: f"{short(move.keys)} keys",
    ),
    Sweep(
        "proportional",
        18,
        "Figure 18: more keys, and bins in proportion",
        (
            "with as much state in each bin, the latency of fluid and batched migrations stays the same "
            "while their duration grows; with all-at-once both grow"
        ),
        "256 million to 32 billion keys, four million in each bin",
        lambda move: move.keys,
        lambda move: f"{short(move.keys)} keys, {power(move.bins)} bins",
    ),
)


def section(sweep: Sweep, figures: Figures) -> Section:
    """The section of a sweep."""
    found = figures.experiment(sweep.experiment)
    if found is None or not found.each("results"):
        return missing(sweep.title, sweep.paper, files.command(f"migrate-{sweep.experiment}"))
    lines = moves(found)
    picture = _picture(sweep, lines)
    found_trends = (
        Trend.of(sorted(of(lines, name), key=sweep.over), sweep.label) for name in strategies(lines)
    )
    trends = [trend for trend in found_trends if trend is not None]
    rows = [[sweep.label(move), *cells(move)] for move in sorted(lines, key=sweep.over)]
    return Section(
        sweep.title,
        sweep.paper,
        _short(trends),
        [
            f"The paper: {sweep.paper} ({sweep.sizes}).",
            shown(picture),
            _setup(found, lines),
            table(["", *HEADS], rows, words=2),
            unfinished(lines),
            bullets(trend.said for trend in trends),
            _absent(sweep, lines),
            meaning(sweep.experiment, trends),
        ],
        {picture.file: picture.svg},
    )


def _setup(found: Entry, lines: list[Move]) -> str:
    rates = sorted({move.rate for move in lines})
    alike = rates[-1] <= 1.01 * rates[0]
    offered = count(rates[0]) if alike else f"{count(rates[0])} to {count(rates[-1])}"
    moved = max(move.entry.number("bytes") for move in lines)
    return (
        f"A quarter of the state moves, {size(moved)} at most; {offered} records a second; medians of "
        f"{rounds(lines)}, with the least and the greatest ({figures_link(found.file)})."
    )


def _picture(sweep: Sweep, lines: list[Move]) -> Picture:
    ordered = sorted(lines, key=sweep.over)
    labels = list(dict.fromkeys(sweep.label(move) for move in ordered))
    every = [
        Series(
            name,
            name if name in KINDS else "other",
            tuple(move.mark(labels.index(sweep.label(move))) for move in of(ordered, name)),
        )
        for name in strategies(lines)
    ]
    marks = [mark for one in every for mark in one.marks]
    latencies = [value for mark in marks for value in (mark.y, *(mark.spread or ()))]
    quiet = max(move.before_ms for move in lines)
    return plot(
        f"figure-{sweep.figure}.svg",
        sweep.title.split(": ", 1)[1].capitalize(),
        (
            f"Longest latency against duration of a migration with {listed(strategies(lines))}, from "
            f"{labels[0]} to {labels[-1]}."
        ),
        Scale.times("duration of the migration", [mark.x for mark in marks]),
        Scale.times("longest latency", latencies),
        every,
        shapes=labels,
        notes=[
            (
                "Marks: medians; thin lines: the least and the greatest of all rounds. While nothing moves "
                f"the longest latency is {milliseconds(quiet)} or less, in the median."
            )
        ],
    )


def _absent(sweep: Sweep, lines: list[Move]) -> str:
    """Which strategies were not run at every size."""
    sizes = {sweep.label(move) for move in lines}
    names = [
        name for name in strategies(lines) if len({sweep.label(m) for m in of(lines, name)}) < len(sizes)
    ]
    if not names:
        return ""
    return (
        f"Not at every size: {listed(code(name) for name in names)}, because one bin an epoch would take too "
        "long there, or because the time was up."
    )


def _short(trends: list[Trend]) -> str:
    if not trends:
        return "one size only"
    return "; ".join(
        f"{code(trend.strategy)}: latency {changed(trend.latency)}, duration {changed(trend.seconds)}"
        for trend in trends
    )
