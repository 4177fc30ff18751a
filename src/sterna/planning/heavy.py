"""Bins that one heavy key dominates: which they are, and what can be done about them.

A bin is the least that can move, so no assignment balances a bin that alone is too heavy. More bins
(``sterna.bins``) part a heavy key from its neighbours, since bins are ranges of hashes: that helps unless the
key alone is too heavy. Then it gets a worker of its own, and the others are balanced among the rest
(``capped``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sterna.configuration import MAX_BITS, bits_of, check_workers
from sterna.errors import InvalidInput, short
from sterna.hashing import bins_of
from sterna.heat import spread
from sterna.planning.checks import check_number, numbers, workers_of
from sterna.planning.plan import Numbers, Workers, limit_of
from sterna.planning.sketch import Sketch

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class HotBin:
    """A bin that one key dominates.

    Attributes:
        bin: which.
        hash: the key's.
        load: what the key weighs, at least.
        at_most: what it weighs, at most.
        bin_load: what the whole bin weighs.
        limit: the most that a worker may have.
        bins: how many bins there would have to be so that each part of this bin is within the limit, as far
            as the sketch can tell; as many as there are if it is now, and None if no number helps, because
            the key alone is heavier, or its neighbours are too near.
    """

    bin: int
    hash: int
    load: float
    at_most: float
    bin_load: float
    limit: float
    bins: int | None

    @property
    def alone(self) -> bool:
        """Whether the key alone is too heavy for any worker: no number of bins and no assignment helps."""
        return self.load > self.limit


def hot(loads: Numbers, sketch: Sketch, workers: int, tau: float, part: float = 0.5) -> list[HotBin]:
    """The bins that one key dominates, the heaviest key first.

    Args:
        loads: the load of each bin; a power of two of them.
        sketch: of the keys of the same stream; its counts are scaled to the loads.
        workers: how many workers there will be.
        tau: how much more than the mean one of them may get.
        part: how much of a bin's load its heaviest key must be, at least, to dominate it.
    """
    array, bits = _bins(loads)
    _check_sketch(sketch)
    part = check_number("part", part)
    limit = limit_of(float(array.sum()), check_workers(workers), check_number("tau", tau))
    key_loads, bins = sketch.loads(float(array.sum())), bins_of(sketch.hashes, bits)
    key_loads = np.minimum(key_loads, array[bins])
    by_load = np.argsort(-key_loads, kind="stable")
    _, heaviest = np.unique(bins[by_load], return_index=True)
    keys = by_load[np.sort(heaviest)]
    keys = keys[(key_loads[keys] >= part * array[bins[keys]]) & (key_loads[keys] > 0)]
    unsure = sketch.error * float(array.sum()) / max(sketch.total, 1e-300)
    return [
        HotBin(
            bin=int(bins[key]),
            hash=int(sketch.hashes[key]),
            load=float(key_loads[key]),
            at_most=float(min(key_loads[key] + unsure, array[bins[key]])),
            bin_load=float(array[bins[key]]),
            limit=limit,
            bins=_enough(int(bins[key]), array, sketch, limit),
        )
        for key in keys.tolist()
    ]


def _enough(bin_: int, loads: Floats, sketch: Sketch, limit: float) -> int | None:
    """How many bins there must be so that every part of this one is within the limit."""
    bits = bits_of(len(loads))
    mine = bins_of(sketch.hashes, bits) == bin_
    hashes, heavy = sketch.hashes[mine], sketch.loads(float(loads.sum()))[mine]
    rest = max(0.0, float(loads[bin_] - heavy.sum()))
    for more in range(MAX_BITS - bits + 1):
        _, part = np.unique(bins_of(hashes, bits + more), return_inverse=True)
        if float(np.bincount(part.ravel(), heavy).max()) + rest / (1 << more) <= limit:
            return 1 << (bits + more)
    return None


def refined(
    assignment: Workers, sizes: Numbers, loads: Numbers, bins: int, sketch: Sketch
) -> tuple[Ints, Floats, Floats]:
    """The same assignment, sizes and loads for more bins: to plan with before there are so many.

    Every part stays with the worker of its bin. The keys of the sketch weigh on the parts that they fall
    into; the rest of a bin's load, and all of its state, is spread evenly.
    """
    array, bits = _bins(loads)
    _check_sketch(sketch)
    owners = workers_of(assignment)
    if len(owners) != len(array):
        raise InvalidInput(f"there are {len(array)} loads, and {len(owners)} bins in the assignment")
    more = bits_of(bins) - bits
    if more < 0:
        raise InvalidInput(f"there are {len(array)} bins already: {bins} is not more")
    held = numbers("size", sizes, len(array))
    heavy, coarse = sketch.loads(float(array.sum())), bins_of(sketch.hashes, bits)
    known = np.bincount(coarse, heavy, len(array))
    # What is known of a bin never exceeds its load: the two may come from different times.
    heavy = heavy * np.minimum(1.0, array[coarse] / np.maximum(known[coarse], 1e-300))
    rest = np.maximum(array - np.bincount(coarse, heavy, len(array)), 0.0)
    fine = spread(rest, bins) + np.bincount(bins_of(sketch.hashes, bits + more), heavy, bins)
    return np.repeat(owners, 1 << more), spread(held, bins), fine


def capped(loads: Numbers, workers: int, tau: float) -> Floats:
    """Loads to plan with where bins are too heavy for any balance.

    Each such bin counts as much as one worker may have, so that it gets one of its own, and the others are
    balanced among the rest. If none of the others has any load, they count alike. With fewer bins than
    workers / (1 + tau) nothing but zeros can be balanced, so all are zero.

    Example:
        >>> capped([9, 1, 1, 1], workers=3, tau=0.5).tolist()
        [3.0, 1.0, 1.0, 1.0]
        >>> capped([9, 9, 0, 0, 0, 0], workers=4, tau=0).tolist()
        [9.0, 9.0, 4.5, 4.5, 4.5, 4.5]
    """
    array = numbers("load", loads)
    check_workers(workers)
    extra = 1 + check_number("tau", tau)
    too_heavy = np.zeros(len(array), np.bool_)
    while True:
        rest, many = float(array[~too_heavy].sum()), int(too_heavy.sum())
        # What a worker may have if these bins count as just that. There are never so many of them that it is
        # no number: each was heavier than a worker might be.
        full = extra * rest / (workers - many * extra)
        more = ~too_heavy & (array > limit_of(rest + many * full, workers, tau))
        if not more.any():
            break
        too_heavy |= more
    if rest > 0 or not many:
        return np.where(too_heavy, full, array)
    if len(array) * extra < workers:
        return np.zeros(len(array))
    full = float(array[too_heavy].min())
    return np.where(too_heavy, full, full * (workers / extra - many) / (len(array) - many))


def _bins(loads: Numbers) -> tuple[Floats, int]:
    array = numbers("load", loads)
    return array, bits_of(len(array))


def _check_sketch(sketch: Sketch) -> None:
    if not isinstance(sketch, Sketch):
        raise InvalidInput(f"sketch is {short(sketch)}: it must be a Sketch of the keys of the same stream")
