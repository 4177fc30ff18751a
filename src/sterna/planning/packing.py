"""Bins into workers of limited room, where bins need not be neighbours.

That is what ``general`` can do without an integer programme. Workers are numbered from 0 here, and a bin's
place is such a number, or -1 while it has none. Everything is deterministic.
"""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
HALVINGS = 16
"""So often the search for a least limit halves what it does not know."""


def settled(
    place: Ints, home: Ints, weights: Floats, loads: Floats, room: Floats, *, tight: bool = False
) -> Ints | None:
    """Finds a place for every bin that has none, the heaviest first.

    Where none has room for it, lighter ones make way.

    Args:
        place: the worker of each bin, or -1.
        home: where it is now, or -1.
        weights: what it costs to move a bin away from home.
        loads: the load of each bin.
        room: how much load each worker may have; minus infinity for one who leaves.
        tight: whether a bin goes where it leaves least room, instead of where most room is.

    Returns:
        A place for every bin, or None if one of them found none.
    """
    place = place.copy()
    room = room - np.bincount(place[place >= 0], loads[place >= 0], len(room))
    homeless = [(-float(loads[bin_]), bin_) for bin_ in np.flatnonzero(place < 0).tolist()]
    heapq.heapify(homeless)
    while homeless:
        load, bin_ = -homeless[0][0], heapq.heappop(homeless)[1]
        worker = int(np.argmin(np.where(room >= load, room, np.inf)) if tight else np.argmax(room))
        if room[worker] < load:
            gone = _making_way(load, place, np.where(place == home, weights, 0.0), loads, room)
            if not len(gone):
                return None
            worker = int(place[gone[0]])
            room[worker] += loads[gone].sum()
            place[gone] = -1
            for other in gone.tolist():
                heapq.heappush(homeless, (-float(loads[other]), other))
        place[bin_] = worker
        room[worker] -= load
    return _back_home(place, home, weights, loads, room)


def _making_way(load: float, place: Ints, cost: Floats, loads: Floats, room: Floats) -> Ints:
    """Which lighter bins of one worker could go to make room for this load.

    They are those that cost about least of all workers'; none if that can't be.
    """
    light = np.flatnonzero((place >= 0) & (loads < load) & (loads > 0))
    with np.errstate(over="ignore"):
        light = light[np.lexsort((cost[light] / loads[light], place[light]))]
    worker = place[light]
    begins = np.flatnonzero(np.diff(worker, prepend=-1))
    group = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(worker)))
    loads_so_far, cost_so_far = _within(loads[light], begins, group), _within(cost[light], begins, group)
    need = load - room[worker]
    enough = (loads_so_far >= need) & (loads_so_far - loads[light] < need)
    if not enough.any():
        return light[:0]
    at = int(np.argmin(np.where(enough, cost_so_far, np.inf)))
    return _without_spare(light[begins[group[at]] : at + 1], cost, loads, float(need[at]))


def _without_spare(chosen: Ints, sizes: Floats, loads: Floats, excess: float) -> Ints:
    """The same without the bins that need not go, the largest first."""
    spare = float(loads[chosen].sum()) - excess
    keep = np.ones(len(chosen), np.bool_)
    for at in np.argsort(-sizes[chosen], kind="stable").tolist():
        if loads[chosen[at]] <= spare:
            keep[at] = False
            spare -= float(loads[chosen[at]])
    return chosen[keep]


def _within(values: Floats, begins: Ints, group: Ints) -> Floats:
    """Sums up to each value, anew in each group."""
    total = np.cumsum(values)
    return np.asarray(total - (total - values)[begins][group])


def _back_home(place: Ints, home: Ints, weights: Floats, loads: Floats, room: Floats) -> Ints:
    """Whoever has room at home after all goes there, the largest first."""
    away = np.flatnonzero((place != home) & (home >= 0))
    for bin_ in away[np.argsort(-weights[away], kind="stable")].tolist():
        if loads[bin_] <= room[home[bin_]]:
            room[place[bin_]] += loads[bin_]
            room[home[bin_]] -= loads[bin_]
            place[bin_] = home[bin_]
    return place


def even(loads: Floats, workers: int, enough: float = 0.0) -> Ints:
    """As even as can be found, wherever bins are now, or until no worker has more than is enough.

    Each bin goes to the worker with least so far, the heaviest first; or, if that is more even, to the first
    where it fits into the least limit that a search finds. No worker has more than 4/3 of the load that the
    heaviest has in the most even assignment (Graham).
    """
    place = _longest_first(loads, workers)
    high = float(np.bincount(place, loads, workers).max())
    low = max(float(loads.max()), float(loads.sum()) / workers)
    for _ in range(HALVINGS):
        if high <= max(low * (1 + 1e-9), enough):
            break
        middle = (low + high) / 2
        packed = _first_fit(loads, workers, middle)
        if packed is None:
            low = middle
        else:
            place, high = packed, float(np.bincount(packed, loads, workers).max())
    return place


def _longest_first(loads: Floats, workers: int) -> Ints:
    place = np.empty(len(loads), np.int64)
    held = [(0.0, worker) for worker in range(workers)]
    for bin_ in np.argsort(-loads, kind="stable").tolist():
        load, worker = held[0]
        place[bin_] = worker
        heapq.heapreplace(held, (load + float(loads[bin_]), worker))
    return place


def _first_fit(loads: Floats, workers: int, limit: float) -> Ints | None:
    place = np.empty(len(loads), np.int64)
    room = np.full(workers, limit)
    for bin_ in np.argsort(-loads, kind="stable").tolist():
        worker = int(np.argmax(room >= loads[bin_]))
        if room[worker] < loads[bin_]:
            return None
        place[bin_] = worker
        room[worker] -= loads[bin_]
    return place


def named(groups: Ints, home: Ints, weights: Floats, candidates: int) -> Ints:
    """The same groups of bins, each at the worker that keeps most if it gets them."""
    known, many = home >= 0, int(groups.max()) + 1
    overlap = np.bincount(groups[known] * candidates + home[known], weights[known], many * candidates)
    _, worker = linear_sum_assignment(overlap.reshape(many, candidates), maximize=True)
    return np.asarray(worker[groups], np.int64)
