"""Views of queries that never ran."""

from __future__ import annotations

import numpy as np

from sterna.configuration import HASHES, Configuration, bits_of
from sterna.controllers import Sample, Standing, View, Worked
from sterna.heat import encode_heat
from sterna.keys import Keys
from sterna.state.refs import RunRef
from sterna.statistics import EpochCost

NOW = 1_000_000.0
SIZE = 1000


def worked(load, owners, workers, cost, keys=None):
    """What workers did with these rows by bin, at ``cost`` busy seconds for a row."""
    owners = np.asarray(owners, np.int32)
    by_worker = np.bincount(owners, load, workers)
    return Worked(
        tuple(int(one) for one in by_worker),
        tuple(float(one * cost) for one in by_worker),
        tuple(
            encode_heat(np.where(owners == worker, np.asarray(load, np.int64), 0))
            if by_worker[worker]
            else None
            for worker in range(workers)
        ),
        keys or Keys.none(),
        hash(Configuration(bits_of(len(load)), workers, owners)),
    )


def sample(number, time, operators, *, rows=None, moved=0, ms=100.0):
    """An epoch: for each operator (rows by bin, owners, workers, busy seconds for a row).

    Also its heaviest keys if they matter.
    """
    came = int(sum(next(iter(operators.values()))[0])) if rows is None else rows
    did = {name: worked(*one) for name, one in operators.items()}
    return Sample(EpochCost(number, ms, moved * SIZE, moved, came), time, did)


def view(
    loads,
    *,
    workers=4,
    owners=None,
    size=SIZE,
    period=1.0,
    cost=1e-3,
    now=NOW,
    rows=None,
    keys=None,
    **others,
):
    """A query with one operator, ``counts``, that got these rows by bin in each of its last epochs.

    The newest comes last.
    """
    bins = len(loads[0])
    here = Configuration.initial(bins, workers)
    if owners is not None:
        here = Configuration(here.bits, workers, np.array(owners, np.int32))
    times = [now - period * (len(loads) - 1 - at) for at in range(len(loads))]
    samples = tuple(
        sample(at, time, {"counts": (load, here.owners, workers, cost, keys)}, rows=rows)
        for at, (time, load) in enumerate(zip(times, loads, strict=True))
    )
    standing = Standing("counts", here, tuple(one for one in samples if one.cost.rows), state(here, size))
    return View(now, samples, {"counts": standing}, **others)


def state(configuration, size):
    """A run of so many bytes for each bin."""
    width = HASHES // configuration.bins
    refs = {worker: {"state": []} for worker in range(configuration.workers)}
    for bin_, worker in enumerate(configuration.owners.tolist()):
        refs[worker]["state"].append(
            RunRef(f"run{bin_}", bin_ * width, (bin_ + 1) * width, 0, 0, 10, size, 0, False, None, None)
        )
    return refs
