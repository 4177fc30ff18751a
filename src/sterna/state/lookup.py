"""Finding keys in runs: a binary search by hash, then a comparison of keys.

In: the views of a table, the newest first, and needles sorted by hash. Out: where the newest row of each
needle is, or all its rows. A hash alone never decides: several keys may share one, also within one run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sterna.state.columns import Hashes, Ints, Mask, Words, equal, flags, gather, plain, valid, width
from sterna.state.refs import END, RunRef, newest_first
from sterna.state.run import Run
from sterna.state.runs import RunCache

_CACHED = 1 << 15  # words that stay in the processor's cache


class View:
    """The part of one run that a table may see: one or more hash ranges of it, sorted.

    The run is opened when it is first needed: a small batch does not make a large state be read and checked.
    """

    __slots__ = ("_lasts", "_lows", "_open", "_run", "deletes", "hi", "lo", "newest", "oldest")

    def __init__(
        self, source: Run | Callable[[], Run], ranges: Sequence[tuple[int, int]], deletes: bool
    ) -> None:
        self._run = source if isinstance(source, Run) else None
        self._open = source
        self.deletes = deletes
        self.lo, self.hi = ranges[0][0], ranges[-1][1]
        self.oldest: int | None = None
        self.newest: int | None = None
        self._lows: Hashes | None = None
        if len(ranges) > 1:
            self._lows = np.array([lo for lo, _ in ranges], np.uint64)
            self._lasts: Hashes = np.array([hi - 1 for _, hi in ranges], np.uint64)

    @property
    def run(self) -> Run:
        """The run, opened."""
        if self._run is None:
            assert not isinstance(self._open, Run)
            self._run = self._open()
        return self._run

    def sees(self, hashes: Hashes) -> Mask | None:
        """Which of the hashes, all between ``lo`` and ``hi``, are in a range; None for all."""
        if self._lows is None:
            return None
        return hashes <= self._lasts[self._lows.searchsorted(hashes, "right") - 1]


def views_of(refs: Sequence[RunRef], cache: RunCache) -> list[View]:
    """The views that references make, the newest first; the references of one file are one view."""
    grouped: dict[tuple[str, int, int], list[RunRef]] = {}
    for ref in sorted(refs, key=newest_first):
        grouped.setdefault((ref.name, ref.level, ref.age), []).append(ref)
    out = []
    for group in grouped.values():
        first = group[0]
        view = View(partial(cache.open, first), [(ref.lo, ref.hi) for ref in group], first.deletes)
        view.oldest, view.newest = first.oldest, first.newest
        out.append(view)
    return out


class Spans:
    """Which of some sorted needles lie in the range of each view: one search for all views."""

    def __init__(self, views: Sequence[View]) -> None:
        self._lows = np.array([view.lo for view in views], np.uint64)
        self._lasts = np.array([view.hi - 1 for view in views], np.uint64)

    def of(self, needles: Hashes) -> tuple[list[int], list[int]]:
        """Where the needles of each view begin, and where they end."""
        begins: list[int] = needles.searchsorted(self._lows).tolist()
        ends: list[int] = needles.searchsorted(self._lasts, "right").tolist()
        return begins, ends


def match(
    run: Run, names: Sequence[str], rows: Ints, hashes: Hashes, keys: Sequence[Words], who: Ints
) -> tuple[Ints, Ints]:
    """The rows that hold the needles ``who``, searched from ``rows`` on, and those needles; one row a needle.

    ``rows[i]`` holds the hash of needle ``who[i]``; a needle that is not at it may be at one of the next.
    """
    columns = [run.words(name) for name in names]
    found: list[tuple[Ints, Ints]] = []
    while len(who):
        same = equal(columns, rows, keys, who)
        if same.all():
            found.append((rows, who))
            break
        found.append((rows[same], who[same]))
        rows, who = rows[~same] + 1, who[~same]
        more = run.hashes.take(rows, mode="clip") == hashes[who]
        more &= rows < run.rows
        rows, who = rows[more], who[more]
    if len(found) == 1:
        return found[0]
    if not found:
        return rows, who
    return np.concatenate([r for r, _ in found]), np.concatenate([w for _, w in found])


class Located:
    """Where the rows of some keys are: ``found`` says which keys have one."""

    def __init__(self, types: dict[str, pa.DataType], rows: int) -> None:
        self._types = types
        self._rows = rows
        self.parts: list[tuple[Run, Ints, Ints | slice]] = []
        self.found: Mask = np.zeros(rows, np.bool_)

    def take(self, column: str) -> pa.Array:
        """A value column, aligned to the keys; null where a key has no row."""
        name = f"v.{column}"
        return gather(
            self._types[name], self._rows, [(run.words(name), at, to) for run, at, to in self.parts]
        )

    def numpy(self, column: str, default: Any) -> npt.NDArray[Any]:
        """A numeric, date or time column as NumPy values.

        ``default`` where a key has no row or its value is null.
        """
        name = f"v.{column}"
        kind = self._types[name]
        if pa.types.is_boolean(kind):
            out: npt.NDArray[Any] = np.full(self._rows, default, np.bool_)
        elif width(kind) in (1, 2, 4, 8):
            dtype = np.dtype(kind.to_pandas_dtype())
            if dtype.kind not in "iuf":
                dtype = np.dtype(f"i{width(kind)}")
            out = np.full(self._rows, default, dtype)
        else:
            raise TypeError(f"column {column!r} is {kind}: only numbers, dates and times have a NumPy form")
        for run, at, to in self.parts:
            held = run.words(name)
            values = flags(held.array, at) if held.values is None else held.values.view(out.dtype)[at]
            known = None if held.full else valid(held.array, at)
            if known is not None and not known.all():
                values = np.where(known, values, np.asarray(default, out.dtype))
            out[to] = values
        return out


def locate(
    views: Sequence[View],
    names: Sequence[str],
    types: dict[str, pa.DataType],
    hashes: Hashes,
    keys: Sequence[pa.Array],
) -> Located:
    """The newest row of each key of a value table; needles sorted by hash, keys may repeat."""
    out = Located(types, len(hashes))
    settled = np.zeros(len(hashes), np.bool_)
    active: Ints | None = None  # the needles still looked for, where dropping the others has paid
    needles, looked_for = hashes, [Words(key) for key in keys]
    spans = Spans(views)
    begins, ends = spans.of(needles)
    waste = 0
    for number, view in enumerate(views):
        first, last = begins[number], ends[number]
        if first == last:
            continue
        run = view.run
        hit, rows = run.find(needles[first:last])
        if not len(hit):
            continue
        hit += first
        who = hit if active is None else active[hit]
        wanted = view.sees(hashes[who])
        if waste:
            wanted = ~settled[who] if wanted is None else wanted & ~settled[who]
        if wanted is not None:
            rows, who = rows[wanted], who[wanted]
        rows, who = match(run, names, rows, hashes, looked_for, who)
        if not len(who):
            continue
        settled[who] = True
        waste += len(who)
        if view.deletes:
            there = ~flags(run.column("_gone"), rows)
            rows, who = rows[there], who[there]
        out.found[who] = True
        out.parts.append((run, rows, who))
        if waste * 4 > len(needles):
            active = np.flatnonzero(~settled)
            needles = hashes[active]
            begins, ends = spans.of(needles)
            waste = 0
            if not len(active):
                break
    return out


def all_rows(
    views: Sequence[View], names: Sequence[str], hashes: Hashes, keys: Sequence[pa.Array], horizon: int | None
) -> list[tuple[Run, Ints, Ints]]:
    """The live rows of each key of a rows table: (run, rows, needles), the newest run first."""
    out: list[tuple[Run, Ints, Ints]] = []
    dead = np.zeros(len(hashes), np.bool_)
    looked_for = [Words(key) for key in keys]
    begins, ends = Spans(views).of(hashes)
    for first, last, view in zip(begins, ends, views, strict=True):
        if first == last:
            continue
        if horizon is not None and not view.deletes and view.newest is not None and view.newest < horizon:
            continue
        run = view.run
        who, start = run.find(hashes[first:last])
        who += first
        alive = ~dead[who]
        who, start = who[alive], start[alive]
        if not len(who):
            continue
        counts = run.repeats(start)
        steps = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        rows, who = np.repeat(start, counts) + steps, np.repeat(who, counts)
        sees = view.sees(hashes[who])
        if sees is not None:
            rows, who = rows[sees], who[sees]
        same = equal([run.words(name) for name in names], rows, looked_for, who)
        if not same.all():
            rows, who = rows[same], who[same]
        if view.deletes:
            gone = flags(run.column("_gone"), rows)
            dead[who[gone]] = True
            rows, who = rows[~gone], who[~gone]
        if horizon is not None:
            alive = plain(run.column("_time")).view(np.int64)[rows] >= horizon
            rows, who = rows[alive], who[alive]
        if len(rows):
            out.append((run, rows, who))
    return out


def timely(view: View, after: int | None, upto: int) -> Ints:
    """The rows of a view that are no tombstones and have ``after < _time <= upto``."""
    early = after is not None and view.newest is not None and view.newest <= after
    late = view.oldest is not None and view.oldest > upto
    low = -(2**63) if after is None else max(after + 1, -(2**63))
    width = min(upto, 2**63 - 1) - low + 1
    if early or late or width <= 0:
        return np.empty(0, np.int64)
    start, stop = view.run.span(view.lo, view.hi)
    words = plain(view.run.column("_time"))
    if width >= END:
        rows = np.arange(start, stop)
    else:
        # One comparison does for two: what is too early wraps around and is too late. Chunks stay in the
        # cache.
        base, limit = np.uint64(low % END), np.uint64(width)
        found = [
            np.flatnonzero(words[at : min(at + _CACHED, stop)] - base < limit) + at
            for at in range(start, stop, _CACHED)
        ]
        rows = np.concatenate(found) if found else np.empty(0, np.int64)
    if view.deletes:
        rows = rows[~flags(view.run.column("_gone"), rows)]
    sees = view.sees(view.run.hashes[rows])
    return rows if sees is None else rows[sees]


def survivors(names: Sequence[str], run: Run, rows: Ints, killer: View) -> Ints:
    """The rows of a run that no tombstone of a newer view deletes."""
    stones = killer.run.stones(names)
    hashes = run.hashes[rows]
    at = stones.hashes.searchsorted(hashes)
    hit = (
        np.flatnonzero(stones.hashes.take(at, mode="clip") == hashes)
        if stones.rows
        else np.empty(0, np.int64)
    )
    inside = (hashes[hit] >= np.uint64(killer.lo)) & (hashes[hit] <= np.uint64(killer.hi - 1))
    hit = hit[inside]
    sees = killer.sees(hashes[hit])
    if sees is not None:
        hit = hit[sees]
    if not len(hit):
        return rows
    keys = [Words(run.column(name).take(pa.array(rows))) for name in names]
    _, dead = match(stones, names, at[hit], hashes, keys, hit)
    return np.delete(rows, dead)
