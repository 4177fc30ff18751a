"""Compaction, a bounded amount of it an epoch: few runs to search, and never a pause.

A fresh run has level 0. Where the references of one level lie ``DEPTH`` deep over some hash, all of that
level in the cell around it become one run of the next level, and the inputs' references lose the cell. A cell
is a range that shares its first bits, as a bin does, the largest whose rows fit a piece of the budget. So the
same cells are merged again and again: ranges cut anywhere would leave ever smaller pieces. The references
alone say how far compaction has got, so it stops anywhere and goes on in the next epoch. When moves have left
many small references, those of a narrow range are merged across levels. A level whose rows expire before
merging them has paid is left alone (``lasting``).

Why the order of runs survives: a merge takes *everything* of its level (or of its level and all lower ones)
in its range, so what it makes is newer than all else of its new level there. It carries the greatest age of
the table, or one more where something of its new level already has that, from a merge before it, in this
epoch or in one without writes. Ages of different epochs lie so far apart (``EPOCH_AGES``) that a run which is
written later is always younger.

In: references. Out: references, and the number of rows merged. Files that nothing refers to any longer are
left for the collection of garbage, because older manifests may still refer to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sterna.state.columns import Hashes
from sterna.state.lasting import lasting
from sterna.state.merging import Slice, merge
from sterna.state.refs import END, RunRef, coalesce, drop, keep, newest_first
from sterna.state.runs import RunCache
from sterna.state.spec import TableSpec

__all__ = ["Turn", "allowed_depth", "at_once", "compact", "deepest", "merge", "too_deep"]

DEPTH, WIDE_DEPTH, WIDE_ROW = 6, 12, 128
"""How many runs of one level over one hash are too many, and how many if rows have so many bytes.

Looking a key up takes about 11 ns a run, whatever its row holds; merging a row takes 70 ns a level, and 170
and more if it has 256 bytes. Deeper levels are fewer: the wider rows are, the better are deep ones.
"""

PAYS = 2
"""For how many times so many epochs rows have to live for merging them to pay.

A lookup an epoch in one run less is a fifteenth of what merging a row takes, or less where rows are wide.
"""

SCATTERED = 64
"""How many references a small table may have before ranges are merged for the sake of their number."""

_TELLING = 256
"""Rows from which on a file's size tells how wide they are: that of a smaller one is mostly its schema's."""

_WINDOWS = 256
_WIDE = 256
_GAIN = 3

Namer = Callable[[], str]
Turn = Callable[[], AbstractContextManager[bool]]


def at_once() -> AbstractContextManager[bool]:
    """A piece is merged at once."""
    return nullcontext(True)


def compact(
    spec: TableSpec,
    refs: Sequence[RunRef],
    cache: RunCache,
    budget_rows: int,
    namer: Namer,
    horizon: int | None = None,
    *,
    durable: bool = False,
    piece_rows: int | None = None,
    depth: int | None = None,
    scattered: int = SCATTERED,
    turn: Turn = at_once,
) -> tuple[list[RunRef], int]:
    """Merge about ``budget_rows`` rows where it helps most.

    Args:
        spec: The table.
        refs: All its references of one worker.
        cache: Where runs are read and written.
        budget_rows: How many rows to merge, fewer if they are wider than 256 bytes; exceeded by a quarter at
            most, or by rows that share one hash.
        namer: Gives the name of the next file.
        horizon: Rows of a rows table with a time before this are dropped, whole files of them at no cost.
        durable: Whether to return only once the new files are on disk.
        piece_rows: How many rows to merge at once, which is what memory has to hold; all of the budget unless
            given.
        depth: How many runs of one level over one hash are too many, at least 2; by how wide rows are unless
            given.
        scattered: How many references are not too many, besides those that order itself makes.
        turn: Makes a context in which each piece is merged, which may wait for a better moment; where it is
            false, no more is merged.

    Returns:
        The new references and the number of rows that were merged.
    """
    current = coalesce(ref for ref in refs if not _expired(ref, horizon))
    if len(current) > scattered:
        # A reference that spans others' ranges is empty there; pieces of it may have been moved here for
        # nothing.
        current = [ref for ref in current if _cost([ref], cache, ref.lo, ref.hi)]
    depth = depth or allowed_depth(current)
    merged = spent = 0
    piece = min(budget_rows, piece_rows or budget_rows)
    while budget_rows > 0:
        job = _deepest(lasting(current, horizon, PAYS * depth), current, cache, piece, depth)
        if job is None:
            job = _most_scattered(current, cache, piece, scattered)
        if job is None:
            break
        span = [(job.lo, job.hi)]
        inputs = [ref for ref in current if job.low <= ref.level <= job.high]
        others = [ref for ref in current if not job.low <= ref.level <= job.high]
        slices = _slices(keep(inputs, span), cache)
        cost = _cost(inputs, cache, job.lo, job.hi)
        if spent and spent + cost > budget_rows * 5 // 4:
            break
        bottom = not any(ref.level > job.high and ref.cut(job.lo, job.hi) for ref in others)
        age = max(ref.age for ref in current)
        age += any(ref.level == job.level and ref.age == age and ref.cut(job.lo, job.hi) for ref in others)
        with turn() as go_on:
            if not go_on:
                break
            batch = merge(spec, slices, bottom, horizon)
            fresh = cache.write_split(
                namer, batch, age=age, level=job.level, timed=spec.timed, durable=durable
            )
        current = coalesce([*others, *drop(inputs, span), *fresh])
        merged += sum(stop - start for _, start, stop in slices)
        spent += cost
    return current, merged


def too_deep(refs: Sequence[RunRef], horizon: int | None) -> float:
    """How many times deeper than wanted runs lie, of those that are worth merging."""
    allowed = allowed_depth(refs)
    return deepest(lasting(refs, horizon, PAYS * allowed)) / allowed


def deepest(refs: Sequence[RunRef]) -> int:
    """How many references of one level lie over one hash at most."""
    edges: dict[int, list[tuple[int, int]]] = {}
    for ref in refs:
        edges.setdefault(ref.level, []).extend(((ref.lo, 1), (ref.hi, -1)))
    most = 0
    for steps in edges.values():
        depth = 0
        for _, step in sorted(steps):
            depth += step
            most = max(most, depth)
    return most


def allowed_depth(refs: Sequence[RunRef]) -> int:
    """How many runs of one level over one hash are too many for a table with these."""
    some = [ref for ref in refs if ref.rows >= _TELLING]
    wide = sum(ref.size for ref in some) >= WIDE_ROW * sum(ref.rows for ref in some)
    return WIDE_DEPTH if some and wide else DEPTH


def _expired(ref: RunRef, horizon: int | None) -> bool:
    """Whether nobody sees any row of a file; tombstones are seen, by the rows they hide."""
    return horizon is not None and ref.newest is not None and ref.newest < horizon and not ref.deletes


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


def _deepest(
    some: Sequence[RunRef], refs: Sequence[RunRef], cache: RunCache, budget: int, limit: int
) -> _Job | None:
    """The cell where most references of one level lie over one another, if that is too many.

    Only levels of which there are some are looked at.
    """
    best = 0, 0, 0  # depth, level, where
    for level in sorted({ref.level for ref in some}):
        layer = [ref for ref in refs if ref.level == level]
        depth = 0
        for at, step in sorted([(ref.lo, 1) for ref in layer] + [(ref.hi, -1) for ref in layer]):
            depth += step
            if depth > best[0]:
                best = depth, level, at
    depth, level, at = best
    if depth < limit:
        return None
    layer = [ref for ref in refs if ref.level == level]
    small, large = 0, 64  # the bits of a cell that fits the budget, and of one that does not
    if _cost(layer, cache, 0, END) <= budget:
        small = 64
    inside = layer  # what a cell has that does not fit is all that there is for smaller ones
    while small < large - 1:
        bits = (small + large) // 2
        lo = at >> bits << bits
        hi = lo + (1 << bits)
        some = [ref for ref in inside if ref.lo < hi and ref.hi > lo]
        if _cost(some, cache, lo, hi) <= budget:
            small = bits
        else:
            large, inside = bits, some
    lo = at >> small << small
    hi = lo + (1 << small)
    # Where the next level is the last and holds no more than what joins it, both become one: else keys that
    # are written again and again would fill level after level with copies of themselves.
    last = not any(ref.level > level + 1 and ref.cut(lo, hi) for ref in refs)
    below = [ref for ref in refs if ref.level == level + 1]
    if last and small and 0 < _cost(below, cache, lo, hi) <= _cost(layer, cache, lo, hi):
        half = lo + (1 << (small - 1))
        return _Job(level, level + 1, *((lo, half) if at < half else (half, hi)), level + 1)
    return _Job(level, level, lo, hi, level + 1)


def _cost(refs: Sequence[RunRef], cache: RunCache, lo: int, hi: int) -> int:
    """The rows in a range; a row of more than 256 bytes counts for several."""
    total = 0
    for ref in refs:
        start, stop = max(lo, ref.lo), min(hi, ref.hi)
        if start < stop:
            total += cache.open(ref).count(start, stop) * _weight(ref)
    return total


def _weight(ref: RunRef) -> int:
    return max(1, ref.size // (ref.rows * _WIDE))


def _affordable(refs: Sequence[RunRef], cache: RunCache, lo: int, hi: int, budget: int) -> int:
    """The end of the longest range from ``lo`` that costs about ``budget``, but at least one hash."""
    if _cost(refs, cache, lo, hi) <= budget * 5 // 4:  # rather a little more than a small rest
        return hi
    runs = [(cache.open(part), part) for ref in refs if (part := ref.cut(lo, hi))]
    first = [
        int(run.hashes[start])
        for run, part in runs
        for start, stop in [run.span(part.lo, part.hi)]
        if start < stop
    ]
    good, bad = min(first) + 1, hi
    while bad - good > max(1, (hi - lo) >> 20):
        middle = (good + bad) // 2
        if _cost(refs, cache, lo, middle) <= budget:
            good = middle
        else:
            bad = middle
    return good


def _most_scattered(refs: Sequence[RunRef], cache: RunCache, budget: int, limit: int) -> _Job | None:
    """The range whose merging gets rid of most references, if there are too many of them."""
    if not refs or len(refs) <= limit:
        return None
    levels = max(ref.level for ref in refs) + 1
    sizes = np.array([_cost([ref], cache, ref.lo, ref.hi) for ref in refs], np.float64)
    # A full layer of files as large as the budget makes them is no disorder.
    if len(refs) <= limit + 8 * levels + 3 * sizes.sum() / budget:
        return None
    level = np.array([ref.level for ref in refs])
    los = np.array([ref.lo for ref in refs], np.uint64)
    lasts = np.array([ref.hi - 1 for ref in refs], np.uint64)
    best: _Job | None = None
    most = _GAIN - 1
    for high in range(levels):
        layer = level <= high
        gain, lo, last = _best_window(los[layer], lasts[layer], sizes[layer], budget)
        if gain > most:
            most, best = gain, _Job(0, high, lo, last + 1, high)
    if best is None:
        return None
    # The window was measured as if hashes were spread evenly; where they are not, less is merged.
    inputs = [ref for ref in refs if ref.level <= best.high]
    hi = _affordable(inputs, cache, best.lo, best.hi, budget)
    left = len(drop(inputs, [(best.lo, hi)])) + 1
    return best._replace(hi=hi) if len(inputs) - left >= _GAIN else None


def _best_window(
    los: Hashes, lasts: Hashes, sizes: npt.NDArray[np.float64], budget: int
) -> tuple[int, int, int]:
    """Of the windows of about ``budget`` rows, the one whose merging leaves fewest references.

    Returns gain, lo, last.
    """
    starts = np.unique(los)
    starts = starts[:: len(starts) // _WINDOWS + 1]
    ends = np.unique(lasts)
    widths = (lasts - los).astype(np.float64) + 1

    def rows_before(points: Hashes) -> npt.NDArray[np.float64]:
        # One reference at a time: a matrix of all edges by all references would be large after many moves.
        total = np.zeros(len(points))
        for lo, width, size in zip(los, widths, sizes, strict=True):
            first = int(points.searchsorted(lo))
            share = (points[first:] - lo).astype(np.float64) / width
            total[first:] += np.minimum(share, 1.0) * size
        return total

    reach = rows_before(ends).searchsorted(rows_before(starts) + budget, "right") - 1
    good = (reach >= 0) & (ends[np.maximum(reach, 0)] >= starts)
    if not good.any():
        return 0, 0, 0
    starts, stops = starts[good], ends[reach[good]]
    inside = (los >= starts[:, None]) & (lasts <= stops[:, None])
    parted = (los < starts[:, None]) & (lasts > stops[:, None])
    gains = np.count_nonzero(inside, axis=1) - np.count_nonzero(parted, axis=1) - 1
    at = int(np.argmax(gains))
    return int(gains[at]), int(starts[at]), int(stops[at])
