"""Events for each query, with enough time for its windows.

They are in the shape in which the source hands them to the router.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa

from sterna.nexmark import Shape, generate
from sterna.nexmark.packing import packed

USUAL = Shape(rate=1000.0, extra=(3, 3, 0))
# Twelve hours pass in a few thousand events, and sessions end while their auctions go on.
SLOW = replace(USUAL, rate=0.5)
# Windows of a minute end again and again.
MINUTES = replace(USUAL, rate=200.0)
# No two auctions of a seller expire at the same microsecond, so that their order is known.
SPREAD = replace(USUAL, rate=20.0)
SHAPES = {
    "q8": SLOW,
    "nbq8": SLOW,
    "nbqx": SLOW,
    "q5": MINUTES,
    "nbq5": MINUTES,
    "q7": MINUTES,
    "q6": SPREAD,
}
KINDS = {
    "q4": ("auction", "bid"),
    "q5": ("bid",),
    "q6": ("auction", "bid"),
    "q7": ("bid",),
    "q8": ("person", "auction"),
    "nbq5": ("bid",),
    "nbq8": ("person", "auction"),
    "nbqx": ("auction", "bid"),
}
"""Which kinds of events a query reads that has event time."""


def shape_of(query: str) -> Shape:
    return SHAPES.get(query, USUAL)


def shifted(shape: Shape, number: int) -> Shape:
    """The same with an event of this number where event 0 was, on the boundary of all windows."""
    return replace(shape, base=shape.base - round(number * 1e6 / shape.rate))


def epochs(shape: Shape, count: int, size: int, partitions: int = 2):
    """The packed rows of each epoch, one table for each partition."""
    for start, stop in itertools.pairwise([*range(0, count, size), count]):
        cuts = [start + (stop - start) * i // partitions for i in range(partitions + 1)]
        yield [pa.Table.from_batches([packed(generate(shape, a, b))]) for a, b in itertools.pairwise(cuts)]


def whole(shape: Shape, count: int) -> tuple[pa.Table, ...]:
    """All events by kind."""
    return tuple(pa.Table.from_batches([batch]) for batch in generate(shape, 0, count).batches)


def punctual(shape: Shape, count: int, size: int, kinds: tuple[str, ...]) -> tuple[pa.Table, ...]:
    """The events that are not late if they come in epochs of this size.

    The watermark has no delay: it is the least, over the kinds, of the newest times of all epochs before.
    """
    newest = dict.fromkeys(kinds, np.iinfo(np.int64).min)
    kept = []
    for start, stop in itertools.pairwise([*range(0, count, size), count]):
        tables = dict(zip(("person", "auction", "bid"), generate(shape, start, stop).batches, strict=True))
        watermark, parts = min(newest.values()), []
        for kind, batch in tables.items():
            times = batch.column("dateTime").cast(pa.int64()).to_numpy()
            parts.append(batch.filter(pa.array(times >= watermark)))
            if kind in newest and len(times):
                newest[kind] = max(newest[kind], int(times.max()))
        kept.append(parts)
    return tuple(pa.Table.from_batches(batches) for batches in zip(*kept, strict=True))
