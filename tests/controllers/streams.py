"""Streams for twins: so many rows for each bin, and a load in simulated time."""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa

from sterna.hashing import hash_keys
from twin.small import SCHEMA


@functools.cache
def keys(bins):
    """For each bin some keys that belong to it."""
    numbers = np.arange(bins * 40)
    found = hash_keys([pa.array(numbers)]) >> np.uint64(64 - (bins - 1).bit_length())
    return [numbers[found == bin_] for bin_ in range(bins)]


def rows(counts):
    """So many rows for each bin."""
    pools = keys(len(counts))
    chosen = [np.resize(pool, count) for pool, count in zip(pools, counts, strict=True)]
    whole = np.concatenate(chosen).astype(np.int64)
    ones = np.ones(len(whole), np.int64)
    return pa.table([pa.array(whole), pa.array(ones), pa.array(0 * ones)], schema=SCHEMA)


def hot(bins, first, width, factor=10, cold=4):
    """So many neighbouring bins get ``factor`` times as many rows as the others."""
    counts = np.full(bins, cold)
    counts[(first + np.arange(width)) % bins] *= factor
    return counts


def load(manifest, operator="counts"):
    """The rows that the fullest worker got, in times of the mean."""
    got = [one[0] for name, one in manifest.facts["workers"].items() if name.startswith(f"{operator}/")]
    return max(got) / (sum(got) / len(got))


EVEN = rows(np.full(16, 5))
