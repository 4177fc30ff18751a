"""Extract: reads the slices of moving bins at their old worker and sends them to the new one.

In: an ``Extraction``, and which part of it, where several tasks share it. Out: messages with the merged live
state of each moving range, in pieces of bounded size, so that memory does not grow with the state. Reading a
damaged or missing file raises ``StateError`` and fails the epoch; nothing has changed by then.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from sterna.configuration import Range
from sterna.engine.messages import CHUNK_BYTES, STATE, Message, in_pieces
from sterna.engine.plans import Extraction
from sterna.operators.base import Operator
from sterna.state.refs import RunRef, keep
from sterna.state.runs import RunCache
from sterna.state.tables import Table

PART_MESSAGES = 1 << 20
"""More messages than a part of what leaves a worker has: parts are put together in their order."""


def extract(
    operator: Operator,
    task: Extraction,
    seats: tuple[int, ...],
    cache: RunCache,
    horizons: Mapping[str, int | None],
    part: int = 0,
    parts: int = 1,
) -> Iterator[Message]:
    """The state that leaves one worker, or a part of it."""
    for number, spec in enumerate(operator.tables):
        table = Table(spec, task.refs[spec.name], cache, horizons.get(spec.name))
        for target, ranges in sorted(task.ranges.items()):
            like = Message(seats[target], STATE, task.operator, number, task.worker)
            sequence = itertools.count(part * PART_MESSAGES)
            for lo, hi in part_of(ranges, part, parts):
                for chunk in chunks(table, task.refs[spec.name], cache, lo, hi):
                    yield from in_pieces(like, chunk, sequence)


def part_of(ranges: Sequence[Range], part: int, parts: int) -> Iterator[Range]:
    """One of so many parts of some ranges, all of about the same length.

    Example:
        >>> [list(part_of([(0, 10), (20, 24)], part, 2)) for part in range(2)]
        [[(0, 7)], [(7, 10), (20, 24)]]
    """
    total = sum(hi - lo for lo, hi in ranges)
    first, last = total * part // parts, total * (part + 1) // parts
    before = 0
    for lo, hi in ranges:
        start, stop = max(lo, lo + first - before), min(hi, lo + last - before)
        if start < stop:
            yield start, stop
        before += hi - lo


def chunks(table: Table, refs: list[RunRef], cache: RunCache, lo: int, hi: int) -> Iterator[pa.RecordBatch]:
    """The live content of a range, cut into batches of about ``CHUNK_BYTES``."""
    size = 0
    for ref in keep(refs, [(lo, hi)]):
        start, stop = cache.open(ref).span(ref.lo, ref.hi)
        size += (stop - start) * ref.size // max(1, ref.rows)
    parts = max(1, -(-size // CHUNK_BYTES))
    width = -(-(hi - lo) // parts)
    for part in range(parts):
        start, stop = lo + part * width, min(hi, lo + (part + 1) * width)
        if start < stop:
            yield from table.scan(start, stop).combine_chunks().to_batches()
