"""However compaction is interrupted, and whether epochs write or not, the newest row wins and rows keep their order."""

from __future__ import annotations

import itertools
import tempfile

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sterna.state import RunCache, Store, Table, TableSpec, compact
from sterna.state.refs import EPOCH_AGES

KEYS = pa.schema([("k", pa.int64())])
VALUES = pa.schema([("v", pa.int64())])
HASHES = np.sort(np.random.default_rng(1).integers(0, 2**64, 24, np.uint64))

epochs = st.lists(
    st.tuples(
        st.sets(st.integers(0, 23), max_size=8), st.integers(1, 12), st.integers(2, 3), st.integers(1, 8)
    ),
    min_size=1,
    max_size=25,
)


@given(epochs, st.sampled_from(["value", "rows"]))
@settings(max_examples=150, deadline=None)
def test_the_newest_row_wins_however_compaction_goes(some, kind):
    spec = TableSpec("t", kind, KEYS, VALUES)
    names = itertools.count()
    model: dict[int, list[int]] = {}
    with tempfile.TemporaryDirectory() as directory:
        cache, refs = RunCache(Store.open(directory)), []
        for number, (keys, budget, depth, scattered) in enumerate(some):
            table = Table(spec, refs, cache)
            which = np.array(sorted(keys), np.int64)
            columns = [pa.array(which)], [pa.array(np.full(len(which), number))]
            if kind == "value":
                table.put(HASHES[which], *columns)
            else:
                table.append(HASHES[which], columns[0], np.zeros(len(which), np.int64), columns[1])
            for key in keys:
                model[key] = [number] if kind == "value" else [*model.get(key, []), number]

            def namer():
                return f"runs/op/t-{next(names)}.arrow"

            fresh = table.flush(cache.writer(namer, age=number * EPOCH_AGES, timed=spec.timed))
            refs, _ = compact(
                spec, [*table.refs, *fresh], cache, budget, namer, depth=depth, scattered=scattered
            )
            found: dict[int, list[int]] = {}
            for row in Table(spec, refs, cache).scan().to_pylist():
                found.setdefault(row["k.k"], []).append(row["v.v"])
            assert found == model
