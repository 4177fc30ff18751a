"""A query of which only the numbers are simulated.

An hour of it, with an autoscaler, takes a fraction of a second; a hundred epochs with a balancer as well.
"""

from __future__ import annotations

import random

import numpy as np

from controllers.made_up import NOW, sample, state
from sterna.configuration import Configuration
from sterna.controllers import Said, Sample, Standing, View, Worked
from sterna.statistics import EpochCost


def balanced(balancer, stream, *, workers=8, seconds=3):
    """For each epoch of a stream of rows by bin the load of the fullest worker, in times of the mean.

    Also what the balancer said. What it asks for is so in the next epoch.
    """
    here, now, ended = None, NOW, {}
    samples, said, seen = [], [], []
    for epoch, rows in enumerate(stream):
        now += seconds
        here = here or Configuration.initial(len(rows), workers)
        if said and said[-1].outcome == "asked" and said[-1].epoch == epoch - 1:
            ended = {"counts": now}
        samples.append(sample(epoch, now, {"counts": (rows, here.owners, workers, 1e-3)}))
        loads = np.bincount(here.owners, rows, workers)
        seen.append(loads.max() / loads.mean())
        standing = Standing("counts", here, tuple(samples), state(here, 100))
        verdict = balancer(View(now, tuple(samples), {"counts": standing}, settled=ended, said=tuple(said)))
        if verdict.target is not None:
            said.append(Said("asked", epoch, now, "counts", verdict.target.to_json(), verdict.facts))
            here = verdict.target.resolve(here)
        elif verdict.declined:
            said.append(Said("declined", epoch, now, "counts", None, verdict.facts))
    return np.array(seen), said


def hour(scaler, rates, *, noise, seed, seconds=10.0, busy=0.02, workers=2):
    """For each epoch the number of workers after it; and the steps asked for, as (epoch, from, to)."""
    chance, now = random.Random(seed), 1_000_000.0
    samples, said, seen, steps = [], [], [], []
    for epoch, rate in enumerate(rates):
        now += seconds
        rows = round(rate * seconds * (1 + noise * chance.uniform(-1, 1)))
        each = Worked((rows // workers,) * workers, (rows * busy / workers,) * workers)
        samples.append(Sample(EpochCost(epoch, 100.0, 0, 0, rows), now, {"counts": each}))
        here = Configuration.initial(64, workers)
        view = View(
            now, tuple(samples[-512:]), {"counts": Standing("counts", here, tuple(samples))}, said=tuple(said)
        )
        verdict = scaler(view)
        if verdict.target is not None:
            said.append(Said("asked", epoch, now, facts=verdict.facts))
            steps.append((epoch, workers, verdict.target.workers))
            workers = verdict.target.workers
        seen.append(workers)
    return seen, steps
