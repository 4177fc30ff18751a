"""Events for each query: enough time for its windows, in the shape in which the source hands them to the router."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pyarrow as pa

from sterna.nexmark import Shape, generate
from sterna.nexmark.packing import packed

USUAL = Shape(rate=1000.0, extra=(3, 3, 0))
# Twelve hours pass in a few thousand events, and sessions end while their auctions go on.
SLOW = replace(USUAL, rate=0.5)
# Windows of a minute end again and again.
MINUTES = replace(USUAL, rate=200.0)
SHAPES = {"q8": SLOW, "nbq8": SLOW, "nbqx": SLOW, "q5": MINUTES, "nbq5": MINUTES, "q7": MINUTES}


def shape_of(query: str) -> Shape:
    return SHAPES.get(query, USUAL)


def epochs(shape: Shape, count: int, size: int, partitions: int = 2):
    """The packed rows of each epoch, one table for each partition."""
    for start, stop in itertools.pairwise([*range(0, count, size), count]):
        cuts = [start + (stop - start) * i // partitions for i in range(partitions + 1)]
        yield [pa.Table.from_batches([packed(generate(shape, a, b))]) for a, b in itertools.pairwise(cuts)]


def whole(shape: Shape, count: int) -> tuple[pa.Table, ...]:
    """All events by kind."""
    return tuple(pa.Table.from_batches([batch]) for batch in generate(shape, 0, count).batches)
