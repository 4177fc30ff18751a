"""The maximal frequent patterns once more, from their definition.

Every window and every set of items is looked at on its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import combinations

Transaction = tuple[frozenset[str], int]
Change = tuple[str, int, bool]


def maximal(transactions: Iterable[frozenset[str]], support: int, longest: int) -> set[frozenset[str]]:
    """The maximal frequent patterns of one window."""
    counts = Counter(
        frozenset(chosen)
        for items in transactions
        for size in range(1, longest + 1)
        for chosen in combinations(items, size)
    )
    frequent = {pattern for pattern, count in counts.items() if count >= support}
    return {pattern for pattern in frequent if not any(pattern < other for other in frequent)}


def changes(
    transactions: list[Transaction], window: int, slide: int, support: int, longest: int
) -> list[Change]:
    """(pattern, end of a window, whether it is maximal now), sorted."""
    times = [time for _, time in transactions] or [0]
    first, last = (time // slide * slide for time in (min(times), max(times)))
    found: list[Change] = []
    before: set[frozenset[str]] = set()
    for end in range(first + slide, last + slide + window + 1, slide):
        inside = (items for items, time in transactions if end - window <= time < end)
        now = maximal(inside, support, longest)
        found += [(" ".join(sorted(pattern)), end, pattern in now) for pattern in now ^ before]
        before = now
    return sorted(found)


def on_time(epochs: list[list[Transaction]], delay: int) -> list[Transaction]:
    """What is not late.

    The watermark of an epoch is the newest time of the epochs before it, less the delay.
    """
    kept: list[Transaction] = []
    newest: int | None = None
    for epoch in epochs:
        kept += [one for one in epoch if newest is None or one[1] >= newest - delay]
        newest = max([time for _, time in epoch] + ([] if newest is None else [newest]), default=None)
    return kept
