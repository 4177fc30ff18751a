"""What the figures of the headline come to, in sentences that they choose."""

from __future__ import annotations

from sterna.bench.evaluation.entries import Entry
from sterna.bench.evaluation.markdown import bullets
from sterna.bench.evaluation.moves import Move, of
from sterna.bench.evaluation.paper import OVERHEADS
from sterna.bench.evaluation.words import VISIBLE, code, factor, listed, share
from sterna.readable import count, milliseconds

REFERENCE = 12
MAGNITUDE = 10.0
GOALS = {
    "matched_within_1.5": (
        "`matched`: longest latency at most 1.5 times that before",
        "matched_max_ratio",
        factor,
    ),
    "paced_within_1.5": ("`paced`: longest latency at most 1.5 times that before", "paced_max_ratio", factor),
    "paced_keeps_it_and_ends": (
        "`paced`: 99 % of its epochs within the latency asked for",
        "paced_within_latency",
        share,
    ),
    "matched_to_offline_as_it_ran_kept": (
        (
            "`matched` adds at most a hundredth of what Spark's offline way adds to the longest latency, "
            "with the start that Spark takes to finish the epoch that the stop interrupts"
        ),
        "matched_to_offline_as_it_ran",
        share,
    ),
    "matched_to_offline_kept": (
        (
            "`matched` adds at most a hundredth of what Spark's offline way would add if the stop came "
            "between two epochs"
        ),
        "matched_to_offline",
        share,
    ),
    "matched_to_offline_equal_kept": (
        (
            "that again, but `matched` against a quiet time about as long as the migration and not against a "
            "minute (the longest latency of four minutes is longer than that of one)"
        ),
        "matched_to_offline_equal",
        share,
    ),
}
"""Sterna's own goals, by the name of their outcome: what they say, and the amount they are about."""


def strategies_compared(lines: list[Move]) -> str:
    """All at once against the gentlest of the other strategies."""
    whole, others = of(lines, "all_at_once"), [move for move in lines if move.strategy != "all_at_once"]
    if not whole or not others:
        return ""
    spike, gentle = whole[0], min(others, key=lambda move: move.ratio)
    parts = [_shape(spike, gentle)]
    between = spike.ratio / gentle.ratio
    if 1 < between < MAGNITUDE:
        quiet = [one.percentiles[REFERENCE][3] for one in OVERHEADS]
        parts.append(
            f"The factor between the two is {factor(between)} and not orders of magnitude, because the floor "
            f"is high: in the quiet time the slowest record takes {milliseconds(gentle.before_ms)} here, "
            f"where it waits for its epoch to begin and to end, and {min(quiet):.0f} to {max(quiet):.0f} ms "
            f"in the paper (Figures 13 to 15, {2**REFERENCE:,} bins)."
        )
    steps = [
        f"{code(move.strategy)} takes {count(move.steps)} steps, one every {milliseconds(move.step_ms)}"
        for move in others
        if move.steps > 1
    ]
    if steps:
        parts.append(f"{listed(steps)}: a step takes an epoch, however little it moves.")
    return " ".join(parts)


def _shape(spike: Move, gentle: Move) -> str:
    name, low, high = code(gentle.strategy), factor(gentle.ratio), factor(spike.ratio)
    if gentle.ratio >= spike.ratio:
        return (
            f"**Unlike in the paper, small steps do not pay here**: {name}, the gentlest of them, makes the "
            f"longest latency {low} that before, everything at once {high}."
        )
    if spike.ratio <= VISIBLE:
        return (
            f"Nothing can be told from the quiet time, not even everything at once ({high} the longest "
            "latency before): the state is too small for that."
        )
    if gentle.ratio <= VISIBLE:
        return (
            f"As in the paper, everything at once is a spike ({high} the longest latency before), and the "
            f"gentlest strategy, {name}, can hardly be told from the quiet time ({low})."
        )
    return (
        f"As in the paper, everything at once makes the higher spike ({high} the longest latency before), "
        f"and the gentlest strategy, {name}, the lower one ({low}); it is seen all the same."
    )


def beside_spark(found: Entry, lines: list[Move]) -> str:
    """Spark's own way, and who is better."""
    ways = [found.at("offline", way) for way in ("there", "back") if found.has("offline", way)]
    if not ways:
        return ""
    longest = min(way.number("during", "max_ms") for way in ways)
    seconds = min(way.number("seconds") for way in ways)
    said = (
        "Spark's own way is to stop, to repartition the checkpoint offline, and to start again. It ran at "
        f"{count(found.number('offline', 'rate'))} records a second, the same rate or half of its own "
        f"maximum, whichever is lower; its longest latency is {milliseconds(longest)}, there or back, "
        "whichever is shorter. It changes the number of partitions and can't move a quarter."
    )
    better = [code(move.strategy) for move in lines if move.during_ms >= longest]
    earlier = [code(move.strategy) for move in lines if move.seconds > seconds]
    said += (
        f" **Spark is better** than {listed(better)}: its longest latency is not longer."
        if better
        else " Every strategy has a shorter one."
    )
    if earlier:
        said += f" **Spark is done earlier** than {listed(earlier)}, while nothing is answered."
    return said


def goals(found: Entry) -> str:
    """The goals, kept or missed."""
    items = []
    for name, (said, amount, say) in GOALS.items():
        if found.has("goals", name):
            kept = "kept" if found.flag("goals", name) else "**missed**"
            items.append(f"{said}: {say(found.maybe('goals', amount))}, {kept}")
    return f"The goals that Sterna has set itself:\n\n{bullets(items)}" if items else ""
