"""A migration beside quiet times as long as itself.

The longest wait in a long time is longer than that in a short one. So a migration of a second looks gentler
beside a quiet minute than it is, and would look worse than it is beside a quiet second of good luck: it is
compared with what is usual for times of its length, the median over all of them within the quiet time before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sterna.bench.evaluation.entries import Entry
from sterna.bench.latency import SLOT_SECONDS

LEAD_SECONDS = 2.0
"""Records that were due so shortly before a migration was asked for count to it: they may wait for it."""


def equal_ratio(one: Entry, timeline: Sequence[Entry], quiet_seconds: float) -> float | None:
    """The longest wait of a migration over the usual one of times as long; ``None`` if nothing is known.

    Args:
        one: the migration.
        timeline: that of its run.
        quiet_seconds: how long the quiet time before it was.
    """
    end = one.number("second") - LEAD_SECONDS
    quiet = np.array(
        [
            slot.number("max_ms")
            for slot in timeline
            if end - quiet_seconds <= slot.number("second") <= end - SLOT_SECONDS
        ]
    )
    if not len(quiet):
        return None
    slots = math.ceil((one.number("seconds") + LEAD_SECONDS) / SLOT_SECONDS)
    longest = np.lib.stride_tricks.sliding_window_view(quiet, min(slots, len(quiet))).max(axis=1)
    return one.number("during", "max_ms") / max(float(np.median(longest)), 1e-9)
