"""The event-time frontier.

Each timed edge from a source has a greatest event time seen so far. The watermark at an epoch is the least of
these over the edges that are not idle, minus the delay; it never goes back. It is fixed when the epoch is
frozen, from what the epochs before have committed, so a replay sees the same one. An operator that reads
other operators lags behind by an epoch for each operator before it: what those emit when the watermark passes
arrives before its own frontier does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

END_OF_TIME = (1 << 62) - 1
"""The watermark at the end of a stream, when what is pending gets flushed."""


@dataclass(frozen=True)
class Progress:
    """What is known of one timed edge.

    That is the greatest event time (microseconds) and when it last had rows (epoch seconds).
    """

    newest: int | None
    seen: float

    def to_json(self) -> list[Any]:
        """A JSON form."""
        return [self.newest, self.seen]


def advance(
    progress: Mapping[int, Progress], previous: int | None, delay: int, idle: float | None, now: float
) -> int | None:
    """The next watermark.

    >>> advance({0: Progress(100, 0.0), 1: Progress(50, 0.0)}, None, 10, None, 0.0)
    40
    >>> advance({0: Progress(100, 9.0), 1: Progress(50, 0.0)}, 40, 10, 5.0, 9.0)
    90
    """
    # The edge that had rows last is never idle: when all are silent, it is the one that the others need not
    # wait for.
    last = max((p.seen for p in progress.values() if p.newest is not None), default=None)
    awake = [
        p
        for p in progress.values()
        if idle is None or now - p.seen <= idle or (p.newest is not None and p.seen == last)
    ]
    if not awake or any(p.newest is None for p in awake):
        return previous
    least = min(p.newest for p in awake if p.newest is not None) - delay
    return least if previous is None else max(previous, least)


def observe(progress: Mapping[int, Progress], newest: Mapping[int, int], now: float) -> dict[int, Progress]:
    """The progress after an epoch in which these edges had rows up to these times."""
    out = dict(progress)
    for edge, time in newest.items():
        before = out[edge].newest if edge in out else None
        out[edge] = Progress(time if before is None else max(before, time), now)
    return out
