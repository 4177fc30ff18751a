"""Rows that expire soon are not merged, and what is merged is still what it was."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sterna.state import Table, TableSpec, compact
from sterna.state.compaction import DEPTH, PAYS, deepest, too_deep
from sterna.state.lasting import lasting
from sterna.state.refs import EPOCH_AGES

ID = pa.schema([("id", pa.int64())])
SPEC = TableSpec("t", "rows", ID, pa.schema([("n", pa.int64())]))
SECOND = 1_000_000
KEYS = 500
HASHES = np.sort(np.random.default_rng(5).integers(0, 2**64, KEYS, dtype=np.uint64))


def epoch(cache, namer, number):
    table = Table(SPEC, [], cache)
    ids = np.arange(KEYS)
    table.append(HASHES, [pa.array(ids)], np.full(KEYS, number * SECOND), [pa.array(np.full(KEYS, number))])
    return table.flush(cache.writer(namer, age=EPOCH_AGES * number + 1, timed=True))


def run(cache, namer, life, epochs=60):
    """So many epochs of rows that live for so many; the references after each, and all rows merged."""
    refs, merged = [], 0
    for number in range(epochs):
        horizon = (number - life) * SECOND
        refs, rows = compact(
            SPEC, [*refs, *epoch(cache, namer, number)], cache, 100_000, namer, horizon, scattered=1000
        )
        merged += rows
        seen = Table(SPEC, refs, cache, horizon).scan()
        assert sorted(set(seen["v.n"].to_pylist())) == list(range(max(0, number - life), number + 1))
        assert seen.num_rows == KEYS * min(life + 1, number + 1)
        yield refs, merged


@pytest.mark.parametrize("life", [DEPTH, 2 * DEPTH])
def test_windows_of_a_few_epochs_are_never_merged(cache, namer, life):
    for refs, merged in run(cache, namer, life):
        assert merged == 0
        assert len(refs) <= life + 1


@pytest.mark.parametrize("life", [3 * DEPTH, 20 * DEPTH])
def test_rows_that_live_long_are_merged_and_runs_stay_few(cache, namer, life):
    deep = 0
    for refs, _merged in run(cache, namer, life, epochs=30 * DEPTH):
        deep = max(deep, deepest(refs))
    assert _merged > 0
    assert deep <= (PAYS + 1) * DEPTH


def test_where_nothing_expires_or_time_stands_still_all_levels_are_merged(cache, namer):
    refs = [ref for number in range(4) for ref in epoch(cache, namer, number)]
    assert lasting(refs, None, 100) == refs
    assert lasting(refs[:1], 0, 100) == refs[:1]
    still = [ref for ref in refs for _ in range(2)][:2]
    assert lasting(still, 0, 100) == still
    assert lasting([], 0, 100) == []


def test_runs_that_are_left_alone_are_not_too_deep(cache, namer):
    refs = [ref for number in range(2 * DEPTH) for ref in epoch(cache, namer, number)]
    assert too_deep(refs, None) == 2.0
    assert too_deep(refs, -1000 * SECOND) == 2.0
    assert too_deep(refs, 0) == 0.0
