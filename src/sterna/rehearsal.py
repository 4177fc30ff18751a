"""What a migration would do, without doing it.

The steps of a strategy are drawn one after the other as if each went well. Used to refuse a strategy that
gets nowhere before anything moves, and by ``sterna plan`` to tell how many steps, bytes and epochs it takes
and how long the longest epoch may be. A strategy that learns is told what its steps would cost at the price
of the last moves.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sterna import strategies
from sterna.configuration import Configuration
from sterna.drawing import Draws
from sterna.errors import UpdateRefused
from sterna.statistics import EpochCost, Recent, Statistics

MOST_STEPS = 1 << 21
REHEARSAL_SECONDS = 30.0
"""For how long a strategy of one's own may be rehearsed at the most: an epoch, or who asks, waits for it."""
REMEMBERED = 256
"""How many epochs back a strategy is told of."""
ASSUMED_PRICE = 2e-6
"""Milliseconds a byte where no move has been seen: 500 MB a second."""


@dataclass(frozen=True)
class Rehearsal:
    """How it would go.

    Attributes:
        bins, bytes: what moves.
        steps: in how many steps.
        epochs: in how many epochs.
        peak_ms: how long the longest epoch may be, if the largest step is in one that is as long by itself as
            the longest that is known; ``None`` where no epoch without a move has been seen.
        assumed: whether the price of a byte is a guess, because no move has been seen.
    """

    bins: int
    bytes: int
    steps: int
    epochs: int
    peak_ms: float | None
    assumed: bool


def rehearse(
    written: Mapping[str, Any],
    current: Configuration,
    target: Configuration,
    statistics: Statistics,
    seconds: float = math.inf,
) -> Rehearsal:
    """Draws all steps; ``UpdateRefused`` if they do not lead to the target, or not in so many seconds."""
    until = time.monotonic() + seconds
    gap = getattr(strategies.from_json(written), "gap", 0)
    usual, longest, price, assumed = prices(statistics)
    costs = deque(list(statistics.recent)[-64:], REMEMBERED)
    statistics = statistics.at(max(current.bins, target.bins))
    moved, total = _joined(current, target, statistics)
    steps = epochs = int(moved > 0)
    largest, waited = total, 0
    current = current.at_bits(target.bits)
    owners = current.owners.copy()
    statistics = statistics.at(target.bins)
    sizes = statistics.bytes
    number = costs[-1].epoch if costs else -1
    wrong = int(np.count_nonzero(owners != target.owners))
    draws = Draws(written, current, target, replace(statistics, recent=Recent(lambda: costs)))
    while wrong:
        step = _next(draws, until)
        if time.monotonic() > until:
            raise UpdateRefused(
                "all steps of a strategy are drawn once before it begins: this one's were not within "
                f"{seconds:.3g} seconds, and {wrong} bins are still to be moved"
            )
        if step is None:
            raise UpdateRefused(
                f"the strategy ends with {wrong} bins still to be moved: it never reaches the target"
            )
        epochs += 1
        size = 0.0
        if step:
            _check_step(step, target.bins, max(current.workers, target.workers))
            bins = np.array([bin_ for bin_, _ in step], np.int64)
            before = int(np.count_nonzero(owners[bins] != target.owners[bins]))
            owners[bins] = [worker for _, worker in step]
            left = wrong - before + int(np.count_nonzero(owners[bins] != target.owners[bins]))
            if left >= wrong:
                raise UpdateRefused("the strategy makes no progress: it never reaches the target")
            size = float(sizes[bins].sum())
            steps, epochs, moved, wrong, waited = steps + 1, epochs + gap, moved + len(step), left, 0
        else:
            waited += 1
            if waited > 1000:
                raise UpdateRefused("the strategy waits for ever: it never reaches the target")
        total += size
        largest = max(largest, size)
        number += 1
        costs.append(EpochCost(number, usual + price * size, int(size), len(step)))
        quiet = gap if step else 0
        for ago in reversed(range(min(quiet, REMEMBERED))):
            costs.append(EpochCost(number + quiet - ago, usual))
        number += quiet
        if steps > MOST_STEPS:
            raise UpdateRefused(f"the strategy takes more than {MOST_STEPS} steps")
    peak = None if longest is None else round(longest + price * largest, 1)
    return Rehearsal(moved, int(total), steps, max(epochs - gap, 0) if steps else 0, peak, assumed)


def _next(draws: Draws, until: float) -> strategies.Step | None:
    """The next step; whatever is wrong with it does not matter once the time is over."""
    try:
        return draws.next(max(0.0, until - time.monotonic()))
    except UpdateRefused:
        if time.monotonic() > until:
            return None
        raise


def _joined(current: Configuration, target: Configuration, statistics: Statistics) -> tuple[int, float]:
    """How many bins move where there will be fewer of them, and their bytes.

    Bins that are joined go to the owner of the first of them, in one step.
    """
    if current.bits <= target.bits:
        return 0, 0.0
    joined = current.at_bits(target.bits)
    apart = np.flatnonzero(joined.at_bits(current.bits).owners != current.owners)
    return len(apart), float(statistics.bytes[apart].sum())


def prices(statistics: Statistics) -> tuple[float, float | None, float, bool]:
    """What an epoch takes without moves, in the median and at most, and what a byte costs.

    At last, whether that price is a guess.
    """
    quiet = [one.milliseconds for one in statistics.recent if not one.bins]
    usual = float(np.median(quiet)) if quiet else 0.0
    longest = max(quiet, default=None)
    moves = [one for one in statistics.recent if one.bins and one.bytes]
    if not moves:
        return usual, longest, ASSUMED_PRICE, True
    price = max(float(np.median([max(m.milliseconds - usual, 0.0) / m.bytes for m in moves])), 1e-9)
    return usual, longest, price, False


def _check_step(step: strategies.Step, bins: int, workers: int) -> None:
    """Refuses a step that names what does not exist."""
    for bin_, worker in step:
        if not 0 <= bin_ < bins:
            raise UpdateRefused(
                f"the strategy moves bin {bin_}, which does not exist: there are {bins} bins, numbered from 0"
            )
        if not 0 <= worker < workers:
            raise UpdateRefused(
                f"the strategy moves bin {bin_} to worker {worker}, which does not exist: there are "
                f"{workers} workers, numbered from 0"
            )
