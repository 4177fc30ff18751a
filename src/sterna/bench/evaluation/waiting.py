"""Figures 13 to 15 themselves: how long records wait while nothing moves, by the number of bins."""

from __future__ import annotations

from sterna.bench.evaluation import files
from sterna.bench.evaluation.entries import Entry, Figures
from sterna.bench.evaluation.markdown import figures_link, not_yet, shown, table
from sterna.bench.evaluation.paper import OVERHEADS, Overhead
from sterna.bench.evaluation.pictures import Picture
from sterna.bench.evaluation.plots import Mark, Scale, Series, plot
from sterna.bench.evaluation.words import ALIKE, factor, listed, power, share
from sterna.readable import DASH, count, milliseconds

REFERENCE = 12
PERCENTILES = ("p90_ms", "p99_ms", "p9999_ms", "max_ms")
"""Those of the paper's tables."""
PAPER = OVERHEADS[0]
"""Figure 13: counting with hash maps, which is nearest to what is done here."""
CURVES = {4: "all_at_once", 8: "paced", 12: "matched", 16: "fluid", 20: "other"}
"""The numbers of bins whose distribution is drawn, as powers of two, and in what colour."""
LEAST_SHARE = 1e-4


def waiting(figures: Figures) -> tuple[list[str], list[Picture], str]:
    """The blocks, the pictures, and what it comes to in a few words."""
    heading = "### How long records wait, by the number of bins"
    entry = figures.get("quiet")
    if entry is None or not entry.each("results"):
        return [heading, not_yet(files.command("quiet"))], [], ""
    lines = [line for line in entry.each("results") if line.has("power")]
    native = next((line for line in entry.each("results") if not line.has("power")), None)
    base = next((line for line in lines if line.number("power") == REFERENCE), None)
    if base is None:
        raise entry.at("results").wrong(f"a list with a line for 2^{REFERENCE} bins")
    pictures = [_distributions(lines, native), _multiples(lines, base)]
    setup = (
        f"{count(entry.positive('keys'))} keys, {count(entry.positive('rate'))} records a second in an open "
        f"loop, half of what the slower of the two keeps up with, {count(entry.number('rounds'))} rounds in "
        f"turns ({figures_link(entry.file)}). One state has one number of bins after the other, so that "
        "nothing else differs. The native operator is Spark's `groupBy().count()` on RocksDB. The columns on "
        f"the right are those of Figure {PAPER.figure}."
    )
    heads = ["", *("90 %", "99 %", "99.99 %", "longest"), "99 %, by round"]
    heads += [f"paper, {name}" for name in ("90 %", "99 %", "99.99 %", "longest")]
    others = (
        f"Figures {listed(str(one.figure) for one in OVERHEADS[1:])} of the paper are not repeated by "
        "themselves: counting with dense arrays in place of hash maps makes no difference here, where state "
        "lies in sorted files either way, and what more keys do is measured below in rows a second and not "
        "in latency. Their tables stand here so that their amounts can be compared."
    )
    rows = [_row(power(line.positive("bins")), line, _paper(line)) for line in lines]
    if native is not None:
        rows.append(_row("native", native, PAPER.native))
    most = max(abs(line.positive("p99_ms") / base.positive("p99_ms") - 1) for line in lines)
    short = (
        f"the 99th percentile of latency with {power(lines[0].positive('bins'))} to "
        f"{power(lines[-1].positive('bins'))} bins within {100 * most:.0f} % of that with 2¹²"
    )
    blocks = [heading, shown(pictures[0]), setup, table(heads, rows), shown(pictures[1]), others, _others()]
    return [*blocks, _meaning(entry, lines, base, native)], pictures, short


def _others() -> str:
    """The tables of the paper's other figures."""
    columns = ("90 %", "99 %", "99.99 %", "longest")
    heads = ["", *(f"Figure {one.figure}, {name}" for one in OVERHEADS[1:] for name in columns)]
    named = [(power(2**exponent), exponent) for exponent in PAPER.percentiles]
    rows = [
        [name, *(f"{value:,.2f} ms" for one in OVERHEADS[1:] for value in one.percentiles[exponent])]
        for name, exponent in named
    ]
    rows.append(["native", *(f"{value:,.2f} ms" for one in OVERHEADS[1:] for value in one.native)])
    return table(heads, rows)


def _paper(line: Entry) -> tuple[float, ...] | None:
    return PAPER.percentiles.get(int(line.number("power")))


def _row(name: str, line: Entry, paper: tuple[float, ...] | None) -> list[str]:
    theirs = [DASH] * len(PERCENTILES) if paper is None else [f"{value:,.2f} ms" for value in paper]
    rounds = [milliseconds(value.number()) for value in line.each("rounds")]
    return [name, *(milliseconds(line.positive(key)) for key in PERCENTILES), ", ".join(rounds), *theirs]


def _distributions(lines: list[Entry], native: Entry | None) -> Picture:
    """The share of records that waited longer than so many milliseconds, as the paper draws it."""
    chosen = [
        (f"{power(line.positive('bins'))} bins", CURVES[exponent], line)
        for line in lines
        if (exponent := int(line.number("power"))) in CURVES
    ]
    if native is not None:
        chosen.append(("native: Spark", "spark", native))
    every = [
        Series(
            name,
            kind,
            tuple(
                Mark(one.number(0), y) for one in line.each("beyond") if (y := one.number(1)) >= LEAST_SHARE
            ),
            marked=False,
        )
        for name, kind, line in chosen
    ]
    shares = [(10.0**-n, "1" if n == 0 else f"{10.0**-n:g}") for n in range(5)]
    return plot(
        "figures-13-15-distributions.svg",
        "How long records wait while nothing moves",
        "The share of records that waited longer than so many milliseconds, by bins, and in Spark's count.",
        Scale.times("waited longer than", [mark.x for one in every for mark in one.marks]),
        Scale.steps("share of records", shares),
        every,
    )


def _multiples(lines: list[Entry], base: Entry) -> Picture:
    """The 99th percentile by bins, ours and the paper's, each as a multiple of its own with 2^12."""
    ours = base.positive("p99_ms")
    every = [
        Series(
            "Sterna",
            "matched",
            tuple(Mark(line.positive("bins"), line.positive("p99_ms") / ours) for line in lines),
        )
    ]
    for shape, (one, kind) in enumerate(zip(OVERHEADS, ("paced", "fluid", "all_at_once"), strict=True), 1):
        every.append(Series(f"Figure {one.figure}", kind, _theirs(one, shape)))
    marks = [mark for one in every for mark in one.marks]
    ticks = [(x, power(x)) for x in sorted({mark.x for mark in marks})]
    return plot(
        "figures-13-15.svg",
        "Overhead by the number of bins",
        (
            "The 99th percentile of latency by bins, here and in the paper, as multiples of that with "
            f"{power(2**REFERENCE)} bins."
        ),
        Scale.steps("bins", ticks),
        Scale.ratios("multiple of that with 2¹² bins", [mark.y for mark in marks]),
        every,
        notes=[
            (
                "The 99th percentile of the latency of records; of Figures 13 to 15 from the paper's tables. "
                "Each as a multiple of its own amount with 2¹² bins."
            )
        ],
    )


def _theirs(one: Overhead, shape: int) -> tuple[Mark, ...]:
    base = one.p99(REFERENCE)
    assert base is not None
    return tuple(Mark(2.0**exponent, values[1] / base, shape) for exponent, values in one.percentiles.items())


def _meaning(entry: Entry, lines: list[Entry], base: Entry, native: Entry | None) -> str:
    ours = base.positive("p99_ms")
    longer = [line for line in lines if line.positive("p99_ms") > ALIKE * ours]
    many = [line for line in longer if line.number("power") > REFERENCE]
    few = [line for line in longer if line.number("power") < REFERENCE]
    most = max((line.positive("p99_ms") for line in many), default=0.0)
    if many and any(line.positive("p99_ms") * ALIKE >= most for line in few):
        blocks = [
            (
                "Unlike in the paper, there is no trend: the 99th percentile is longer than with "
                f"{power(2**REFERENCE)} bins with many of them, {_multiples_said(many, ours)}, and as much "
                f"with few, {_multiples_said(few, ours)}, so that it is not the number of bins that it shows."
            )
        ]
    elif many:
        blocks = [
            (
                "As in the paper, many bins cost something: the 99th percentile is longer with "
                f"{_multiples_said(many, ours)}."
            )
        ]
    else:
        blocks = [
            (
                "Unlike in the paper, many bins cost nothing that could be seen here: a bin is a range of "
                "hashes, and neither state nor tasks have an entry for each. A cost of a few milliseconds, "
                "which is much in the paper, would not be seen in epochs of a hundred and more."
            )
        ]
    if native is not None:
        ratio = ours / native.positive("p99_ms")
        paper = PAPER.p99(REFERENCE)
        assert paper is not None
        blocks.append(
            f"With 2¹² bins the 99th percentile is {factor(ratio)} that of the native operator "
            f"(Figure {PAPER.figure}: {factor(paper / PAPER.native[1])}); "
            + (
                "here that is another implementation of state, so it compares more than the price of bins."
                if ratio <= 1
                else "**Spark's own count has the lower latency** at this rate."
            )
        )
        blocks.append(_shares(entry))
    return " ".join(block for block in blocks if block)


def _multiples_said(lines: list[Entry], ours: float) -> str:
    return listed(
        f"{power(line.positive('bins'))} ({factor(line.positive('p99_ms') / ours)})" for line in lines
    )


def _shares(entry: Entry) -> str:
    """How much of what each keeps up with it was given; nothing where that is not known."""
    if not all(entry.has("maximum", name) for name in ("sterna", "spark")):
        return ""
    rate = entry.positive("rate")
    most = {name: entry.positive("maximum", name) for name in ("spark", "sterna")}
    spark, sterna = (
        f"{share(rate / value)} of what it keeps up with ({count(value)} records a second)"
        for value in most.values()
    )
    return (
        f"**The two are not equally busy**: at this rate Spark is given {spark}, Sterna {sterna}. Who has "
        "less to spare waits longer, so this says nothing of latencies at equal shares."
    )
