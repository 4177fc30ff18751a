"""What a fold can do with its tables, and that it sees its own writes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sterna.dataflow import Dataflow
from sterna.operators.base import Edge
from sterna.operators.fold import Fold, TableWish
from sterna.operators.load import Load
from sterna.sinks import memory
from twin.small import SCHEMA, rows, start, unary

NOTHING = pa.schema([("k", pa.int64())])
VALUE = {"one": TableWish("value", pa.schema([("v", pa.int64()), ("tags", pa.list_(pa.string()))]))}
ROWS = {"many": TableWish("rows", pa.schema([("v", pa.int64())]))}


@pytest.fixture
def steps(tmp_path):
    """Runs one function an epoch at one worker, each with the same tables, moving all state in between."""
    twins = []

    def run(wishes, *functions):
        queue = list(functions)

        def fold(table, tables, later):
            queue[tables.epoch](tables)

        twins.append(
            start(
                unary(fold, wishes, NOTHING),
                tmp_path,
                workers=2,
                repeat=0.0,
                share_host_state=False,
                sink=memory(),
            )
        )
        for number in range(len(functions)):
            twins[-1].migrate(dict.fromkeys(range(16), number % 2))
            twins[-1].epoch(rows(0))
        return twins[-1]

    yield run
    for twin in twins:
        twin.close()


def keys(*values):
    return pa.table({"k": pa.array(values, pa.int64())})


def put(tables, k, v, tags=None):
    tables.one.put(
        pa.table({"k": [k], "v": pa.array([v], pa.int64()), "tags": pa.array([tags], pa.list_(pa.string()))})
    )


def test_a_value_table_has_one_row_a_key_the_latest(steps):
    def first(tables):
        put(tables, 1, 10, ["a"])
        put(tables, 1, 11, ["b", None])
        put(tables, None, 5)
        found = tables["one"].get(keys(1, 2, None, 1))
        assert found.to_pylist() == [
            {"v": 11, "tags": ["b", None], "_found": True},
            {"v": None, "tags": None, "_found": False},
            {"v": 5, "tags": None, "_found": True},
            {"v": 11, "tags": ["b", None], "_found": True},
        ]

    def second(tables):
        assert tables.one.get(keys(1))["v"].to_pylist() == [11]
        tables.one.delete(keys(1, 7))
        assert tables.one.get(keys(1, None))["_found"].to_pylist() == [False, True]

    def third(tables):
        assert tables.one.get(keys(1, None))["_found"].to_pylist() == [False, True]
        put(tables, 1, None)
        assert tables.one.get(keys(1)).to_pylist() == [{"v": None, "tags": None, "_found": True}]

    twin = steps(VALUE, first, second, third)
    assert sorted(twin.state("fold").to_pylist(), key=str) == [
        {"k": 1, "v": None, "tags": None},
        {"k": None, "v": 5, "tags": None},
    ]


def many(k, *values, time=0):
    return pa.table({"k": [k] * len(values), "v": list(values), "t": [time] * len(values)})


def test_a_rows_table_keeps_all_rows_of_a_key_in_order_until_they_are_deleted(steps):
    def first(tables):
        tables.many.append(many(1, 3, 1, time=9))
        tables.many.append(many(2, 7))
        tables.many.append(many(1, 2, time=4))

    def second(tables):
        found = tables.many.get(keys(2, 1, 5, 1))
        assert found["_position"].to_pylist() == [0, 1, 1, 1, 3, 3, 3]
        assert found["v"].to_pylist() == [7, 3, 1, 2, 3, 1, 2]
        assert found["t"].to_pylist() == [0, 9, 9, 4, 9, 9, 4]
        assert found["k"].to_pylist() == [2, 1, 1, 1, 1, 1, 1]
        tables.many.delete(keys(1))
        tables.many.append(many(1, 8))
        assert tables.many.get(keys(1))["v"].to_pylist() == [8]

    def third(tables):
        assert tables.many.get(keys(1))["v"].to_pylist() == [8]

    twin = steps(ROWS, first, second, third)
    assert sorted(twin.state("fold", "many").to_pylist(), key=str) == [{"k": 1, "v": 8}, {"k": 2, "v": 7}]


def test_nothing_goes_in_and_comes_out(steps):
    def first(tables):
        tables.one.put(pa.table({"k": [], "v": [], "tags": []}))
        tables.one.delete(keys())
        assert tables.one.get(keys()).num_rows == 0

    assert steps(VALUE, first).state("fold").num_rows == 0


def test_keys_are_cast_to_the_type_of_the_stream(steps):
    def first(tables):
        tables.one.put(
            pa.table({"k": pa.array([3], pa.int8()), "v": pa.array([1], pa.int32()), "tags": [["x"]]})
        )
        assert tables.one.get(pa.table({"k": pa.array([3], pa.int64())}))["v"].to_pylist() == [1]

    steps(VALUE, first)


def test_keys_of_two_columns_and_floats(tmp_path):
    schema = pa.schema([("a", pa.float64()), ("b", pa.string()), ("v", pa.int64())])
    edge = Edge(0, 0, None, ("a", "b"), None, schema)
    nan = float("nan")

    def fold(table, tables, later):
        had = tables.one.get(table)["v"].fill_null(0)
        new = pa.table(
            {
                "a": table["a"],
                "b": table["b"],
                "v": [x + y for x, y in zip(had.to_pylist(), table["v"].to_pylist(), strict=True)],
            }
        )
        tables.one.put(new)
        return new

    flow = Dataflow(
        (
            Fold(
                "fold",
                (edge,),
                fold,
                {"one": TableWish("value", pa.schema([("v", pa.int64())]))},
                schema,
                pa.schema([]),
            ),
        ),
        1,
    )
    twin = start(flow, tmp_path)
    for pairs in ([(nan, "x"), (0.0, None)], [(-nan, "x"), (-0.0, None)], [(None, "x"), (0.0, "x")]):
        a, b = zip(*pairs, strict=True)
        twin.epoch(
            pa.table([pa.array(a, pa.float64()), pa.array(b, pa.string()), pa.array([1, 1])], schema=schema)
        )
    assert sorted(map(str, twin.state("fold").to_pylist())) == sorted(
        [
            "{'a': nan, 'b': 'x', 'v': 2}",
            "{'a': 0.0, 'b': None, 'v': 2}",
            "{'a': None, 'b': 'x', 'v': 1}",
            "{'a': 0.0, 'b': 'x', 'v': 1}",
        ]
    )
    twin.close()


def test_initial_state_is_for_operators_with_one_row_a_key():
    from sterna.errors import InvalidInput

    one = unary(lambda *_: None, VALUE, NOTHING).operators[0]
    assert Load(one).edges[0].schema.names == ["k", "v", "tags"]
    with pytest.raises(InvalidInput, match="'many' has many"):
        Load(unary(lambda *_: None, ROWS, NOTHING).operators[0])


def test_initial_state_with_a_key_twice_is_refused(tmp_path):
    from sterna.errors import InvalidInput

    load = Load(
        unary(
            lambda *_: None, {"one": TableWish("value", pa.schema([("v", pa.int64())]))}, NOTHING
        ).operators[0]
    )
    twin = start(Dataflow((load,), 1), tmp_path)
    twin.epoch(rows(1, 2, 3).select(["k", "v"]))
    assert twin.state("fold").num_rows == 3
    with pytest.raises(InvalidInput, match=r"the initial state of operator 'fold' has the key \(5,\) twice"):
        twin.epoch(rows(4, 5, 5).select(["k", "v"]))
    twin.close()


def test_the_schema_that_travels_is_the_schema_that_arrives():
    edge = Edge(0, 0, None, ("k",), "t", SCHEMA)
    assert edge.wire.names == ["_hash", "k", "v", "t"]
    assert Edge(0, None, 1, ("k",), "t", SCHEMA).wire.names == ["_hash", "__sterna_origin__", "k", "v", "t"]
