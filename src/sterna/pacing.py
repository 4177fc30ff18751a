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
QUIET = 128
"""How many quiet epochs it remembers."""
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
    more from each other than quiet ones do. With six tenths of the room, 2 to 4 % of the epochs were too long
    at 1 GiB of state, and the whole took 14 to 41 s.
    """

    def __init__(self, latency: float, recent: Sequence[EpochCost]) -> None:
        self._latency, self._recent = latency, recent
        self._seen = recent[-1].epoch if recent else -1
        self._quiet = deque((epoch.milliseconds for epoch in recent if not epoch.bins), maxlen=QUIET)
        self._took: dict[int, float] = {}
        self._steps: deque[tuple[int, float]] = deque(maxlen=STEPS)
        self._idle = 0
        self._allowed = 0.0
        self._halved = False

    def moved(self, size: float) -> None:
        """Takes note of a step of so many bytes, in the epoch that comes next."""
        self._steps.append((self._seen, size))

    def allowance(self) -> float | None:
        """The bytes; ``None`` to wait for an epoch."""
        fresh = [epoch for epoch in self._recent if epoch.epoch > self._seen]
        if fresh:
            self._seen = fresh[-1].epoch
        self._quiet.extend(epoch.milliseconds for epoch in fresh if not epoch.bins)
        since = self._steps[0][0] if self._steps else self._seen
        self._took = {at: took for at, took in self._took.items() if at > since}
        self._took.update((epoch.epoch, epoch.milliseconds) for epoch in fresh)
        if any(epoch.milliseconds > self._latency for epoch in fresh):
            if self._idle == 0 and any(epoch.bins for epoch in fresh) and self._steps:
                self._allowed, self._halved = self._steps[-1][1] / 2, True
            if self._idle < PATIENCE - 1:
                self._idle += 1
                return None
        waited, self._idle = self._idle, 0
        if waited == PATIENCE - 1 or not self._steps:
            return 0.0  # one bin, whatever its size
        if not self._halved:
            self._allowed = self._following()
        self._halved = False
        return self._allowed

    def _following(self) -> float:
        """The size of the next step from what the last ones added."""
        usual, long = np.percentile(self._quiet, [50, 98]) if self._quiet else (0.0, 0.0)
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
        added = float(np.percentile(alike, 75)) if alike else 0.0
        return min(allowed * (2.0 if added * 2 <= room else max(room / added, 0.5)), 2 * last)
