"""What a micro-batch engine cannot do, with the amounts that the files have for it."""

from __future__ import annotations

import statistics

from sterna.bench.evaluation.entries import Figures
from sterna.bench.evaluation.markdown import bullets
from sterna.bench.evaluation.moves import Move, moves, of
from sterna.bench.evaluation.paper import OVERHEADS
from sterna.readable import count, milliseconds, size

TITLE = "What a micro-batch engine cannot do"
REFERENCE = 12
FIGURES = {"headline": 1, "bins": 16, "keys": 17, "proportional": 18, "load": 19, "memory": 20}
"""The experiments whose bins are looked at, and in which figure each of them is."""
BEGIN = (
    "Sterna's logical time is Spark's micro-batch, the epoch. Everything happens at one: records are taken, "
    "state moves, answers are acknowledged ([design.md](design.md)). Timely dataflow has logical times too, "
    "as fine as its input gives them, any number of them under way at once. What follows from this is not a "
    "matter of strategies. It cannot:"
)
ALONE = (
    "**Let one worker be late alone.** Epochs follow one another: the next one begins when the last one is "
    "committed, on every worker. A worker that installs state keeps all of them waiting, also those that "
    "have no part in the move. In Megaphone, records at the time of a move and later wait for its state too, "
    "but they are taken, routed and queued meanwhile, and to begin another time costs next to nothing."
)
FORGET = (
    "**Forget a long epoch at once.** What came in while it ran is the next one's input, so the next one is "
    "long as well. How soon a spike is over depends on how much faster than the input the machine is."
)
TAIL = (
    "**Have a tail that is one of records.** All records of an epoch are acknowledged at one moment. The "
    "99.99th percentile of a minute with some hundred epochs is a record of the slowest one, so the tails of "
    "distributions (Figures 13 to 15) are those of a few epochs."
)
REACT = (
    "**React within an epoch.** A wish takes effect at the next one, and a strategy learns what a step cost "
    "when its epoch is over."
)
END = (
    "What it has in return is not in the paper's figures: an epoch commits as a whole, with the moves in it, "
    "or not at all. A failed task, a killed driver or a replay finds the same decision and moves the same "
    "bins, and the state of the epoch before is still there. Megaphone inherits whatever fault tolerance its "
    "engine has (§4.4), and the paper measures none."
)


def chapter(figures: Figures) -> str:
    """The chapter as Markdown."""
    items = [_latency(figures), _steps(figures), _granularity(figures), ALONE, FORGET, TAIL, REACT]
    return "\n\n".join([f"## {TITLE}", BEGIN, bullets(items), END])


def _latency(figures: Figures) -> str:
    said = (
        "**Answer before the epoch ends.** A record waits for the epoch under way to end, and then for its "
        "own: up to two epochs, and never less than its own."
    )
    entry = figures.get("throughput")
    if entry is None or not entry.each("results"):
        return said
    least = min(entry.each("results"), key=lambda line: line.number("rows_per_epoch"))
    paper = OVERHEADS[0].p99(REFERENCE)
    return (
        f"{said} An epoch with {count(least.number('rows_per_epoch'))} rows takes "
        f"{milliseconds(least.number('sterna_epoch_ms_p50'))} here in the median, "
        f"{milliseconds(least.number('sterna_epoch_ms_min'))} at least; most of a small epoch are fixed "
        "costs ([performance.md](performance.md)). The paper's 99th percentile, counting with hash maps in "
        f"2¹² bins, is {paper:.2f} ms (Figure 13)."
    )


def _steps(figures: Figures) -> str:
    said = (
        "**Take steps finer than an epoch.** A migration of so many steps takes as many epochs, however "
        "little each of them moves. With more bins, `fluid` and `matched` take more epochs; in Megaphone the "
        "duration stays as it is (Figure 16)."
    )
    found = figures.experiment("headline")
    matched = of(moves(found), "matched") if found is not None else []
    if not matched:
        return said
    one = matched[0]
    before, during = (_epoch_ms(one, when) for when in ("before", "during"))
    said += (
        f" In Figure 1, `matched` takes {count(one.steps)} steps, one every {milliseconds(one.step_ms)}, of "
        f"{size(one.entry.number('bytes') / max(1.0, one.steps))} each."
    )
    if before is not None and during is not None:
        said += (
            f" From its freeze to its last receipt an epoch takes {milliseconds(before)} before the "
            f"migration and {milliseconds(during)} during it, in the median."
        )
    return said


def _epoch_ms(move: Move, when: str) -> float | None:
    """The median, over the rounds, of the median epoch."""
    found = (one.maybe("epoch_ms", when, "p50_ms") for one in move.entry.each("rounds"))
    known = [value for value in found if value is not None]
    return statistics.median(known) if known else None


def _granularity(figures: Figures) -> str:
    said = (
        "**Move a part of a bin.** A bin moves within one epoch, as it moves at one time in Megaphone, so "
        "the largest bin is a floor for the longest epoch of every strategy. More bins are the remedy; a "
        "running query of Sterna's can be given more of them, one of Megaphone's can't."
    )
    every = [
        (move.entry.number("bin_bytes"), number)
        for experiment, number in FIGURES.items()
        if (found := figures.experiment(experiment)) is not None
        for move in moves(found)
    ]
    if every:
        largest, number = max(every)
        said += f" The largest bins in the figures above have {size(largest)} (Figure {number})."
    return said
