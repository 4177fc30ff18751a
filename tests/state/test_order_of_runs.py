"""The newest row wins and rows keep their order.

That holds however compaction is interrupted, and whether epochs write or not.
"""

from __future__ import annotations

import itertools
import random

import numpy as np
import pyarrow as pa
import pytest

from sterna.state import RunCache, Store, Table, TableSpec, compact
from sterna.state.refs import EPOCH_AGES

KEYS = pa.schema([("k", pa.int64())])
VALUES = pa.schema([("v", pa.int64())])
COUNT, CYCLE, BUSY = 24, 20, 13


@pytest.mark.parametrize("kind", ["value", "rows"])
@pytest.mark.parametrize("seed", range(12))
def test_the_newest_row_wins_while_compaction_goes_on_in_epochs_without_writes(tmp_path, seed, kind):
    choose = random.Random(seed)
    hashes = np.sort(np.random.default_rng(seed).integers(0, 2**64, COUNT, np.uint64))
    spec = TableSpec("t", kind, KEYS, VALUES)
    names = itertools.count()
    cache, refs = RunCache(Store.open(str(tmp_path))), []
    model: dict[int, list[int]] = {}

    def namer():
        return f"runs/op/t-{next(names):06d}.arrow"

    for number in range(3 * CYCLE):
        table = Table(spec, refs, cache)
        keys = choose.sample(range(COUNT), choose.randint(1, 6)) if number % CYCLE < BUSY else []
        which = np.array(sorted(keys), np.int64)
        columns = [pa.array(which)], [pa.array(np.full(len(which), number))]
        if kind == "value":
            table.put(hashes[which], *columns)
        else:
            table.append(hashes[which], columns[0], np.zeros(len(which), np.int64), columns[1])
        for key in keys:
            model[key] = [number] if kind == "value" else [*model.get(key, []), number]
        fresh = table.flush(cache.writer(namer, age=number * EPOCH_AGES, timed=spec.timed))
        budget = choose.choice([6, 12])
        refs, _ = compact(spec, [*table.refs, *fresh], cache, budget, namer, depth=2, scattered=100)
        found: dict[int, list[int]] = {}
        for row in Table(spec, refs, cache).scan().to_pylist():
            found.setdefault(row["k.k"], []).append(row["v.v"])
        assert found == model
