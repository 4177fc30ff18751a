"""Compaction, a bounded amount of it an epoch: few runs to search, and never a pause.

A fresh run has level 0. Where the references of one level lie ``DEPTH`` deep over some hash range, all of that level
in a part of the range, about as many rows as the budget allows, become one run of the next level, and the inputs'
references lose that part. The references alone say how far compaction has got, so it stops anywhere and goes on
in the next epoch. When moves have left many small references, those of a narrow range are merged across levels.

Why the order of runs survives: a merge takes *everything* of its level (or of its level and all lower ones) in its
range, so what it makes is newer than all else of its new level there. It carries the greatest age of the table,
which is at least that of anything it is newer than; anything that later joins it at that level comes from a later epoch.

In: references. Out: references, and the number of rows merged. Files that nothing refers to any longer are left for
the collection of garbage, because older manifests may still refer to them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sterna.state.merging import Slice, merge
from sterna.state.refs import RunRef, coalesce, drop, keep, newest_first
from sterna.state.runs import RunCache
from sterna.state.spec import TableSpec

__all__ = ["DEPTH", "compact", "merge"]

DEPTH = 6
"""How many runs of one level over one hash are too many."""

SCATTERED = 64
"""How many references a table may have, and eight more for each level, before ranges are merged for their number."""

Namer = Callable[[], str]


def compact(
    spec: TableSpec,
    refs: Sequence[RunRef],
    cache: RunCache,
    budget_rows: int,
    namer: Namer,
    horizon: int | None = None,
    *,
    durable: bool = False,
    depth: int = DEPTH,
    scattered: int = SCATTERED,
) -> tuple[list[RunRef], int]:
    """Merge about ``budget_rows`` rows where it helps most.

    Args:
        spec: The table.
        refs: All its references of one worker.
        cache: Where runs are read and written.
        budget_rows: How many rows to merge; exceeded by a quarter at most, or by rows that share one hash.
        namer: Gives the name of the next file.
        horizon: Rows of a rows table with a time before this are dropped.
        durable: Whether to return only once the new files are on disk.
        depth: How many runs of one level over one hash are too many; at least 2.
        scattered: How many references, and eight more for each level, are not too many.

    Returns:
        The new references and the number of rows that were merged.
    """
    current = coalesce(refs)
    merged = 0
    # The last quarter is not worth a file of its own: small files are what compaction is against.
    while merged <= budget_rows * 3 // 4 and budget_rows > 0:
        left = budget_rows - merged
        job = _deepest(current, cache, left, depth) or _most_fragmented(current, cache, left, scattered)
        if job is None:
            break
        span = [(job.lo, job.hi)]
        inputs = [ref for ref in current if job.low <= ref.level <= job.high]
        others = [ref for ref in current if not job.low <= ref.level <= job.high]
        slices = _slices(keep(inputs, span), cache)
        bottom = not any(ref.level > job.high and ref.cut(job.lo, job.hi) for ref in others)
        batch = merge(spec, slices, bottom, horizon)
        age = max(ref.age for ref in current)
        fresh = cache.write_split(namer, batch, age=age, level=job.level, timed=spec.timed, durable=durable)
        current = coalesce([*others, *drop(inputs, span), *fresh])
        merged += sum(stop - start for _, start, stop in slices)
    return current, merged


class _Job(NamedTuple):
    """Merge all references of the levels ``low`` to ``high`` in ``[lo, hi)`` into one run of ``level``."""

    low: int
    high: int
    lo: int
    hi: int
    level: int


def _slices(refs: Sequence[RunRef], cache: RunCache) -> list[Slice]:
    out: list[Slice] = []
    for ref in sorted(refs, key=newest_first, reverse=True):
        run = cache.open(ref)
        out.append((run, *run.span(ref.lo, ref.hi)))
    return out


def _deepest(refs: Sequence[RunRef], cache: RunCache, budget: int, limit: int) -> _Job | None:
    """The level and the range where most references lie over one another, if that is too many."""
    best: tuple[int, int, int, int] | None = None
    for level in sorted({ref.level for ref in refs}):
        layer = [ref for ref in refs if ref.level == level]
        if len(layer) < limit:
            continue
        edges = sorted([(ref.lo, 1) for ref in layer] + [(ref.hi, -1) for ref in layer])
        depth = 0
        segments: list[tuple[int, int, int]] = []  # lo, hi, depth
        for (at, step), (until, _) in itertools.pairwise(edges):
            depth += step
            if until > at:
                segments.append((at, until, depth))
        deepest = max(depth for _, _, depth in segments)
        if deepest < limit or (best is not None and deepest <= best[0]):
            continue
        first = next(i for i, segment in enumerate(segments) if segment[2] == deepest)
        lo, hi = segments[first][:2]
        for start, stop, depth in segments[first + 1 :]:
            if start != hi or depth < limit:
                break
            hi = stop
        best = deepest, level, lo, hi
    if best is None:
        return None
    _, level, lo, hi = best
    layer = [ref for ref in refs if ref.level == level]
    return _Job(level, level, lo, _affordable(layer, cache, lo, hi, budget), level + 1)


def _affordable(refs: Sequence[RunRef], cache: RunCache, lo: int, hi: int, budget: int) -> int:
    """The end of the longest range from ``lo`` that holds about ``budget`` rows, but at least one hash."""
    parts = [(cache.open(part), part.lo, part.hi) for ref in refs if (part := ref.cut(lo, hi))]

    def rows(end: int) -> int:
        spans = [run.span(a, min(b, end)) for run, a, b in parts if a < end]
        return sum(stop - start for start, stop in spans)

    if rows(hi) <= budget * 5 // 4:  # rather a little more than a small rest
        return hi
    first = min(
        (int(run.hashes[start]) for run, a, b in parts for start, stop in [run.span(a, b)] if stop > start),
        default=lo,
    )
    good, bad = first + 1, hi
    while bad - good > max(1, (hi - lo) >> 20):
        middle = (good + bad) // 2
        if rows(middle) <= budget:
            good = middle
        else:
            bad = middle
    return good


def _most_fragmented(refs: Sequence[RunRef], cache: RunCache, budget: int, limit: int) -> _Job | None:
    """The range whose merging gets rid of most references, if there are too many of them."""
    levels = max((ref.level for ref in refs), default=0) + 1
    if len(refs) <= limit + 8 * levels:
        return None
    best: _Job | None = None
    most = 2
    for high in range(levels):
        layer = sorted((ref for ref in refs if ref.level <= high), key=lambda ref: (ref.lo, ref.hi))
        sizes = [stop - start for ref in layer for start, stop in [cache.open(ref).span(ref.lo, ref.hi)]]
        end = total = reach = 0
        for begin in range(len(layer)):
            while end < len(layer) and total + sizes[end] <= budget:
                total += sizes[end]
                end += 1
            if end - begin - 1 > most:
                reach = max(ref.hi for ref in layer[begin:end])
                gain = _gain(layer, layer[begin].lo, reach)
                if gain > most:
                    most, best = gain, _Job(0, high, layer[begin].lo, reach, high)
            if end > begin:
                total -= sizes[begin]
            else:
                end = begin + 1
    return best


def _gain(layer: Sequence[RunRef], lo: int, hi: int) -> int:
    """How many references fewer there are after merging a range."""
    inside = sum(lo <= ref.lo and ref.hi <= hi for ref in layer)
    parted = sum(ref.lo < lo and hi < ref.hi for ref in layer)
    return inside - parted - 1
