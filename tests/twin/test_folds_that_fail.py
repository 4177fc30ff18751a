"""A fold that raises, or returns what it must not.

The epoch fails with its name and key, and a corrected one goes on.
"""

from __future__ import annotations

from datetime import datetime, timezone

import pyarrow as pa
import pytest

from sterna.errors import FoldError
from sterna.hashing import hash_keys
from sterna.operators.fold import TableWish
from sterna.targets import rescale
from twin.small import adding, chain, machine, rows, totals, unary


def unlucky(key, record, state):
    if key == 13:
        raise ZeroDivisionError("thirteen of all numbers")
    return adding(key, record, state)


def unlucky_table(table, tables, later):
    if 13 in table["k"].to_pylist():
        raise ZeroDivisionError("thirteen of all numbers")
    return adding_table(table, tables, later)


def adding_table(table, tables, later):
    for k, v in zip(table["k"].to_pylist(), table["v"].to_pylist(), strict=True):
        key = pa.table({"k": [k]})
        had = tables.total.get(key)["v"][0].as_py() or 0
        tables.total.put(key.append_column("v", pa.array([had + v])))
    return table.select(["k", "v"])


@pytest.mark.parametrize(
    ("wrong", "right", "make"),
    [(unlucky, adding, machine), (unlucky_table, adding_table, unary), (unlucky, adding, chain)],
    ids=["per record", "per worker", "in a chain"],
)
def test_it_names_operator_key_and_line_and_a_corrected_fold_goes_on(start, wrong, right, make):
    twin = start(make(wrong))
    twin.epoch(rows(1, 2, 3))
    twin.migrate(rescale(5))
    batch = rows(*range(20))
    with pytest.raises(FoldError) as caught:
        twin.epoch(batch)
    message = str(caught.value)
    assert "thirteen of all numbers" in message
    assert "in unlucky" in message  # the user's traceback
    assert "key 13" in message
    assert f"{int(hash_keys([pa.array([13])])[0]):#018x}" in message
    assert repr(twin.flow.operators[0].name) in message
    assert twin.coordinator.last.epoch == 0

    # The same twin fails again; a new one with the fold corrected goes on with the same epoch and the same
    # decision.
    with pytest.raises(FoldError):
        twin.epoch(batch, number=1)
    twin.close()
    again = start(make(right))
    again.epoch(batch, number=1)
    assert totals(again) == {k: 2 if k in (1, 2, 3) else 1 for k in range(20)}
    assert again.coordinator.last.configurations[again.flow.operators[0].name].workers == 5


def test_a_fold_that_fails_on_a_combination_of_keys_says_so(start):
    def jealous(table, tables, later):
        if {1, 2} <= set(table["k"].to_pylist()):
            raise ValueError("not these two together")

    twin = start(unary(jealous), workers=1)
    with pytest.raises(FoldError, match="no single key alone makes it raise") as caught:
        twin.epoch(rows(1, 2))
    assert "not these two together" in str(caught.value)


def test_a_fold_that_fails_in_a_notification_is_blamed_for_its_key(start):
    def late_trouble(table, tables, later):
        if table.num_rows:
            later.notify_at("t", table)
        if 7 in later.due["k"].to_pylist():
            raise RuntimeError("seven is due")

    twin = start(unary(late_trouble), watermark_delay=0)
    twin.epoch(rows(5, 6, 7, 8, time=10))
    with pytest.raises(FoldError, match="seven is due") as caught:
        twin.epoch(rows(1, time=30))
    assert "key 7" in str(caught.value)


@pytest.mark.parametrize(
    ("produced", "said"),
    [
        ([("a",)], "2 columns"),
        ([{"k": 1}], "2 columns"),
        ([{"k": 1, "w": 2}], "'v'"),
        ([{"k": 1, "v": "many"}], "v int64"),
        ([{"k": 1, "v": 2**70}], "v int64"),
        ([{"k": 1, "v": 1.5}], "v int64"),
        ([5], "neither a dict nor a tuple"),
        ([(1, 2), {"k": 1, "v": 2}], "others are not"),
        (None, "NoneType"),
    ],
)
def test_outputs_that_do_not_fit(start, produced, said):
    twin = start(machine(lambda *_: (1, produced)))
    with pytest.raises(FoldError, match="machine") as caught:
        twin.epoch(rows(1))
    assert said in str(caught.value)


@pytest.mark.parametrize("state", ["text", 2**70, 1.5, {"n": 1}, datetime(2020, 1, 1, tzinfo=timezone.utc)])
def test_a_state_of_one_column_that_does_not_fit(start, state):
    twin = start(machine(lambda *_: (state, [])))
    with pytest.raises(FoldError, match=r"state that does not fit its schema \(n int64\)"):
        twin.epoch(rows(1))


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (pa.list_(pa.int64()), [1, 2.0, None], [1, 2.5]),
        (pa.struct([("a", pa.int32())]), {"a": 2.0}, {"a": 2.5}),
        (pa.map_(pa.string(), pa.int64()), {"x": 1}, {"x": 1.5}),
        (pa.list_(pa.struct([("a", pa.list_(pa.int8()))])), [{"a": [1]}, None], [{"a": [0.1]}]),
        (pa.list_(pa.float64()), [1.5], ["text"]),
    ],
)
def test_a_nested_number_is_not_cut(start, kind, good, bad):
    schema = pa.schema([("s", kind)])
    twin = start(machine(lambda _, record, __: (good if record["v"] == 1 else bad, []), schema))
    twin.epoch(rows(1))
    with pytest.raises(FoldError, match="does not fit its schema"):
        twin.epoch(rows((1, 2)))


@pytest.mark.parametrize("state", [5, {"n": 1}, {"n": 1, "s": 5}, "text", [1, "a"]])
def test_a_state_of_two_columns_that_does_not_fit(start, state):
    twin = start(machine(lambda *_: (state, []), pa.schema([("n", pa.int64()), ("s", pa.string())])))
    with pytest.raises(FoldError, match=r"state that does not fit its schema \(n int64, s string\)"):
        twin.epoch(rows(1))


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (pa.table({"k": [1]}), r"missing \['v'\]"),
        (pa.table({"k": [1], "v": [2], "w": [3]}), r"unexpected \['w'\]"),
        (pa.table({"k": ["one"], "v": [2]}), "types that do not fit"),
        (pa.table({"k": [1], "v": [2.5]}), "types that do not fit"),
        ([1, 2], "returned list"),
    ],
)
def test_tables_that_do_not_fit(start, result, said):
    twin = start(unary(lambda *_: result))
    with pytest.raises(FoldError, match=said):
        twin.epoch(rows(1))


@pytest.mark.parametrize("verb", ["get", "put", "delete", "notify_at"])
def test_a_fold_that_touches_keys_of_another_worker(start, verb):
    def greedy(table, tables, later):
        everybody = rows(*range(100))
        later.notify_at("t", everybody) if verb == "notify_at" else getattr(tables.total, verb)(everybody)

    twin = start(unary(greedy))
    with pytest.raises(FoldError, match=r"touches the key \d+ in epoch 0, which does not belong to worker"):
        twin.epoch(rows(1))


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda t, tables, later: tables.nothing, "state table 'nothing'"),
        (lambda t, tables, later: tables.total.append(t), "kind 'rows'"),
        (lambda t, tables, later: tables.bids.put(t), "kind 'value'"),
        (lambda t, tables, later: tables.total.get(t.select(["v"])), "no column 'k'"),
        (lambda t, tables, later: tables.total.put(t.select(["k"])), "no column 'v'"),
        (lambda t, tables, later: tables.bids.append(t.select(["k", "v"])), "no column 't'"),
        (lambda t, tables, later: later.notify_at("t", t.select(["k", "t"])), "'v'"),
        (lambda t, tables, later: later.notify_at("time", t), "'time'"),
    ],
)
def test_tables_used_in_a_wrong_way(start, use, said):
    tables = {
        "total": TableWish("value", pa.schema([("v", pa.int64())])),
        "bids": TableWish("rows", pa.schema([("v", pa.int64())])),
    }
    twin = start(unary(use, tables))
    with pytest.raises(FoldError) as caught:
        twin.epoch(rows(1))
    assert said in str(caught.value)
    assert "fold" in str(caught.value)
