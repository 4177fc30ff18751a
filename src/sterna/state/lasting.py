"""Which references of a table last long enough to be merged.

A file whose rows have all expired is dropped for nothing. Where that happens soon, as in a window that is
some epochs long, merging its rows first is a waste, and keeps the older of them for longer. How soon it
happens is told by the files of single epochs: how far their newest event times are apart is how fast event
time passes.

In: references, and the event time before which rows have expired. Out: the references of those levels whose
rows live, on the average, for as many epochs as they are to be worth it. Where the speed of event time can't
be told, that is all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from sterna.state.refs import EPOCH_AGES, RunRef


def lasting(refs: Sequence[RunRef], horizon: int | None, epochs: int) -> list[RunRef]:
    """The references of the levels that last for so many epochs on; see the module's docstring.

    Example:
        >>> def ref(epoch, level=0):
        ...     return RunRef("", 0, 9, epoch * EPOCH_AGES, level, 1, 1, 0, False, 10 * epoch, 10 * epoch)
        >>> fresh, old = [ref(8), ref(7), ref(6)], ref(5, level=1)
        >>> [len(lasting([*fresh, old], horizon=40, epochs=count)) for count in (1, 2, 3, 4)]
        [4, 3, 3, 0]
    """
    pace = _pace(refs) if horizon is not None else None
    if horizon is None or pace is None:
        return list(refs)
    left: dict[int, list[float]] = {}
    for ref in refs:
        if ref.newest is not None:
            left.setdefault(ref.level, []).append((ref.newest - horizon) / pace)
    going = {level for level, some in left.items() if sum(some) < epochs * len(some)}
    return [ref for ref in refs if ref.level not in going]


def _pace(refs: Sequence[RunRef]) -> float | None:
    """How much event time passes in an epoch, if that can be told."""
    fresh = [(ref.age // EPOCH_AGES, ref.newest) for ref in refs if ref.level == 0 and ref.newest is not None]
    if not fresh:
        return None
    (first, start), (last, end) = min(fresh), max(fresh)
    return (end - start) / (last - first) if last > first and end > start else None
