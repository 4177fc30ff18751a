"""Figure 1: latency over time while a quarter of the state moves, by strategy.

Spark's own way is shown beside the strategies.
"""

from __future__ import annotations

from sterna.bench import series
from sterna.bench.evaluation import files, judged
from sterna.bench.evaluation.entries import Entry, Figures
from sterna.bench.evaluation.markdown import Section, figures_link, missing, shown, table
from sterna.bench.evaluation.moves import HEADS, Move, cells, moves, rounds, unfinished
from sterna.bench.evaluation.pictures import KINDS, Picture
from sterna.bench.evaluation.plots import Mark, Scale, Series, plot
from sterna.bench.evaluation.timelines import Panel, run_alone, timelines
from sterna.bench.evaluation.words import code, factor
from sterna.readable import DASH, count, duration, milliseconds, size

TITLE = "Figure 1: what moving a quarter of the state does to latency"
PAPER = (
    "moved all at once, state makes a high and short spike; bin by bin, or in optimised batches, the longest "
    "latency is orders of magnitude lower and the migration longer"
)


def section(figures: Figures) -> Section:
    """The section; see the module's docstring."""
    found = figures.experiment("headline")
    if found is None or not found.each("results"):
        return missing(TITLE, PAPER, files.command("migrate-headline"))
    lines = moves(found)
    pictures = [*_timelines(found), _tradeoff(found, lines)]
    one = lines[0]
    setup = (
        f"{count(one.keys)} keys in {count(one.bins)} bins on {_workers(figures)} workers, a quarter of the "
        f"state ({size(one.entry.number('bytes'))}) moved, {count(one.rate)} records a second, which is half "
        f"of the measured maximum; medians of {rounds(lines)}, with the least and the greatest "
        f"({figures_link(found.file)}). Latency is acknowledgement minus scheduled time; before is the quiet "
        "minute before each migration; the limit is 1.25 times the 99th percentile of what epochs took in "
        "all of the quiet time, which is longer for the strategies that take longer."
    )
    return Section(
        TITLE,
        PAPER,
        _short(lines),
        [
            (
                "The paper's Figure 1 shows one billion keys, 8 GiB, moved all at once, fluidly (bin by bin) "
                "and optimised (in batches found by bipartite matching); `matched` is the last of these "
                "here. `paced` is not in the paper: its steps are as large as a latency allows."
            ),
            *(shown(picture) for picture in pictures),
            ""
            if len(pictures) > 1
            else "The file has no timelines of latency: the picture shows what they come to.",
            setup,
            table(HEADS, [*(cells(move) for move in lines), *_offline_rows(found)]),
            unfinished(lines),
            _without_fluid(lines),
            judged.strategies_compared(lines),
            judged.beside_spark(found, lines),
            judged.goals(found),
        ],
        {picture.file: picture.svg for picture in pictures},
    )


def _without_fluid(lines: list[Move]) -> str:
    """Why a strategy of the paper is not among them, if it is not."""
    if any(move.strategy == "fluid" for move in lines):
        return ""
    return (
        f"`fluid` is left out here: a bin an epoch takes {count(lines[0].bins // 4)} epochs, twice as many "
        "as `matched`, whose steps are hardly larger. It is in the pictures with fewer bins."
    )


def _workers(figures: Figures) -> str:
    whole = figures.get("migrate-headline")
    assert whole is not None
    return count(whole.number("workers"))


def _timelines(found: Entry) -> list[Picture]:
    """The timelines of the first round, if the file has them."""
    if not found.has("runs"):
        return []
    quiet = {move.strategy: move.entry.maybe("rounds", 0, "before", "max_ms") for move in moves(found)}
    runs = [run_alone(entry) for entry in found.each("runs")]
    panels = [Panel(run, quiet.get(run["strategy"])) for run in runs if series.slots(run)]
    return (
        [timelines("figure-1.svg", "Latency while a quarter of the state moves", panels, 1)] if panels else []
    )


def _tradeoff(found: Entry, lines: list[Move]) -> Picture:
    """Every round: the longest latency against the duration, Spark's own way included."""
    every = []
    for shape, move in enumerate(lines):
        each = [
            Mark(1e3 * one.number("seconds"), one.number("during", "max_ms"), shape)
            for one in move.entry.each("rounds")
        ]
        kind = move.strategy if move.strategy in KINDS else "other"
        every.append(Series(move.strategy, kind, tuple(sorted(each, key=lambda mark: mark.x))))
    offline = tuple(
        Mark(
            1e3 * found.number("offline", way, "seconds"),
            found.number("offline", way, "during", "max_ms"),
            len(lines),
        )
        for way in ("there", "back")
        if found.has("offline", way)
    )
    if offline:
        every.append(Series("Spark, offline", "spark", offline))
    marks = [mark for one in every for mark in one.marks]
    quiet = max(move.before_ms for move in lines)
    told = "; ".join(
        f"{move.strategy}: {milliseconds(move.during_ms)} in {duration(move.seconds)}" for move in lines
    )
    return plot(
        "figure-1-rounds.svg",
        "Longest latency against duration, every round",
        f"Longest latency against duration of a migration. {told}.",
        Scale.times("duration of the migration", [mark.x for mark in marks]),
        Scale.times("longest latency", [*(mark.y for mark in marks), quiet]),
        every,
        notes=[
            (
                "Each mark is a round; lines only join the rounds of a strategy. While nothing moves, the "
                f"longest latency is {milliseconds(quiet)} or less, in the median."
            )
        ],
    )


def _offline_rows(found: Entry) -> list[list[str]]:
    if found.has("offline", "reason"):
        return [[found.text("offline", "reason"), *[DASH] * (len(HEADS) - 1)]]
    rows = []
    for way in ("there", "back"):
        if found.has("offline", way):
            one = found.at("offline", way)
            name = f"Spark, offline, {way}, {count(found.number('offline', 'rate'))} records a second"
            before, during = (milliseconds(one.number(when, "max_ms")) for when in ("before", "during"))
            ratio = factor(one.number("max_ratio"))
            rows.append([name, DASH, duration(one.number("seconds")), before, during, ratio, DASH])
    return rows


def _short(lines: list[Move]) -> str:
    said = [f"{code(move.strategy)} {factor(move.ratio)} in {duration(move.seconds)}" for move in lines]
    return f"longest latency over that before, and duration: {'; '.join(said)}"
