"""Figure 19: the longest latency by the offered load, while nothing moves and with every strategy."""

from __future__ import annotations

import statistics

from sterna.bench.evaluation import files
from sterna.bench.evaluation.entries import Entry, Figures
from sterna.bench.evaluation.markdown import Section, figures_link, missing, shown, table
from sterna.bench.evaluation.moves import Move, moves, of, rounds, strategies, unfinished
from sterna.bench.evaluation.pictures import KINDS, Picture
from sterna.bench.evaluation.plots import Mark, Scale, Series, plot
from sterna.bench.evaluation.words import ALIKE, changed, code, factor, listed, share, short
from sterna.readable import DASH, count, milliseconds

TITLE = "Figure 19: offered load against the longest latency"
PAPER = (
    "up to 16 million records a second the longest latency hardly depends on the load, with every strategy; "
    "at 32 million the system is overloaded. Small steps keep latencies 10 to 100 times lower than "
    "all-at-once"
)


def section(figures: Figures) -> Section:
    """The section; see the module's docstring."""
    found = figures.experiment("load")
    if found is None or not found.each("results"):
        return missing(TITLE, PAPER, files.command("migrate-load"))
    lines = moves(found)
    picture = _picture(lines)
    setup = (
        f"{count(lines[0].keys)} keys in {count(lines[0].bins)} bins; loads are shares of the measured "
        f"maximum; medians of {rounds(lines)} ({figures_link(found.file)}). The quiet time is the one before "
        "the migrations of each strategy: of these, the median of the strategies' medians."
    )
    names = strategies(lines)
    heads = [
        "records/s",
        "of the maximum",
        "nothing moves",
        *(code(name) for name in names),
        "best to all at once",
    ]
    rows = [_row(rate, lines, names) for rate in _rates(lines)]
    return Section(
        TITLE,
        PAPER,
        _short(lines, names),
        [
            (
                f"The paper: {PAPER} (16384 million keys in 2¹² bins, 250 thousand to 32 million records a "
                "second)."
            ),
            shown(picture),
            setup,
            table(heads, rows),
            unfinished(lines),
            _meaning(lines, names),
        ],
        {picture.file: picture.svg},
    )


def _rates(lines: list[Move]) -> list[float]:
    return sorted({move.rate for move in lines})


def _quiet(lines: list[Move], rate: float) -> float:
    """The longest latency of the quiet time at a load: the median of all strategies."""
    return statistics.median(move.before_ms for move in lines if move.rate == rate)


def _during(lines: list[Move], name: str, rate: float) -> Move | None:
    return next((move for move in of(lines, name) if move.rate == rate), None)


def _row(rate: float, lines: list[Move], names: list[str]) -> list[str]:
    here = {name: move for name in names if (move := _during(lines, name, rate)) is not None}
    some = next(iter(here.values())).entry
    fine = [move.during_ms for name, move in here.items() if name != "all_at_once"]
    whole = here.get("all_at_once")
    gain = factor(min(fine) / whole.during_ms) if fine and whole else DASH
    return [
        count(rate),
        _share(some),
        milliseconds(_quiet(lines, rate)),
        *(milliseconds(here[name].during_ms) if name in here else DASH for name in names),
        gain,
    ]


def _share(line: Entry) -> str:
    return share(line.maybe("load_share"))


def _picture(lines: list[Move]) -> Picture:
    rates = _rates(lines)
    quiet = tuple(Mark(rate, _quiet(lines, rate)) for rate in rates)
    every = [Series("nothing moves", "quiet", quiet)]
    for shape, name in enumerate(strategies(lines), 1):
        marks = []
        for move in sorted(of(lines, name), key=lambda move: move.rate):
            low, high = (move.entry.number("during_max_ms", which) for which in ("least", "greatest"))
            marks.append(Mark(move.rate, move.during_ms, shape, (low, high)))
        every.append(Series(name, name if name in KINDS else "other", tuple(marks)))
    latencies = [value for one in every for mark in one.marks for value in (mark.y, *(mark.spread or ()))]
    return plot(
        "figure-19.svg",
        "Offered load against the longest latency",
        f"Longest latency by records a second: {listed(one.name for one in every)}.",
        Scale.steps("records a second", [(rate, short(rate)) for rate in rates]),
        Scale.times("longest latency", latencies),
        every,
        notes=["Marks: medians; thin lines: the least and the greatest of all rounds."],
    )


def _growth(lines: list[Move], name: str) -> float | None:
    ordered = sorted(of(lines, name), key=lambda move: move.rate)
    return ordered[-1].during_ms / ordered[0].during_ms if len(ordered) > 1 else None


def _short(lines: list[Move], names: list[str]) -> str:
    rates = _rates(lines)
    said = [f"nothing moves: {changed(_quiet(lines, rates[-1]) / _quiet(lines, rates[0]))}"]
    said += [
        f"{code(name)}: {changed(value)}" for name in names if (value := _growth(lines, name)) is not None
    ]
    return f"longest latency from {short(rates[0])} to {short(rates[-1])} records a second: {'; '.join(said)}"


def _meaning(lines: list[Move], names: list[str]) -> str:
    rates = _rates(lines)
    if len(rates) < 2:
        return ""
    quiet = _quiet(lines, rates[-1]) / _quiet(lines, rates[0])
    times = rates[-1] / rates[0]
    if quiet > ALIKE:
        first = (
            f"Unlike in the paper, the load is seen while nothing moves: with {factor(times)} the records "
            f"the longest latency {changed(quiet)}. An epoch takes what it takes for its rows on two cores, "
            "and the more come in while it runs, the longer is the next one; the paper's machines have cores "
            "to spare up to 16 million records a second."
        )
    else:
        first = (
            f"As in the paper, the load is hardly seen while nothing moves: with {factor(times)} the records "
            f"the longest latency {changed(quiet)}."
        )
    better = [(_during(lines, name, rates[-1]), name) for name in names if name != "all_at_once"]
    gentlest = min(((move.during_ms, name) for move, name in better if move is not None), default=None)
    whole = _during(lines, "all_at_once", rates[-1])
    if gentlest is None or whole is None:
        return first
    gain = whole.during_ms / gentlest[0]
    judged = (
        (
            f"all at once takes {factor(gain)} the latency of the gentlest strategy, {code(gentlest[1])}; in "
            "the paper it is 10 to 100 times"
        )
        if gain > ALIKE
        else (
            f"no strategy is much gentler than all at once ({factor(gain)}); in the paper it is 10 to 100 "
            "times the others"
        )
    )
    worse = [
        (name, move.during_ms / whole.during_ms)
        for move, name in better
        if move is not None and move.during_ms > whole.during_ms
    ]
    said = ""
    if worse:
        verb = "is" if len(worse) == 1 else "are"
        said = (
            f" **{listed(code(name) for name, _ in worse)} {verb} worse than all at once** there "
            f"({listed(factor(times) for _, times in worse)})."
        )
    return f"{first} At the highest load {judged}.{said}"
