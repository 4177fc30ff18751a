"""``join`` puts out every pair once; ``union`` passes on what comes.

For ``join`` it makes no difference which row comes first or where the state is.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import sterna
from sterna.dataflow import Dataflow
from sterna.operators.base import Edge
from sterna.operators.fold import Fold, TableWish
from sterna.operators.joining import Join, Side, union_of
from twin import small

LEFT = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("t", pa.int64())])
RIGHT = pa.schema([("id", pa.int64()), ("w", pa.int64()), ("at", pa.int64())])
KEYS = st.one_of(st.none(), st.integers(0, 4))
SIDE = st.lists(st.tuples(KEYS, st.integers(0, 3)), max_size=6)


def joining(keep=None):
    join = Join(Side.of(LEFT, ("k",), "t", ["v"]), Side.of(RIGHT, ("id",), "at", {"other": "w"}))
    edges = (Edge(0, 0, None, ("k",), "t", LEFT), Edge(1, 1, None, ("id",), "at", RIGHT))
    tables = {
        "left": TableWish("rows", join.left.kept, join.time, keep),
        "right": TableWish("rows", join.right.kept, join.time, keep),
    }
    return Dataflow((Fold("join", edges, join, tables, join.output, pa.schema([])),), 2)


def table(pairs, schema, time=0):
    columns = [[k for k, _ in pairs], [v for _, v in pairs], [time] * len(pairs)]
    return pa.table([pa.array(column, pa.int64()) for column in columns], schema=schema)


@given(epochs=st.lists(st.tuples(SIDE, SIDE), max_size=6), workers=st.integers(1, 5))
def test_every_pair_comes_out_once(epochs, workers, tmp_path_factory):
    twin = small.start(joining(), tmp_path_factory.mktemp("join") / "c", bins=8, workers=2)
    for number, (left, right) in enumerate(epochs):
        if number == 2:
            twin.migrate(sterna.rescale(workers), sterna.fluid())
        twin.epoch(table(left, LEFT), table(right, RIGHT))
    found = Counter((row["k"], row["v"], row["other"]) for row in twin.coordinator.sink.rows())
    lefts, rights = ([row for epoch in epochs for row in epoch[side]] for side in (0, 1))
    assert found == Counter((k, v, w) for k, v in lefts for i, w in rights if k is not None and k == i)
    twin.close()


def test_rows_are_kept_as_long_as_was_asked_for(start):
    twin = start(joining(keep=5), bins=4, workers=2, watermark_delay=0)
    twin.epoch(table([(1, 10)], LEFT, 100), table([(9, 0)], RIGHT, 100))
    twin.epoch(table([(2, 20)], LEFT, 105), table([(1, 1)], RIGHT, 105))
    twin.epoch(table([(3, 30)], LEFT, 200), table([(1, 2)], RIGHT, 200))
    # Rows expire by the watermark of the epoch before, so that whatever is due finds what was there at its
    # time.
    twin.epoch(table([], LEFT), table([(3, 4)], RIGHT, 200))
    twin.epoch(table([], LEFT), table([(1, 3)], RIGHT, 200))
    found = sorted((row["k"], row["v"], row["other"]) for row in twin.coordinator.sink.rows())
    assert (1, 10, 1) in found
    assert (3, 30, 4) in found
    assert (1, 10, 3) not in found


def test_union_passes_on_what_comes(start):
    edges = tuple(Edge(i, i, None, ("k",), None, LEFT) for i in range(3))
    twin = start(Dataflow((Fold("union", edges, union_of, {}, LEFT, pa.schema([])),), 3), bins=4, workers=2)
    twin.epoch(*(table([(k, i) for k in range(i + 1)], LEFT) for i in range(3)))
    assert Counter((row["k"], row["v"]) for row in twin.coordinator.sink.rows()) == Counter(
        [(0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)]
    )
