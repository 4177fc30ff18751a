"""Figures 13 to 15: what state that can move costs while it does not.

This is shown as the latency of records (``waiting``), and as rows a second: by the number of bins, against
operators whose state can't move, and by the number of keys.
"""

from __future__ import annotations

from sterna.bench.evaluation import files
from sterna.bench.evaluation.entries import Entry, Figures
from sterna.bench.evaluation.markdown import Section, figures_link, not_yet, table
from sterna.bench.evaluation.paper import OVERHEADS
from sterna.bench.evaluation.waiting import waiting
from sterna.bench.evaluation.words import ALIKE, changed, factor, listed, power
from sterna.readable import count, milliseconds, size

TITLE = "Figures 13–15: overhead while nothing moves"
PAPER = "up to 2¹² bins about what native operators take, or a small factor more; from 2¹⁶ bins on much more"
REFERENCE = 12
PEERS = {
    "spark": "Spark",
    "spark_quick_logs": "Spark with quick logs",
    "transform_with_state": "`transformWithStateInPandas`",
}
"""What Sterna is measured against, by the name in the file."""


def section(figures: Figures) -> Section:
    """The section; see the module's docstring."""
    blocks = [
        (
            "The paper shows the distribution of the latency of records, with 2⁴ to 2²⁰ bins and for a "
            "native operator, at four million records a second: counting with hash maps over 256 million "
            "keys (Figure 13), with arrays over as many (Figure 14) and over 8192 million (Figure 15). Here "
            "that comes first; then what bins and keys cost where epochs follow each other without a pause."
        ),
    ]
    found, drawn, short = waiting(figures)
    blocks += found
    said = [short]
    for part in (_bins, _native, _keys):
        found, short = part(figures)
        blocks += found
        said.append(short)
    measured = [one for one in said if one]
    pictures = {picture.file: picture.svg for picture in drawn}
    return Section(TITLE, PAPER, "; ".join(measured) if measured else "not measured yet", blocks, pictures)


Part = tuple[list[str], str]


def _bins(figures: Figures) -> Part:
    """Epochs by the number of bins."""
    heading = "### Rows a second, by the number of bins"
    entry = figures.get("bins")
    if entry is None or not entry.each("results"):
        return [heading, not_yet(files.command("bins"))], ""
    lines = entry.each("results")
    if all(line.number("power") != REFERENCE for line in lines):
        raise entry.at("results").wrong(f"a list with a line for 2^{REFERENCE} bins")
    heads = [
        "bins",
        "rows/s",
        "to 2¹²",
        "median epoch",
        "longest epoch",
    ]
    rows = [_bins_row(line) for line in lines]
    most = max(abs(line.positive("ratio") - 1) for line in lines)
    setup = (
        f"{count(lines[0].positive('keys'))} keys, {count(entry.number('rows_per_epoch'))} rows an epoch, "
        f"{count(entry.number('rounds'))} rounds in turns ({figures_link(entry.file)})."
    )
    blocks = [heading, setup, table(heads, rows), _bins_meaning(lines, most)]
    return (
        blocks,
        (
            f"rows a second within {100 * most:.0f} % of those with 2¹² bins, for "
            f"{power(lines[0].positive('bins'))} to {power(lines[-1].positive('bins'))}"
        ),
    )


def _bins_row(line: Entry) -> list[str]:
    return [
        power(line.positive("bins")),
        count(line.number("rows_per_second")),
        factor(line.positive("ratio")),
        milliseconds(line.positive("epoch_ms_p50")),
        milliseconds(line.number("epoch_ms_max")),
    ]


def _bins_meaning(lines: list[Entry], most: float) -> str:
    slower = [
        line for line in lines if line.number("power") > REFERENCE and line.positive("ratio") < 1 / ALIKE
    ]
    hidden = (
        "A cost of a few milliseconds, which is much in the paper, would not be seen in epochs of hundreds."
    )
    if slower:
        said = listed(f"{power(line.positive('bins'))} ({factor(line.positive('ratio'))})" for line in slower)
        return f"As in the paper, many bins cost something: rows a second are fewer with {said}. {hidden}"
    if most > ALIKE - 1:
        return (
            f"Rows a second differ by up to {100 * most:.0f} %, and not because many bins are slow: that is "
            f"how noisy the machine was. {hidden}"
        )
    return (
        "Unlike in the paper, many bins cost nothing that could be seen here. Megaphone consults a table "
        "with an entry for each bin, and keeps a structure for each; in Sterna a bin is a range of hashes, "
        "workers own ranges of bins, tasks carry these ranges, and state is sorted by hash and does not know "
        "of bins. This was measured with the ranges that a query begins with: bins that were scattered by "
        f"migrations make the list of ranges longer. {hidden}"
    )


def _native(figures: Figures) -> Part:
    """Operators whose state can't move: Spark's own."""
    heading = "### Rows a second, against operators whose state can't move"
    entry = figures.get("throughput")
    if entry is None or not entry.each("results"):
        return [heading, not_yet(files.command("throughput"))], ""
    lines = entry.each("results")
    peers = [name for name in PEERS if any(line.has(f"{name}_rows_per_second") for line in lines)]
    heads = ["rows an epoch", "keys", "Sterna, rows/s", "median epoch"]
    for name in peers:
        heads += [f"{PEERS[name]}, rows/s", "median epoch"]
    rows = [_native_row(line, peers) for line in lines]
    ratios = [_to_the_best(line, peers) for line in lines]
    setup = (
        "Counting by key against Spark's `groupBy().count()` on RocksDB, set up as its guide recommends, "
        f"both filled with all keys first, in turns ({figures_link(entry.file)}). Quick logs: Spark with its "
        "own logs written as Sterna has them written, which its guide does not mention. In the paper the "
        "native operator is the same engine without Megaphone; here it is another implementation of state, "
        "so this compares more than the price of bins."
    )
    blocks = [heading, setup, table(heads, rows), _native_meaning(lines, peers)]
    return (
        blocks,
        (
            f"{' to '.join(dict.fromkeys((factor(min(ratios)), factor(max(ratios)))))} the rows a second of "
            "Spark's own count, set up as is best for it"
        ),
    )


def _to_the_best(line: Entry, peers: list[str]) -> float:
    """Sterna's rows a second over those of the fastest peer."""
    theirs = [rate for name in peers if (rate := line.maybe(f"{name}_rows_per_second"))]
    return line.positive("sterna_rows_per_second") / max(theirs) if theirs else line.positive("ratio")


def _native_row(line: Entry, peers: list[str]) -> list[str]:
    cells = [count(line.positive("rows_per_epoch")), count(line.positive("keys"))]
    for name in ("sterna", *peers):
        rate = count(line.maybe(f"{name}_rows_per_second"))
        rows = line.maybe(f"{name}_rows_per_epoch")
        other = rows is not None and rows != line.positive("rows_per_epoch")
        cells += [
            f"{rate} (epochs of {count(rows)})" if other else rate,
            milliseconds(line.maybe(f"{name}_epoch_ms_p50")),
        ]
    return cells


def _native_meaning(lines: list[Entry], peers: list[str]) -> str:
    """Who is faster where; a peer that is better is named."""
    better = []
    for name in peers:
        cases = [
            (
                f"{count(line.positive('rows_per_epoch'))} rows an epoch over {count(line.positive('keys'))} "
                "keys ("
                f"{factor(line.number(f'{name}_rows_per_second') / line.positive('sterna_rows_per_second'))})"
            )
            for line in lines
            if line.has(f"{name}_rows_per_second")
            and line.number(f"{name}_rows_per_second") > line.positive("sterna_rows_per_second")
        ]
        if cases:
            better.append(f"**{PEERS[name]} is faster** with {listed(cases)}.")
    if not better:
        return (
            "Sterna is faster in every line: what can move costs nothing against these, because the state is "
            "kept in another way."
        )
    return " ".join([*better, "In the other lines Sterna is faster."])


def _keys(figures: Figures) -> Part:
    """Epochs by the number of keys, as between Figures 14 and 15."""
    heading = "### Rows a second, by the number of keys"
    entry = figures.get("state")
    if entry is None or not entry.each("results"):
        return [heading, not_yet(files.command("state"))], ""
    lines = entry.each("results")
    heads = [
        "keys",
        "rows/s",
        "median epoch",
        "the smallest state beside it",
        "ratio",
        "Python's memory, median",
        "checkpoint",
    ]
    rows = [
        [
            count(line.positive("keys")),
            count(line.number("rows_per_second")),
            milliseconds(line.positive("epoch_ms_p50")),
            milliseconds(line.number("control_epoch_ms_p50")),
            factor(line.positive("epoch_ratio")),
            _megabytes(line.maybe("python_anonymous_mb_p50")),
            _megabytes(line.maybe("checkpoint_mb")),
        ]
        for line in lines
    ]
    ratio, times = lines[-1].positive("epoch_ratio"), lines[-1].positive("keys") / lines[0].positive("keys")
    small, large = (one.p99(REFERENCE) for one in OVERHEADS[1:])
    assert small is not None
    assert large is not None
    said = (
        f"With {count(times)} times as many keys an epoch {changed(ratio)}. In the paper, the 99th "
        f"percentile with 2¹² bins is {large / small:.2f} times as long over 32 times as many keys (Figures "
        f"14 and 15: {small:.2f} and {large:.2f} ms). Neither walks through its state to find a key."
    )
    setup = (
        f"{count(entry.number('rows_per_epoch'))} rows an epoch, {count(entry.number('bins'))} bins "
        f"({figures_link(entry.file)}); memory is what no file backs, of all Python workers together."
    )
    return (
        [heading, setup, table(heads, rows), said],
        f"with {count(times)} times as many keys an epoch {changed(ratio)}",
    )


def _megabytes(value: float | None) -> str:
    return size(None if value is None else value * 1e6)
