"""Tables against a dictionary: random writes, epochs, compaction, moves of ranges between two workers."""

from __future__ import annotations

import itertools
import tempfile
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sterna.state import END, RunCache, RunRef, Store, Table, TableSpec, compact, drop, keep

KEYS = pa.schema([("name", pa.string()), ("part", pa.decimal128(10, 2))])
VALUES = pa.schema([("n", pa.int64()), ("tags", pa.list_(pa.string())), ("ok", pa.bool_())])
POOL = [
    (name, None if part is None else Decimal(part))
    for name in ("a", "b", "", None)
    for part in (None, "0.00", "1.50", "-2.25")
]

keys = st.sampled_from(POOL)
values = st.tuples(
    st.none() | st.integers(-5, 5),
    st.none() | st.lists(st.sampled_from("xy"), max_size=2),
    st.none() | st.booleans(),
)
ranges = st.tuples(st.integers(0, 4), st.integers(1, 4)).map(
    lambda p: (p[0] << 62, min(END, (p[0] + p[1]) << 62))
)


def columns(schema, rows):
    return [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]


@dataclass
class World:
    """Two workers, each with its references; the model knows what all keys hold."""

    spec: TableSpec
    cache: RunCache
    hashes: dict
    refs: list[list[RunRef]] = field(default_factory=lambda: [[], []])
    owned: dict = field(default_factory=dict)
    names: itertools.count = field(default_factory=itertools.count)

    def namer(self):
        return f"runs/op/t-{next(self.names)}.arrow"

    def of(self, rows):
        return np.array([self.hashes[key] for key in rows], np.uint64)

    def owner(self, key):
        return self.owned.get(self.hashes[key] >> 62, 0)

    def move(self, lo, hi, target):
        source = 1 - target
        moved = keep(self.refs[source], [(lo, hi)])
        self.refs[source] = drop(self.refs[source], [(lo, hi)])
        self.refs[target] = self.refs[target] + moved
        for quarter in range(4):
            if lo <= quarter << 62 < hi:
                self.owned[quarter] = target


def world(kind, few, folder):
    spec = TableSpec("t", kind, KEYS, VALUES)
    # Few hashes: every key collides with others. The last one is the greatest hash there is.
    points = [0, 1 << 62, (1 << 63) + 5, END - 1] if few else [i * (END // 16) + 7 for i in range(16)]
    hashes = {key: points[i % len(points)] for i, key in enumerate(POOL)}
    return World(spec, RunCache(Store.open(folder), limit=5), hashes)


step = st.one_of(
    st.tuples(st.just("put"), st.lists(st.tuples(keys, values, st.integers(0, 20)), max_size=8)),
    st.tuples(st.just("delete"), st.lists(keys, max_size=4)),
    st.tuples(st.just("read"), st.lists(keys, max_size=10)),
)
epoch = st.tuples(
    st.lists(step, max_size=4),
    st.integers(0, 12),
    st.none() | st.tuples(ranges, st.integers(0, 1)),
    st.integers(0, 3),
)


@settings(max_examples=60, deadline=None)
@given(few=st.booleans(), epochs=st.lists(epoch, max_size=14))
def test_value_table_equals_a_dictionary(few, epochs):
    with tempfile.TemporaryDirectory() as folder:
        _drive_values(world("value", few, folder), epochs)


def _drive_values(w, epochs):
    model: dict = {}
    for number, (steps, budget, move, _) in enumerate(epochs):
        tables = [Table(w.spec, refs, w.cache) for refs in w.refs]
        for name, rows in steps:
            for worker, table in enumerate(tables):
                if name == "put":
                    mine = [row for row in rows if w.owner(row[0]) == worker]
                    wanted = [key for key, _, _ in mine]
                    table.put(w.of(wanted), columns(KEYS, wanted), columns(VALUES, [v for _, v, _ in mine]))
                    model.update((key, value) for key, value, _ in mine)
                    continue
                wanted = [key for key in rows if w.owner(key) == worker]
                if name == "delete":
                    table.delete(w.of(wanted), columns(KEYS, wanted))
                    for key in wanted:
                        model.pop(key, None)
                else:
                    found, got = table.get(w.of(wanted), columns(KEYS, wanted))
                    rows_got = list(zip(*(column.to_pylist() for column in got), strict=True))
                    assert found.tolist() == [key in model for key in wanted]
                    assert rows_got == [model.get(key, (None, None, None)) for key in wanted]
        _finish(w, tables, number, budget, None, move)
        seen = {}
        for worker, refs in enumerate(w.refs):
            scanned = Table(w.spec, refs, w.cache).scan()
            assert scanned["_hash"].to_pylist() == sorted(scanned["_hash"].to_pylist())
            for row in scanned.to_pylist():
                key = (row["k.name"], row["k.part"])
                assert key not in seen
                assert w.owner(key) == worker
                seen[key] = (row["v.n"], row["v.tags"], row["v.ok"])
        assert seen == model


@settings(max_examples=60, deadline=None)
@given(few=st.booleans(), epochs=st.lists(epoch, max_size=14))
def test_rows_table_equals_lists(few, epochs):
    with tempfile.TemporaryDirectory() as folder:
        _drive_rows(world("rows", few, folder), epochs)


def _drive_rows(w, epochs):
    model: dict = {}
    horizon = 0
    for number, (steps, budget, move, forward) in enumerate(epochs):
        horizon += forward
        tables = [Table(w.spec, refs, w.cache, horizon) for refs in w.refs]

        def live(key, horizon=horizon):
            return [(time, value) for time, value in model.get(key, []) if time >= horizon]

        for name, rows in steps:
            for worker, table in enumerate(tables):
                if name == "put":
                    mine = [row for row in rows if w.owner(row[0]) == worker]
                    wanted = [key for key, _, _ in mine]
                    times = np.array([time for _, _, time in mine], np.int64)
                    table.append(
                        w.of(wanted), columns(KEYS, wanted), times, columns(VALUES, [v for _, v, _ in mine])
                    )
                    for key, value, time in mine:
                        model.setdefault(key, []).append((time, value))
                    continue
                wanted = [key for key in rows if w.owner(key) == worker]
                if name == "delete":
                    table.delete(w.of(wanted), columns(KEYS, wanted))
                    for key in wanted:
                        model.pop(key, None)
                else:
                    index, times, got = table.rows(w.of(wanted), columns(KEYS, wanted))
                    result = list(
                        zip(index.tolist(), times.tolist(), *(c.to_pylist() for c in got), strict=True)
                    )
                    assert result == [
                        (i, time, *value) for i, key in enumerate(wanted) for time, value in live(key)
                    ]
                    _check_due(w, table, worker, live, horizon)
        _finish(w, tables, number, budget, horizon, move)
        for worker, refs in enumerate(w.refs):
            table = Table(w.spec, refs, w.cache, horizon)
            got = {}
            for row in table.scan().to_pylist():
                got.setdefault((row["k.name"], row["k.part"]), []).append(
                    (row["_time"], (row["v.n"], row["v.tags"], row["v.ok"]))
                )
            assert got == {key: live(key) for key in POOL if w.owner(key) == worker and live(key)}
            _check_due(w, table, worker, live, horizon)


def _finish(w, tables, number, budget, horizon, move):
    # Small limits, so that a few epochs see many merges, and drawn from the epoch, so that both kinds happen.
    limits = {"depth": 2 + number % 2, "scattered": (-16, 0, 64)[number % 3]}
    for worker, table in enumerate(tables):
        fresh = table.flush(w.cache.writer(w.namer, age=number, timed=w.spec.timed))
        w.refs[worker], _ = compact(
            w.spec, w.refs[worker] + fresh, w.cache, budget, w.namer, horizon, **limits
        )
        w.refs[worker] = [RunRef.from_list(ref.to_list()) for ref in w.refs[worker]]
    if move is not None:
        w.move(*move[0], move[1])


def _check_due(w, table, worker, live, horizon):
    for after, upto in ((None, 20), (horizon, horizon + 3), (3, 9)):
        got = [
            (
                row["_time"],
                row["_hash"],
                (row["k.name"], row["k.part"]),
                (row["v.n"], row["v.tags"], row["v.ok"]),
            )
            for row in table.due(after, upto).to_pylist()
        ]
        want = [
            (time, w.hashes[key], key, value)
            for key in POOL
            if w.owner(key) == worker
            for time, value in live(key)
            if time <= upto and (after is None or time > after)
        ]
        assert [row[:2] for row in got] == sorted(row[:2] for row in want)
        for key in POOL:
            assert [row for row in got if row[2] == key] == sorted(
                (row for row in want if row[2] == key), key=lambda row: row[0]
            )
