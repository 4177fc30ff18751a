"""A guess of values as a sum over intervals.

By it the best of all partitionings can be found (see ``priced``). Ridge regression, on which cuts a
partitioning has, how long its intervals are, and which intervals they are: what is seen more often weighs
more, and an interval of its own counts only where its cut and its length don't explain it. As many unknowns
as intervals, but no more equations than partitionings, so it is solved for the latter.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sterna.planning.priced import Pieces

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
TRUST = {"always": 1e6, "cut": 1e4, "length": 1e4, "interval": 2e3}
"""How far each kind of term may be from zero: the inverse of its penalty."""


def prices(rows: Ints, values: Floats, weights: Floats, pieces: Pieces) -> Floats:
    """What each interval adds to the value of a partitioning, laid out as the begins of the pieces are.

    Args:
        rows: partitionings, as cuts.
        values: their values.
        weights: how much each counts.
        pieces: the intervals that there may be.
    """
    ends, places = np.arange(pieces.bins + 1), np.arange(pieces.begins.shape[1])
    width = len(places)
    begin, end = rows[:, :-1], rows[:, 1:]
    there = begin < end
    row = np.broadcast_to(np.arange(len(rows))[:, None], there.shape)[there]
    end, place = end[there], (begin - end + width)[there]
    cut, length, interval = (
        _counted(row, which, len(rows), many)
        for which, many in ((end, len(ends)), (place, width), (end * width + place, len(ends) * width))
    )
    alike = (
        TRUST["always"]
        + TRUST["cut"] * cut @ cut.T
        + TRUST["length"] * length @ length.T
        + TRUST["interval"] * interval @ interval.T
    )
    mean = np.average(values, weights=weights)
    pull = np.linalg.solve(alike + np.diag(weights.sum() / weights), values - mean)
    return np.asarray(
        TRUST["cut"] * (pull @ cut)[:, None]
        + TRUST["length"] * (pull @ length)
        + TRUST["interval"] * (pull @ interval).reshape(len(ends), width)
    )


def _counted(row: Ints, which: Ints, rows: int, many: int) -> Floats:
    """How often each partitioning has each."""
    return np.bincount(row * many + which, minlength=rows * many).reshape(rows, many).astype(np.float64)
