"""Figure 20: memory over time while state moves, by strategy."""

from __future__ import annotations

from sterna.bench.evaluation import files
from sterna.bench.evaluation.entries import Entry, Figures
from sterna.bench.evaluation.markdown import Section, figures_link, missing, shown, table
from sterna.bench.evaluation.moves import Move, moves, rounds, unfinished
from sterna.bench.evaluation.pictures import Picture
from sterna.bench.evaluation.plots import Band, Mark, Scale, Series, plot
from sterna.bench.evaluation.words import code, listed, short
from sterna.readable import DASH, count, size

TITLE = "Figure 20: memory while state moves"
PAPER = (
    "all-at-once takes 30 GiB more than the 35 GiB of a process at rest; with fluid and batched migrations "
    "memory hardly varies"
)
HEADS = (
    "state",
    "strategy",
    "a bin",
    "more memory of the Python workers",
    "in bins",
    "more memory of the JVM",
)
MEBI = 2**20
FEW_BINS = 8.0
"""What the goal calls a few bins."""


def section(figures: Figures) -> Section:
    """The section; see the module's docstring."""
    found = figures.experiment("memory")
    if found is None or not found.each("results"):
        return missing(TITLE, PAPER, files.command("migrate-memory"))
    lines = moves(found)
    pictures = [
        _picture(found, keys, [m for m in lines if m.keys == keys])
        for keys in sorted({m.keys for m in lines})
    ]
    drawn = [picture for picture in pictures if picture is not None]
    return Section(
        TITLE,
        PAPER,
        _short(lines),
        [
            f"The paper: {PAPER} (16 billion keys in 2¹² bins, the resident memory of the first process).",
            *(shown(picture) for picture in drawn),
            (
                "Memory that no file backs, of all Python workers together: the highest sample while state "
                "moves, minus the highest of as many samples before. Few bins, so that they are large enough "
                f"to be seen; medians of {rounds(lines)}, with the least and the greatest "
                f"({figures_link(found.file)})."
            ),
            table(HEADS, [_row(move) for move in lines], words=2),
            unfinished(lines),
            _meaning(lines),
        ],
        {picture.file: picture.svg for picture in drawn},
    )


def _row(move: Move) -> list[str]:
    entry = move.entry
    bins = entry.maybe("extra_bins", "median")
    return [
        f"{short(move.keys)} keys, {count(move.bins)} bins",
        code(move.strategy),
        size(entry.number("bin_bytes")),
        _spread(entry, "worker_anonymous_extra_mb"),
        DASH if bins is None else _bins(bins),
        _spread(entry, "jvm_resident_extra_mb"),
    ]


def _spread(entry: Entry, name: str) -> str:
    middle, low, high = (entry.maybe(name, which) for which in ("median", "least", "greatest"))
    if middle is None or low is None or high is None:
        return DASH
    return f"{_signed(middle)} ({_signed(low)} to {_signed(high)})"


def _bins(number: float) -> str:
    return f"{number:,.1f}".replace("-", "−")


def _signed(mebibytes: float) -> str:
    return f"{'−' if mebibytes < 0 else '+'}{size(abs(mebibytes) * MEBI)}"


def _picture(found: Entry, keys: int, lines: list[Move]) -> Picture | None:
    """The Python workers' memory in the first round, if it is in the file, with the migrations behind it."""
    if not found.has("over_time", str(keys)):
        return None
    samples = found.each("over_time", str(keys))
    points = [Mark(one.number("second"), one.number("worker_anonymous_mb") * MEBI / 1e6) for one in samples]
    if not points:
        return None
    bands = []
    for move in lines:
        start = move.entry.number("rounds", 0, "second")
        bands.append(Band(start, start + move.entry.number("rounds", 0, "seconds"), move.strategy))
    most = max(mark.y for mark in points)
    return plot(
        f"figure-20-{keys}.svg",
        f"Memory while a quarter of the state moves: {short(keys)} keys in {count(lines[0].bins)} bins",
        (
            f"Memory of the Python workers over time, at most {size(most * 1e6)}; state moves with "
            f"{listed(band.name for band in bands)}."
        ),
        Scale.amounts("time in the first round", [mark.x for mark in points], "s", 8),
        Scale.amounts("memory", [1.1 * most], "MB", 5),
        [Series("Python workers", "matched", tuple(points), marked=False)],
        bands=sorted(bands, key=lambda band: band.start),
        notes=[
            (
                "Memory of all Python workers together that no file backs; shaded: from the begin of a "
                "migration to its end."
            )
        ],
        height=220,
    )


def _short(lines: list[Move]) -> str:
    keys = max(move.keys for move in lines)
    said = [
        f"{code(move.strategy)} {_bins(extra)}"
        for move in lines
        if move.keys == keys and (extra := move.entry.maybe("extra_bins", "median")) is not None
    ]
    return (
        f"bins of additional memory at {short(keys)} keys: {', '.join(said)}"
        if said
        else "memory could not be read here"
    )


def _meaning(lines: list[Move]) -> str:
    known = [(move, move.entry.maybe("extra_bins", "median")) for move in lines]
    whole = [(move, extra) for move, extra in known if move.strategy == "all_at_once" and extra is not None]
    fine = [(move, extra) for move, extra in known if move.strategy != "all_at_once" and extra is not None]
    if not whole or not fine:
        return ""
    least, most = min(extra for _, extra in whole), max(extra for _, extra in fine)
    over = sorted({code(move.strategy) for move, extra in fine if extra > FEW_BINS})
    parts = []
    if most < least:
        parts.append(
            "As in the paper, moving everything at once takes far more memory than any strategy with small "
            f"steps: {least:,.1f} bins or more against {most:,.1f} at most."
        )
    else:
        parts.append(
            f"**Unlike in the paper, small steps do not always take less memory**: up to {most:,.1f} bins, "
            f"where everything at once takes {least:,.1f} or more."
        )
    parts.append(
        f"More than {FEW_BINS:g} bins are held with {listed(over)}."
        if over
        else f"No strategy with small steps holds more than {FEW_BINS:g} bins."
    )
    parts.append(
        "The reason is another one than in the paper. There, state waits for the network; here a worker "
        "holds what it extracts and installs in an epoch, while the state itself is in files that are mapped "
        "and counts as nobody's memory. The JVM's heap has a fixed size in this experiment, so its column "
        "shows noise more than anything else."
    )
    return " ".join(parts)
