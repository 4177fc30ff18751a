"""What the event-time frontier means for each operator.

That is which rows have expired, and whether time alone is a reason for an epoch. Pure. ``marks`` is the
watermark of an epoch, the one before, and so on, as many as the dataflow is deep: an operator with *d*
operators before it sees the watermark of *d* epochs ago.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sterna.dataflow import Dataflow
from sterna.operators.base import LATER

Marks = Sequence[int | None]


def frontier(flow: Dataflow, index: int, marks: Marks) -> int | None:
    """The event-time frontier of an operator."""
    return marks[min(flow.depth(index), len(marks) - 1)]


def horizons(flow: Dataflow, index: int, handed: Marks) -> dict[str, int | None]:
    """For each table of an operator the event time before which its rows have expired.

    Rows expire by the watermarks up to which notifications have been handed back (``handed``), so that one
    that is due now still finds the rows that were there at its time, however far the watermark has jumped.
    """
    operator, done = flow.operators[index], frontier(flow, index, handed)
    out: dict[str, int | None] = {}
    for spec in operator.tables:
        keep = 0 if spec.name == LATER else operator.keep(spec.name)
        first = done if spec.name != LATER or done is None else done + 1
        out[spec.name] = None if keep is None or first is None else first - keep
    return out


def anything_due(newest: int | None, due: Mapping[str, int | None]) -> bool:
    """Whether notifications (``due``: for each operator the first) would fire if epochs were run now.

    The newest watermark reaches a deep operator in some epochs' time, and only if epochs are run.
    """
    return newest is not None and any(first is not None and first <= newest for first in due.values())
