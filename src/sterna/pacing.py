"""How much may move in the next epoch, so that it keeps within a latency.

In: the latency, the last epochs as they come, and the size of each step. Out: the bytes of the next step, or
that it should wait. It never waits for ever: however long epochs are, a bin moves every ``PATIENCE`` of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from sterna.statistics import EpochCost

PATIENCE = 8
"""How many epochs it waits at the most, while they take too long."""
SHARE = 0.35
"""Of the room between quiet epochs and the latency, what steps may take."""
LITTLE = 0.25
"""Room is little if it is less than this part of what lies between the median and the latency."""
QUIET = 128
"""How many quiet epochs it remembers."""
USUAL = 32
"""How many of these, the last ones, tell what is usual now."""
MOVING = 50
"""How many epochs of steps it remembers, and has to know before it doubts what it knows of quiet ones."""
STEPS = 8
"""How many steps it remembers."""


class Pace:
    """How many bytes may move in the next epoch.

    What a move adds to an epoch is a part that does not depend on its size and a part that does. Instead of
    telling the two apart, the size follows the room that the last steps left: where they added half of what
    is allowed, the next one is twice as large. Near the limit this settles where what is added is what is
    allowed.

    Allowed is a share of what lies between the longest of the last quiet epochs (all but one in fifty) and
    the latency: a step must leave room for an epoch that is long by itself, and the epochs of steps differ
    more from each other than quiet ones do. What steps add is the median of the last ones: with their upper
    quartile, epochs that were long by themselves made steps as small as a bin.

    A long epoch makes the next one long, because more records wait for it. So a step follows only an epoch
    that was no longer than quiet ones usually are and a step may make them. The epochs that it leaves out for
    that are quiet ones: they tell how long those are now, also on a machine that has become slower since the
    migration began. Steps that followed each other looked as if they cost more than they did, and became as
    small as a bin: with simulated epochs that carry over half of their length, the same migration took four
    times as long, and more of its epochs were too long.

    While steps follow each other there are no quiet epochs, so what is known of them may be of another time:
    of a burst of load that is over, or of nothing at all after a restart. Moving never makes an epoch
    shorter. So where quiet epochs seem to leave little room or none, fifty epochs of steps that were all
    shorter know better; and where no quiet epoch is known, one is left without a step.
    """

    def __init__(self, latency: float, recent: Sequence[EpochCost]) -> None:
        self._latency, self._recent = latency, recent
        self._seen = recent[-1].epoch if recent else -1
        self._quiet: deque[float] = deque(maxlen=QUIET)
        self._moving: deque[float] = deque(maxlen=MOVING)
        self._note(recent)
        self._took: dict[int, float] = {}
        self._steps: deque[tuple[int, float]] = deque(maxlen=STEPS)
        self._idle = 0
        self._allowed = 0.0
        self._halved = False
        self._looked = False

    def _note(self, epochs: Sequence[EpochCost]) -> None:
        """Takes note of what epochs took."""
        for epoch in epochs:
            (self._moving if epoch.bins else self._quiet).append(epoch.milliseconds)

    def moved(self, size: float) -> None:
        """Takes note of a step of so many bytes, in the epoch that comes next."""
        self._steps.append((self._seen, size))

    def allowance(self) -> float | None:
        """The bytes; ``None`` to wait for an epoch."""
        fresh = [epoch for epoch in self._recent if epoch.epoch > self._seen]
        if fresh:
            self._seen = fresh[-1].epoch
        self._note(fresh)
        since = self._steps[0][0] if self._steps else self._seen
        self._took = {at: took for at, took in self._took.items() if at > since}
        self._took.update((epoch.epoch, epoch.milliseconds) for epoch in fresh)
        if self._idle == 0 and self._steps and any(self._too_long(epoch) for epoch in fresh):
            self._allowed, self._halved = self._steps[-1][1] / 2, True
        long = bool(self._recent) and self._recent[-1].milliseconds > self._short()
        if long and self._idle < PATIENCE - 1:
            self._idle += 1
            return None
        halved, self._halved, self._idle = self._halved, False, 0
        if long or not self._steps:
            return 0.0  # one bin, whatever its size
        if not self._quiet and not self._looked and len(self._steps) == STEPS:
            self._looked, self._idle = True, 1
            return None  # an epoch without a step tells what is quiet
        if not halved:
            self._allowed = self._following()
        return self._allowed

    def _too_long(self, epoch: EpochCost) -> bool:
        return epoch.bins > 0 and epoch.milliseconds > self._latency

    def _short(self) -> float:
        """How long an epoch may be that a step follows."""
        usual, long = self._without_moves()
        room = max(self._latency - long, LITTLE * (self._latency - usual))
        return min(usual + SHARE * room, self._latency)

    def _following(self) -> float:
        """The size of the next step from what the last ones added."""
        usual, long = self._without_moves()
        last = self._steps[-1][1]
        # Bins are whole: what was allowed may be more than what was taken of it, but not by more than once
        # again.
        allowed = min(max(self._allowed, last), 2 * last)
        # A step is in the first epoch after the one that was the last when it was drawn.
        alike = [
            self._took[at + 1] - usual
            for at, size in self._steps
            if 0.75 * last <= size <= 1.5 * last and at + 1 in self._took
        ]
        room = SHARE * (self._latency - long)
        if room <= 0:
            return 0.0
        added = float(np.median(alike)) if alike else 0.0
        return min(allowed * (2.0 if added * 2 <= room else max(room / added, 0.5)), 2 * last)

    def _without_moves(self) -> tuple[float, float]:
        """What an epoch without a move takes: in the median, and the longest but for one in fifty."""
        if not self._quiet:
            return _typical(self._moving) if self._moving else (0.0, 0.0)
        _, long = _typical(self._quiet)
        usual = float(np.median(list(self._quiet)[-USUAL:]))
        little = self._latency - long < LITTLE * (self._latency - usual)
        if not little or len(self._moving) < MOVING:
            return usual, long
        bound, _ = _typical(self._moving)
        return min(usual, bound), min(long, max(self._moving))


def _typical(milliseconds: Sequence[float]) -> tuple[float, float]:
    usual, long = np.percentile(milliseconds, [50, 98])
    return float(usual), float(long)
