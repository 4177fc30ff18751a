"""What a migration costs afterwards: rows a second before and after one, against a query that never moved.

The paper does not measure this.
"""

from __future__ import annotations

from sterna.bench.evaluation import files
from sterna.bench.evaluation.entries import Figures
from sterna.bench.evaluation.markdown import Section, figures_link, missing, table
from sterna.readable import count

TITLE = "Afterwards: what is left of a migration"
PAPER = "nothing is said of it; the timelines return to what they were"
HEADS = ("when", "round", "never moved, rows/s", "moved, rows/s", "lead")


def section(figures: Figures) -> Section:
    """The section; see the module's docstring."""
    found = figures.experiment("afterwards")
    if found is None or not found.each("results"):
        return missing(TITLE, PAPER, files.command("migrate-afterwards"))
    (one, *_) = found.each("results")
    rows = []
    for when in ("before", "after"):
        for number, pair in enumerate(one.each(when), 1):
            control, moved = pair.positive("control"), pair.positive("moved")
            rows.append([when, str(number), count(control), count(moved), _percent(moved / control - 1)])
    change, low, high = one.number("change"), one.number("interval", 0), one.number("interval", 1)
    judged = f"the lead changes by {_percent(change)} (95 % interval {_percent(low)} to {_percent(high)})"
    if low <= 0 <= high:
        meaning = (
            f"A migration there and back leaves nothing that could be measured: {judged}, which contains "
            "zero."
        )
    elif high < 0:
        meaning = (
            f"**A migration leaves a cost**: {judged}. Bins that come back are pieces of files of their own "
            "until they are merged, which is a likely reason."
        )
    else:
        meaning = (
            f"The migrated query is faster afterwards: {judged}. Its state was written anew on the way, "
            "which is a likely reason."
        )
    return Section(
        TITLE,
        PAPER,
        judged,
        [
            (
                f"Two queries with {count(one.number('keys'))} keys in {count(one.number('bins'))} bins, of "
                f"which one moves a quarter of its state there and back, in {count(one.number('steps'))} "
                f"steps; the maximum rate of both, in turns ({figures_link(found.file)})."
            ),
            table(HEADS, rows),
            meaning,
        ],
    )


def _percent(value: float) -> str:
    return f"{100 * value:+.1f} %".replace("-", "−")
