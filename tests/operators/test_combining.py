"""Whether rows are combined before the exchange, and by whom, follows the last epochs' statistics."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sterna.dataflow import Dataflow
from sterna.engine import combining
from sterna.engine.combining import Combiner
from sterna.engine.epoch import Combining
from sterna.operators import accumulators as agg
from sterna.operators.aggregate import Aggregate
from sterna.operators.base import Edge
from sterna.state.manifest import Manifest

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("x", pa.float64())])
NONE, ROUTER, NATIVE = Combining(), Combining(router=frozenset([0])), Combining(native=frozenset([0]))


def flow(time=None, **named):
    return Dataflow(
        (Aggregate("a", (Edge(0, 0, None, ("k",), time, SCHEMA),), named or {"n": agg.count()}),), 1
    )


def epoch(rows, keys, combined=None):
    """The manifest of an epoch with so many rows, which wrote so many keys at two workers."""
    facts = {
        "rows": rows,
        "combined": combined or {},
        "workers": {"a/0": [0, keys, 0, []], "a/1": [0, 0, 0, []]},
    }
    return Manifest(0, 1, {}, {}, [None], facts=facts)


@pytest.mark.parametrize(
    ("rows", "keys", "expected"),
    [
        (1000, 1000, NONE),
        (1000, 600, NONE),
        (1000, 400, ROUTER),
        (1000, 10, ROUTER),  # few rows: a stage more would not pay
        (100_000, 40_000, ROUTER),
        (100_000, 1000, NATIVE),
        (0, 0, NONE),
    ],
)
def test_it_pays_where_keys_repeat(rows, keys, expected):
    combiner = Combiner(flow())
    assert combiner.choice() == NONE
    combiner.learn(epoch(rows, keys), NONE)
    assert combiner.choice() == expected


def test_the_router_says_how_often_keys_repeat_and_may_stop_again():
    combiner = Combiner(flow())
    combiner.learn(epoch(1000, 10), NONE)
    combiner.learn(epoch(1000, 10, {"0": [1000, 900]}), ROUTER)
    assert combiner.choice() == NONE


def test_while_spark_combines_an_epoch_is_left_to_the_router_now_and_then(monkeypatch):
    monkeypatch.setattr(combining, "LOOK_AGAIN", 3)
    combiner = Combiner(flow())
    combiner.learn(epoch(100_000, 10), NONE)
    seen = []
    for _ in range(8):
        used = combiner.choice()
        seen.append(used)
        combiner.learn(epoch(100_000, 10, {"0": [100_000, 10]} if used == ROUTER else {}), used)
    assert seen.count(ROUTER) == 2
    assert seen.count(NATIVE) == 6


def test_an_epoch_without_rows_changes_nothing():
    combiner = Combiner(flow())
    combiner.learn(epoch(1000, 10), NONE)
    combiner.learn(epoch(0, 0), ROUTER)
    assert combiner.choice() == ROUTER


@pytest.mark.parametrize(
    "named",
    [
        {"x": agg.sum("x")},
        {"x": agg.mean("x")},
        {"v": agg.first("v")},
        {"n": agg.count(), "v": agg.last("v")},
    ],
    ids=str,
)
def test_what_depends_on_order_is_never_combined(named):
    for wanted in ("auto", "router", "native"):
        combiner = Combiner(flow(**named), wanted)
        combiner.learn(epoch(100_000, 10), NONE)
        assert combiner.choice() == NONE


def test_spark_can_not_combine_rows_whose_time_matters_nor_make_lists():
    for one in (flow("v"), flow(top=agg.largest(2, "v"))):
        combiner = Combiner(one)
        combiner.learn(epoch(100_000, 10), NONE)
        assert combiner.choice() == ROUTER
        assert Combiner(one, "native").choice() == ROUTER


def test_outside_ansi_mode_sums_are_not_left_to_spark():
    assert Combiner(flow(v=agg.sum("v")), "native", ansi=True).choice() == NATIVE
    assert Combiner(flow(v=agg.sum("v")), "native", ansi=False).choice() == ROUTER
    assert Combiner(flow(v=agg.max("v")), "native", ansi=False).choice() == NATIVE


def test_as_told():
    assert Combiner(flow(), "none").choice() == NONE
    assert Combiner(flow(), "router").choice() == ROUTER
    assert Combiner(flow(), "native").choice() == NATIVE
