"""What bins are likely to get, by the few rows that they got: what chance has added is taken off. Pure.

With thousands of bins a few epochs bring a handful of rows to each, and those that got most are mostly the
lucky ones: a plan that moves them would move nothing. If rows came by chance alone, the counts of bins would
vary by as much as their mean (Poisson). What they vary by beyond that is theirs. So each count is drawn
towards the mean, by the part of its variance that chance explains. Heavy keys, which are counted exactly, are
left out of this.
"""

from __future__ import annotations

import numpy as np

from sterna.configuration import Configuration
from sterna.hashing import bins_of
from sterna.keys import Keys
from sterna.statistics import Floats


def likely(rows: Floats, epochs: int, keys: Keys, here: Configuration) -> Floats:
    """How many rows each bin is likely to get in an epoch; all bins of a worker together get what they got.

    Args:
        rows: how many each got in an epoch, the mean of some.
        epochs: of how many.
        keys: the heaviest keys of the same rows.
        here: where the bins are.
    """
    at = bins_of(keys.hashes, here.bits)
    heavy = np.minimum(np.bincount(at, keys.rows, here.bins), rows)
    light = (rows - heavy) * epochs
    mean, variance = float(light.mean()), float(light.var())
    own = 1 - mean / variance if variance > mean else 0.0
    drawn = heavy + (mean + own * (light - mean)) / epochs
    got, would = (np.bincount(here.owners, one, here.workers) for one in (rows, drawn))
    return np.asarray(drawn * (got / np.maximum(would, 1e-300))[here.owners], np.float64)
