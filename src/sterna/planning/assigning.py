"""Who gets which interval of a partitioning that is given: as much state as possible stays where it is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from sterna.planning.plan import Plan, weighed

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def assigned(owners: Ints, sizes: Floats, cuts: Ints, tau: float, *, last_leave: bool = False) -> Plan:
    """The plan that gives the intervals between cuts to workers.

    Args:
        owners: the worker of each bin now.
        sizes: how much state each bin has.
        cuts: where the intervals begin and end, from 0 to the number of bins; an interval may be empty.
        tau: what the plan says about its balance.
        last_leave: whether only numbers below the number of intervals may have one.
    """
    begins, ends = cuts[:-1][np.diff(cuts) > 0], cuts[1:][np.diff(cuts) > 0]
    many = int(owners.max()) + 1
    piece = np.repeat(np.arange(len(begins)), ends - begins)
    overlap = np.bincount(piece * many + owners, weighed(sizes), len(begins) * many).reshape(-1, many)
    below = len(cuts) - 1 if last_leave else None
    heirs = matched(overlap[:, :below].astype(np.float64))
    free = unused(owners, heirs.tolist(), below)
    workers = [heir if heir >= 0 else next(free) for heir in heirs.tolist()]
    return Plan.of(owners, np.repeat(np.array(workers, np.int64), ends - begins), sizes, tau, len(cuts) - 1)


def cuts_of(owners: Ints, workers: int) -> Ints:
    """The intervals of some owners as cuts, for so many workers; empty intervals are at the end.

    Example:
        >>> cuts_of(np.array([3, 3, 0, 1, 1]), 4)
        array([0, 2, 3, 5, 5])
    """
    cuts = np.full(workers + 1, len(owners))
    inner = np.flatnonzero(np.diff(owners)) + 1
    cuts[: len(inner) + 1] = [0, *inner]
    return cuts


def matched(overlap: Floats) -> Ints:
    """For each row the column that it is given, so that most is kept in all; -1 where that keeps nothing."""
    rows, columns = linear_sum_assignment(overlap, maximize=True)
    out = np.full(len(overlap), -1, np.int64)
    useful = overlap[rows, columns] > 0
    out[rows[useful]] = columns[useful]
    return out


def unused(owners: Ints, taken: Sequence[int], below: int | None = None) -> Iterator[int]:
    """The workers who are left to take what nobody keeps: those that have bins now first, then new ones.

    Only numbers below the one given, if one is.
    """
    busy = set(taken)
    present = [one for one in np.unique(owners).tolist() if below is None or one < below]
    fresh = (number for number in itertools.count() if number not in busy and number not in present)
    return itertools.chain((one for one in present if one not in busy), fresh)
