from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sterna.state import END, RunCache, Table, TableSpec, compact, drop, keep

ID = pa.schema([("id", pa.int64())])
VALUE = TableSpec("t", "value", ID, pa.schema([("n", pa.int64())]))
ROWS = TableSpec("t", "rows", ID, pa.schema([("n", pa.int64())]))
HASHES = np.sort(np.random.default_rng(5).integers(0, END, 20_000, dtype=np.uint64))


def write(cache, namer, which, value, age, spec=VALUE):
    table = Table(spec, [], cache)
    which = np.asarray(which)
    values = [pa.array(np.full(len(which), value))]
    if spec is ROWS:
        table.append(HASHES[which], [pa.array(which)], np.full(len(which), age * 10), values)
    else:
        table.put_sorted(HASHES[which], [pa.array(which)], values)
    return table.flush(cache.writer(namer, age=age, timed=spec.timed))


def content(spec, refs, cache, horizon=None):
    table = Table(spec, refs, cache, horizon).scan()
    return dict(zip(table["k.id"].to_pylist(), table["v.n"].to_pylist(), strict=True))


def depth(refs):
    return max(sum(ref.lo <= point < ref.hi for ref in refs) for point in range(0, END, 1 << 58))


def test_work_is_bounded_and_the_number_of_runs_stays_small(cache, namer):
    random = np.random.default_rng(6)
    refs, model, works = [], {}, []
    for age in range(150):
        which = np.flatnonzero(random.random(len(HASHES)) < 0.05)
        refs, merged = compact(VALUE, refs + write(cache, namer, which, age, age), cache, 4000, namer)
        model.update(dict.fromkeys(which.tolist(), age))
        works.append(merged)
        assert depth(refs) <= 20
    assert max(works) <= 5000
    assert sum(works) > 100_000
    assert len(refs) < 100
    assert content(VALUE, refs, cache) == model
    # Keys are written again and again, and the copies do not pile up.
    assert Table(VALUE, refs, cache).rows_estimate < 4 * len(model)


def test_nothing_is_done_without_a_budget_or_a_need(cache, namer):
    refs = [ref for age in range(5) for ref in write(cache, namer, range(100), age, age)]
    assert compact(VALUE, [], cache, 1000, namer) == ([], 0)
    assert compact(VALUE, refs, cache, 1000, namer)[1] == 0
    refs += write(cache, namer, range(100), 5, 5)
    assert compact(VALUE, refs, cache, 0, namer)[1] == 0
    assert compact(VALUE, refs, cache, 1000, namer)[1] == 600


def test_rows_of_one_hash_stay_together_whatever_the_budget(cache, namer):
    refs = []
    for age in range(6):
        table = Table(ROWS, [], cache)
        table.append(
            np.full(500, 7, np.uint64), [pa.array(np.arange(500))], np.arange(500), [pa.array(np.arange(500))]
        )
        refs += table.flush(cache.writer(namer, age=age, timed=True))
    after, merged = compact(ROWS, refs, cache, 10, namer)
    assert merged == 3000
    assert [(ref.lo, ref.hi, ref.rows, ref.level) for ref in after] == [(7, 8, 3000, 1)]


def test_tombstones_go_when_nothing_older_is_left(cache, namer):
    refs = write(cache, namer, range(1000), 1, 0)
    for age in range(1, 7):
        table = Table(VALUE, refs, cache)
        table.delete(HASHES[:500], [pa.array(np.arange(500))])
        refs = refs + table.flush(cache.writer(namer, age=age, timed=False))
    assert len(content(VALUE, refs, cache)) == 500
    refs, _ = compact(VALUE, refs, cache, 100_000, namer)
    assert len(refs) == 1
    assert (refs[0].rows, refs[0].deletes) == (500, False)


def test_expired_files_go_at_no_cost_and_expired_rows_when_merged(cache, namer):
    refs = [ref for age in range(4) for ref in write(cache, namer, range(100), age, age, ROWS)]
    after, merged = compact(ROWS, refs, cache, 1000, namer, horizon=25)
    assert merged == 0
    assert [ref.age for ref in after] == [3]
    refs = [ref for age in range(6) for ref in write(cache, namer, range(100), age, age, ROWS)]
    after, _ = compact(ROWS, refs, cache, 1000, namer, horizon=15, depth=2)
    assert Table(ROWS, after, cache).rows_estimate == 400
    # A tombstone is no row: it hides older rows whatever their times are.
    table = Table(ROWS, after, cache)
    table.append(HASHES[:1], [pa.array([0])], np.array([1]), [pa.array([0])])
    table.delete(HASHES[:1], [pa.array([0])])
    fresh = table.flush(cache.writer(namer, age=9, timed=True))
    after, _ = compact(ROWS, after + fresh, cache, 1000, namer, horizon=20)
    assert 0 not in content(ROWS, after, cache)


@pytest.mark.parametrize("budget", [500, 5000, 10**6])
def test_what_moves_have_scattered_is_gathered_again(cache, namer, budget):
    bins = [(i << 56, (i + 1) << 56) for i in range(256)]
    refs, model = [], {}
    for age in range(5):
        which = np.arange(age, len(HASHES), 3)
        refs += write(cache, namer, which, age, age)
        model.update(dict.fromkeys(which.tolist(), age))
    mine = keep(refs, bins[::2])
    assert len(mine) > 600
    for _ in range(400):
        mine, merged = compact(VALUE, mine, cache, budget, namer)
        assert merged <= budget * 5 // 4
        if not merged:
            break
    rows = Table(VALUE, mine, cache).rows_estimate
    assert len(mine) <= 64 + 16 + 3 * rows / budget
    seen = {int(i): n for i, n in model.items() if int(HASHES[i]) >> 56 & 1 == 0}
    assert content(VALUE, mine, cache) == seen
    # What comes back lies in the gaps of what was gathered.
    both = mine + keep(refs, bins[1::2])
    assert content(VALUE, both, cache) == model
    both, _ = compact(VALUE, both, cache, 10**6, namer, scattered=0)
    assert content(VALUE, both, cache) == model


def test_a_bin_that_leaves_and_returns_does_not_show_what_it_was(cache, namer):
    first = write(cache, namer, range(1000), 1, 1)
    away = [(1 << 50, 1 << 60)]
    moved, stayed = keep(first, away), drop(first, away)
    newer = keep(write(cache, namer, range(1000), 2, 2), away)
    moved, _ = compact(VALUE, moved + newer, cache, 10**6, namer, depth=2)
    assert [ref.level for ref in moved] == [1]
    back = stayed + moved
    inside = (HASHES[:1000] >= np.uint64(1 << 50)) & (HASHES[:1000] < np.uint64(1 << 60))
    assert inside.any()
    assert content(VALUE, back, cache) == {i: 2 if inside[i] else 1 for i in range(1000)}


def test_wide_rows_count_for_several(store, namer):
    cache = RunCache(store)
    spec = TableSpec("t", "value", ID, pa.schema([("blob", pa.binary())]))
    refs = []
    for age in range(6):
        table = Table(spec, [], cache)
        which = np.arange(0, len(HASHES), 100)
        table.put_sorted(HASHES[which], [pa.array(which)], [pa.array([b"x" * 2560] * len(which))])
        refs += table.flush(cache.writer(namer, age=age, timed=False))
    _, merged = compact(spec, refs, cache, 1200, namer)
    assert 0 < merged <= 150


def test_wide_rows_may_lie_deeper(store, namer):
    cache = RunCache(store)
    spec = TableSpec("t", "value", ID, pa.schema([("blob", pa.binary())]))
    which = np.arange(0, len(HASHES), 50)

    def merged(runs, width):
        refs = []
        for age in range(runs):
            table = Table(spec, [], cache)
            table.put_sorted(HASHES[which], [pa.array(which)], [pa.array([b"x" * width] * len(which))])
            refs += table.flush(cache.writer(namer, age=age, timed=False))
        return compact(spec, refs, cache, 100_000, namer)[1]

    assert (merged(5, 8), merged(6, 8)) == (0, 6 * len(which))
    assert (merged(11, 200), merged(12, 200)) == (0, 12 * len(which))
