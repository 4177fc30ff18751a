"""About as much for every worker, with few bins moved.

That is what ``rescale`` and ``balance`` ask for where no planner is named. Pure, and quick for a million
bins.
"""

from __future__ import annotations

import heapq

import numpy as np

from sterna.configuration import Configuration
from sterna.statistics import Statistics

TOLERANCE = 0.05
"""How much more than its share a worker may have before ``balance`` takes something from it."""


def rescaled(current: Configuration, workers: int) -> Configuration:
    """Every worker gets its fair number of bins.

    Only the surplus moves, the highest bins of a worker first.
    """
    held = np.zeros(max(workers, current.workers), np.int64)
    held[: current.workers] = current.owned()
    quota = np.full(workers, current.bins // workers, np.int64)
    # Where bins do not divide evenly, those who hold most keep one more, so that nothing moves for its sake.
    quota[np.argsort(-held[:workers], kind="stable")[: current.bins % workers]] += 1
    owners = current.owners.copy()
    homeless = []
    for worker in range(current.workers):
        mine = np.flatnonzero(owners == worker)
        homeless.append(mine[int(quota[worker]) if worker < workers else 0 :])
    loose = np.sort(np.concatenate(homeless))
    owners[loose] = np.repeat(np.arange(workers, dtype=np.int32), np.maximum(quota - held[:workers], 0))
    return Configuration(current.bits, workers, owners)


def balanced(current: Configuration, statistics: Statistics) -> Configuration:
    """Moves bins from the worker with most to the one with least, until all have their share.

    Each time it is the largest bin that does not turn the two around.
    """
    load = statistics.at(current.bins).load()
    totals = np.bincount(current.owners, load, current.workers)
    limit = totals.sum() / current.workers * (1 + TOLERANCE)
    owners = current.owners.copy()
    # Bins without load never move; those of a worker are tried from the largest on.
    bins = [
        sorted(np.flatnonzero((owners == w) & (load > 0)).tolist(), key=lambda b: -load[b])
        for w in range(current.workers)
    ]
    full = [(-total, worker) for worker, total in enumerate(totals.tolist())]
    heapq.heapify(full)
    while full:
        negative, source = heapq.heappop(full)
        if -negative != totals[source]:
            continue
        target = int(np.argmin(totals))
        room = totals[source] - totals[target]
        # Halving the difference at most: the one that gives never ends up with less than the one that takes.
        best = next((b for b in bins[source] if load[b] <= room / 2), None)
        if totals[source] <= limit or best is None:
            continue
        bins[source].remove(best)
        owners[best] = target
        totals[source] -= load[best]
        totals[target] += load[best]
        bins[target].append(best)
        bins[target].sort(key=lambda b: -load[b])
        for changed in (source, target):
            heapq.heappush(full, (-totals[changed], changed))
    return Configuration(current.bits, current.workers, owners)
