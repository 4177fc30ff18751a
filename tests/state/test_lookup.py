from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sterna.errors import StateError
from sterna.state import END, RunCache, Store, Table, TableSpec
from sterna.state.seek import Index, search

ID = pa.schema([("id", pa.int64())])
N = pa.schema([("n", pa.int64())])


def u64(*values):
    return np.array(values, np.uint64)


def ints(*values):
    return pa.array(values, pa.int64())


@settings(max_examples=200)
@given(
    st.lists(
        st.integers(0, END - 1) | st.integers(0, 40) | st.integers(END - 40, END - 1),
        min_size=1,
        max_size=300,
    ),
    st.lists(st.integers(0, END - 1) | st.integers(0, 40), max_size=50),
)
def test_the_index_finds_what_a_binary_search_finds(hashes, others):
    array = np.sort(u64(*hashes))
    needles = np.sort(u64(*hashes[::2], *others))
    needles = needles[(needles >= array[0]) & (needles <= array[-1])]
    who, rows = Index(array).find(needles)
    expected_who, expected_rows = search(array, needles)
    assert who.tolist() == expected_who.tolist()
    assert rows.tolist() == expected_rows.tolist()


def test_the_index_counts_bits_without_numpy_2(monkeypatch):
    random = np.random.default_rng(1)
    array = np.sort(random.integers(0, END, 5000, dtype=np.uint64))
    expected = Index(array).find(array[::3])
    monkeypatch.delattr(np, "bitwise_count", raising=False)
    got = Index(array).find(array[::3])
    assert [a.tolist() for a in got] == [a.tolist() for a in expected]


def test_many_keys_over_many_runs(cache, namer):
    random = np.random.default_rng(2)
    spec = TableSpec("t", "value", ID, N)
    hashes = np.sort(random.integers(0, END, 20_000, dtype=np.uint64))
    newest = np.full(len(hashes), -1)
    refs = []
    for age in range(8):
        some = np.flatnonzero(random.random(len(hashes)) < 0.3)
        table = Table(spec, refs, cache)
        table.put_sorted(hashes[some], [pa.array(some)], [pa.array(np.full(len(some), age))])
        newest[some] = age
        refs += table.flush(cache.writer(namer, age=age, timed=False))
        for _ in range(2):  # the second time with indexes
            located = Table(spec, refs, cache).locate(hashes, [pa.array(np.arange(len(hashes)))])
            assert (located.found == (newest >= 0)).all()
            assert (located.numpy("n", -1) == newest).all()
    # The same hashes with other keys are nobody's.
    assert not Table(spec, refs, cache).locate(hashes, [pa.array(np.arange(len(hashes)) + 1)]).found.any()


VALUE_TYPES = [
    (pa.bool_(), [True, None, False]),
    (pa.int8(), [1, None, -1]),
    (pa.float32(), [1.5, None, -0.5]),
    (pa.float64(), [1.5, None, math.inf]),
    (pa.decimal128(12, 3), [Decimal("1.500"), None, Decimal("-2.000")]),
    (pa.string(), ["a", None, ""]),
    (pa.large_string(), ["a", None, ""]),
    (pa.binary(), [b"a", None, b""]),
    (pa.date32(), [dt.date(2020, 1, 1), None, dt.date(1969, 1, 1)]),
    (pa.timestamp("us", "UTC"), [dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc), None, None]),
    (pa.timestamp("us"), [dt.datetime(2020, 1, 1), None, dt.datetime(1950, 1, 1)]),  # noqa: DTZ001
    (pa.list_(pa.struct([("x", pa.int32())])), [[{"x": 1}, None], None, []]),
    (
        pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))]),
        [{"x": 1, "y": ["z"]}, None, {"x": None, "y": None}],
    ),
    (pa.map_(pa.string(), pa.int64()), [[("a", 1)], None, []]),
]


@pytest.mark.parametrize(
    ("kind", "values"), VALUE_TYPES, ids=lambda one: str(one) if isinstance(one, pa.DataType) else ""
)
def test_values_of_any_type_come_back_from_disk_and_from_memory(kind, values, cache, namer):
    spec = TableSpec("t", "value", ID, pa.schema([("v", kind)]))
    table = Table(spec, [], cache)
    table.put(u64(9, 1, 5), [ints(9, 1, 5)], [pa.array(values, kind)])
    refs = table.flush(cache.writer(namer, age=1, timed=False))
    later = Table(spec, refs, cache)
    later.put(u64(7), [ints(7)], [pa.array(values[:1], kind)])
    found, [got] = later.get(u64(5, 2, 9, 7, 1, 9), [ints(5, 2, 9, 7, 1, 9)])
    assert found.tolist() == [True, False, True, True, True, True]
    assert got.to_pylist() == [values[2], None, values[0], values[0], values[1], values[0]]
    assert got.type == kind
    got.validate(full=True)


KEY_TYPES = [
    (pa.bool_(), [True, False, None]),
    (pa.int16(), [1, -1, None]),
    (pa.float64(), [1.5, math.nan, None]),
    (pa.float32(), [1.5, math.nan, None]),
    (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("2.00"), None]),
    (pa.string(), ["", "a", None]),
    (pa.binary(), [b"", b"a", None]),
    (pa.date32(), [dt.date(2020, 1, 1), dt.date(2020, 1, 2), None]),
    (pa.timestamp("us"), [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2), None]),  # noqa: DTZ001
]


@pytest.mark.parametrize(
    ("kind", "keys"), KEY_TYPES, ids=lambda one: str(one) if isinstance(one, pa.DataType) else ""
)
@pytest.mark.parametrize("nulls", [True, False])
def test_keys_that_share_a_hash_are_told_apart(kind, keys, nulls, cache, namer):
    keys = keys if nulls else keys[:2]
    spec = TableSpec("t", "value", pa.schema([("a", kind), ("b", pa.int64())]), N)
    pairs = [(key, number) for key in keys for number in (0, 1)]
    refs = []
    for age in range(3):
        table = Table(spec, refs, cache)
        for i, (key, number) in enumerate(pairs):
            if age == 0 or i % 3 == age:
                table.put(u64(7), [pa.array([key], kind), ints(number)], [ints(10 * age + i)])
        refs += table.flush(cache.writer(namer, age=age, timed=False))
    wanted = [10 * (i % 3) + i for i in range(len(pairs))]
    columns = [pa.array([key for key, _ in pairs], kind), ints(*(number for _, number in pairs))]
    for view in (Table(spec, refs, cache), table):
        found, [got] = view.get(np.full(len(pairs), 7, np.uint64), columns)
        assert found.all()
        assert got.to_pylist() == wanted
    assert sorted(Table(spec, refs, cache).scan()["v.n"].to_pylist()) == sorted(wanted)


def test_numpy_gives_the_default_for_missing_and_null(cache, namer):
    spec = TableSpec(
        "t", "value", ID, pa.schema([("n", pa.int64()), ("when", pa.timestamp("us")), ("ok", pa.bool_())])
    )
    table = Table(spec, [], cache)
    when = pa.array([5, None], pa.timestamp("us"))
    table.put_sorted(u64(1, 2), [ints(1, 2)], [ints(None, 8), when, pa.array([True, None])])
    table.delete(u64(3), [ints(3)])
    refs = table.flush(cache.writer(namer, age=1, timed=False))
    located = Table(spec, refs, cache).locate(u64(1, 2, 3), [ints(1, 2, 3)])
    assert located.found.tolist() == [True, True, False]
    assert located.numpy("n", -1).tolist() == [-1, 8, -1]
    assert located.numpy("when", 0).tolist() == [5, 0, 0]
    assert located.numpy("ok", False).tolist() == [True, False, False]
    assert located.take("n").to_pylist() == [None, 8, None]


def test_wrong_calls_are_refused(cache):
    values = Table(TableSpec("t", "value", ID, N), [], cache)
    rows = Table(TableSpec("t", "rows", ID, N), [], cache)
    with pytest.raises(ValueError, match="not sorted"):
        values.locate(u64(2, 1), [ints(2, 1)])
    with pytest.raises(ValueError, match="not sorted"):
        values.put_sorted(u64(2, 1), [ints(2, 1)], [ints(2, 1)])
    with pytest.raises(ValueError, match="takes 1 columns"):
        values.put(u64(1), [ints(1)], [])
    with pytest.raises(TypeError, match="rows table"):
        rows.get(u64(1), [ints(1)])
    with pytest.raises(TypeError, match="value table"):
        values.append(u64(1), [ints(1)], np.array([1]), [ints(1)])
    with pytest.raises(TypeError, match="string"):
        Table(TableSpec("t", "value", ID, pa.schema([("s", pa.string())])), [], cache).locate(
            u64(), [ints()]
        ).numpy("s", "")


def test_a_table_over_a_remote_store(tmp_path, namer):
    store = Store.open("base", filesystem=pafs._MockFileSystem())
    spec = TableSpec("t", "value", ID, N)
    table = Table(spec, [], RunCache(store, str(tmp_path / "a")))
    table.put(u64(3, 2), [ints(3, 2)], [ints(30, 20)])
    refs = table.flush(RunCache(store, str(tmp_path / "a")).writer(namer, age=1, timed=False, durable=True))
    elsewhere = Table(spec, refs, RunCache(store, str(tmp_path / "b")))
    assert elsewhere.get(u64(2, 3), [ints(2, 3)])[1][0].to_pylist() == [20, 30]


def test_only_the_runs_that_are_needed_are_opened(cache, store, namer):
    spec = TableSpec("t", "value", ID, N)
    refs = []
    for key in (1, 5):
        table = Table(spec, [], cache)
        table.put(u64(key), [ints(key)], [ints(key)])
        refs += table.flush(cache.writer(namer, age=key, timed=False))
    store.delete([refs[1].name])
    fresh = Table(spec, refs, RunCache(store))
    assert fresh.get(u64(1), [ints(1)])[0].all()
    with pytest.raises(StateError, match="missing"):
        fresh.get(u64(5), [ints(5)])


def test_rows_of_a_hot_key_keep_their_order(cache, namer):
    spec = TableSpec("t", "rows", ID, N)
    refs = []
    for age in range(4):
        table = Table(spec, refs, cache)
        table.append(
            np.full(100, 7, np.uint64),
            [ints(*[i % 2 for i in range(100)])],
            np.arange(100)[::-1],
            [ints(*range(100))],
        )
        refs += table.flush(cache.writer(namer, age=age, timed=True))
    index, times, [values] = Table(spec, refs, cache, horizon=10).rows(u64(9, 7), [ints(0, 1)])
    assert set(index.tolist()) == {1}
    assert values.to_pylist() == [i for i in range(90) if i % 2] * 4
    assert times.tolist() == [99 - i for i in range(90) if i % 2] * 4


def test_due_takes_any_bounds(cache, namer):
    spec = TableSpec("t", "rows", ID, N)
    table = Table(spec, [], cache)
    extremes = [-(2**63), -1, 0, 1, 2**63 - 1]
    table.append(u64(*range(5)), [ints(*range(5))], np.array(extremes), [ints(*range(5))])
    refs = table.flush(cache.writer(namer, age=1, timed=True))
    for one in (table, Table(spec, refs, cache)):
        assert one.due(None, 2**63 - 1)["_time"].to_pylist() == extremes
        assert one.due(-(2**63), 0)["_time"].to_pylist() == [-1, 0]
        assert one.due(-1, 1)["_time"].to_pylist() == [0, 1]
        assert one.due(5, 4).num_rows == 0
        assert one.due(2**63 - 1, 2**64).num_rows == 0
