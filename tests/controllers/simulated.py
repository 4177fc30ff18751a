"""A query of which only the numbers are simulated.

An hour of it, with an autoscaler, takes a fraction of a second.
"""

from __future__ import annotations

import random

from sterna.configuration import Configuration
from sterna.controllers import Said, Sample, Standing, View, Worked
from sterna.statistics import EpochCost


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
