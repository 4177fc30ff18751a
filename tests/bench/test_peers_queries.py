"""What the comparison of NEXMark's queries is made of.

How much each reads, how fast it went, what its state came to.
"""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sterna
from sterna.bench.acknowledge import Missing
from sterna.bench.peers import better, queries, telling
from sterna.bench.peers.again import earlier, joined
from sterna.bench.peers.loads import CLOSING, FULL, LOADS, QUICK, WHOLE, Load, Size
from sterna.bench.peers.pace import Run, paced, spark_state, with_events
from sterna.bench.peers.queries import MANY_KEYS, told
from sterna.bench.peers.sides import JOIN_FORMAT, JOINING, join_formats, native
from sterna.bench.systems import SPARK_STATE
from sterna.errors import InvalidInput
from sterna.nexmark.generator import SCHEMAS, generate
from sterna.nexmark.native import NATIVE
from sterna.nexmark.queries import QUERIES
from sterna.nexmark.streams import Streams
from sterna.session import set_for_a_while

BIDS = {"bid": WHOLE["bid"]}
NEWCOMERS = {kind: WHOLE[kind] for kind in ("person", "auction")}


class Asked:
    """Stands in for the three streams, and remembers which were asked for."""

    longest = "1 second"

    def __init__(self):
        self.kinds = set()

    def __getattr__(self, name):
        self.kinds.add(name.removesuffix("s"))
        return MagicMock()


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_given_the_kinds_that_it_reads(spark, name):
    for version in (QUERIES[name], NATIVE[name]):
        asked = Asked()
        version(asked)
        assert asked.kinds == set(LOADS[name].kinds)


@pytest.mark.parametrize("name", QUERIES)
def test_the_columns_that_are_read_are_enough_for_both(spark, tmp_path, name):
    load = QUICK.load(name)
    files = replace(load, each=200, epochs=2).files(tmp_path, 1).written()
    frames = files.frames(spark)
    assert {kind: tuple(frames[kind].columns) for kind in load.kinds} == load.reads
    assert native(spark, name, files, load).isStreaming
    assert QUERIES[name](Streams(*map(sterna.read, frames.values()))).dataflow()


@given(
    reads=st.sampled_from([NEWCOMERS, CLOSING, BIDS]),
    each=st.integers(50, 3_000),
    number=st.integers(0, 1_000),
)
def test_every_epoch_has_as_many_rows_as_are_counted(reads, each, number):
    load = Load(reads, each)
    events = generate(load.shape, number * load.events, (number + 1) * load.events, load.kinds)
    assert sum(batch.num_rows for batch in events.batches) == load.rows
    assert 0 <= each - load.rows < 50


@pytest.mark.parametrize("name", MANY_KEYS)
def test_epochs_are_as_large_where_bids_are_not_read(name):
    assert LOADS[name].rows == pytest.approx(LOADS[name].each, rel=1e-3)


@given(
    span=st.integers(1, 50),
    ends=st.integers(1, 200),
    epochs=st.integers(2, 20),
    data=st.data(),
)
def test_windows_leave_in_the_epoch_after_the_one_that_passes_their_end(span, ends, epochs, data):
    warm = data.draw(st.integers(1, epochs - 1))
    newest = [0.0, *(number * span - 0.001 for number in range(1, epochs + 1))]
    # An epoch lets go of what has ended by the newest event of the epochs before it.
    gone = [int(newest[number - 1] // ends) for number in range(1, epochs + 1)]
    load = Load(BIDS, epochs=epochs, warm=warm, span=float(span), ends=float(ends))
    assert load.windows_ended == gone[-1] - gone[warm - 1]


def test_windows_end_while_epochs_count():
    windowed = {name: load.windows_ended for name, load in LOADS.items() if load.ends is not None}
    assert set(windowed) == {"q5", "q7", "q8", "nbq5", "nbq8", "nbqx"}
    assert all(windowed.values()), windowed


def auctions(load):
    """When all auctions of a load begin and end, in epochs."""
    bare = replace(load.shape, extra=(0, 0, 0))
    table = generate(bare, 0, load.epochs * load.events, ("auction",)).auctions
    return [
        (table.column(name).cast(pa.int64()).to_numpy() - bare.base) / (1e6 * load.span)
        for name in ("dateTime", "expires")
    ]


def test_many_auctions_are_open_and_some_close_while_epochs_count():
    load = FULL.load("q4")
    begun, ended = auctions(load)
    is_open = [int(np.sum((begun < epoch) & (ended >= epoch))) for epoch in (load.warm, load.epochs)]
    assert min(is_open) > 35_000
    assert np.sum((ended >= load.warm) & (ended < load.epochs)) > 75_000


@pytest.mark.parametrize("name", ["q4", "q6"])
def test_auctions_close_on_both_sides_while_epochs_count(name):
    """Spark keeps what is open for twice as long as it may be, and tells of nothing before that."""
    load = FULL.load(name)
    longest = int(load.longest.split()[0]) / 1e3
    assert load.closing_since * load.span == pytest.approx(2 * longest, rel=0.001)
    assert load.closing_since <= load.warm


@given(st.integers(100, 5_000), st.integers(1_000, 20_000), st.floats(0.5, 100.0))
def test_no_auction_is_open_longer_than_spark_is_told(in_flight, each, span):
    load = Load(CLOSING, each, span=span, in_flight=in_flight)
    begun, ended = auctions(load)
    number, unit = load.longest.split()
    assert unit == "milliseconds"
    longest = (ended - begun).max() * 1e3 * load.span
    assert longest <= int(number)
    assert int(number) <= longest * 1.05 + 2


def test_most_of_the_state_is_there_while_epochs_count():
    load = FULL.load("q8")
    assert load.ends is not None
    assert load.warm < load.ends / load.span < load.epochs
    assert load.rows * load.ends / load.span > 1_500_000
    q3 = FULL.load("q3")
    assert q3.rows * q3.epochs * (1 / 4 * 1 / 2 + 3 / 4 * 1 / 5) > 2_000_000


def test_a_load_has_a_warm_up_and_rows_to_count():
    for wrong in ({"warm": 0}, {"warm": 12}, {"each": 45}):
        with pytest.raises(InvalidInput):
            Load(BIDS, **wrong)


def test_less_is_measured_where_less_is_asked_for():
    for name, whole in LOADS.items():
        small = QUICK.load(name)
        assert (small.each, small.epochs, small.warm) == (5_000, 3, 1)
        assert (small.reads, small.span, small.ends) == (whole.reads, whole.span, whole.ends)
        assert FULL.load(name) == whole


def test_only_what_is_read_is_written_a_file_for_every_core(tmp_path):
    load = Size(each=400, epochs=3, warm=1).load("q8")
    files = load.files(tmp_path, 2).written()
    names = {kind: sorted((files.folder / kind).glob("*.parquet")) for kind in SCHEMAS}
    assert {kind: len(paths) for kind, paths in names.items()} == {"person": 6, "auction": 6, "bid": 0}
    assert sum(pq.read_metadata(path).num_rows for paths in names.values() for path in paths) == 3 * load.rows
    assert load.files(tmp_path, 3).parts == 2


def report(epoch, second, took, *, read=True, operators=()):
    """What Spark says of an epoch that began at a second and took so many."""
    return {
        "batchId": epoch,
        "numInputRows": 1,
        "timestamp": f"2026-01-01T00:00:{second:06.3f}Z",
        "durationMs": {"triggerExecution": 1e3 * took, "addBatch": 1},
        "sources": [
            {"description": "TickSource", "startOffset": epoch, "endOffset": epoch + 1},
            {
                "description": "FileStreamSource[file:/events/bid]",
                "startOffset": epoch,
                "endOffset": epoch + read,
            },
        ],
        "stateOperators": list(operators),
    }


def test_time_between_epochs_counts_and_the_warm_up_does_not():
    load = Load(BIDS, each=4_600, epochs=4, warm=2)
    reports = [report(0, 0, 9), report(1, 10, 2), report(2, 13, 3), report(3, 20, 1)]
    rate, gaps = paced(reports, load)
    assert gaps == pytest.approx((4.0, 5.0))
    assert rate == pytest.approx(2 * 4_600 / 9)


def test_epochs_that_read_nothing_are_no_epochs_with_events():
    reports = [report(0, 0, 1), report(1, 1, 1, read=False), report(2, 2, 1)]
    assert [one["batchId"] for one in with_events(reports, "/events")] == [0, 2]
    assert with_events(reports, "/other") == []


def test_a_run_that_has_not_read_everything_in_its_epochs_is_refused():
    with pytest.raises(Missing, match="2 epochs had events, there should be 3"):
        paced([report(0, 0, 1), report(1, 1, 1)], Load(BIDS, epochs=3, warm=1))


def operator(name, put, removed):
    return {
        "operatorName": name,
        "numRowsUpdated": put,
        "numRowsRemoved": removed,
        "memoryUsedBytes": 10 * put,
    }


def test_what_a_join_keeps_is_what_it_put_in_less_what_it_removed():
    reports = [
        report(0, 0, 1, operators=[operator("symmetricHashJoin", 10, 0), operator("stateStoreSave", 4, 0)]),
        report(1, 1, 1, operators=[operator("symmetricHashJoin", 7, 3), operator("stateStoreSave", 4, 1)]),
    ]
    assert spark_state(reports) == [
        {"operator": "symmetricHashJoin", "put": 17, "removed": 3, "memory_bytes": 70, "rows": 14},
        {"operator": "stateStoreSave", "put": 8, "removed": 1, "memory_bytes": 40, "rows": None},
    ]
    assert Run(1.0, (), spark_state(reports)).state_rows == 14
    assert Run(1.0, (), spark_state(reports)[1:]).state_rows is None


@pytest.mark.parametrize(("theirs", "kept"), [(100.0, True), (120.0, False)])
def test_rounds_are_compared_in_pairs_and_judged_by_the_median(theirs, kept):
    runs = {
        "sterna": [Run(rate, (1.0,), [{"rows": 5}]) for rate in (500.0, 900.0, 50.0)],
        "spark": [Run(rate, (5.0,), [], "4") for rate in (theirs, 10.0, 50.0)],
    }
    line = told("q8", FULL.load("q8"), runs)
    assert line["ratio"] == round(500 / theirs, 2)
    assert line["at_least_5_times"] is kept
    assert (line["sterna_state_rows"], line["spark_state_rows"]) == (5, None)
    assert (line["spark_join_format"], line["windows_ended"]) == ("4", 1)
    goals = telling.goals({"queries": [line]})
    assert goals == {"q8_ratio": line["ratio"], "q8_at_least_5": kept}
    assert "at_least_5_times" not in told("q7", FULL.load("q7"), runs)


def test_a_turn_that_fails_costs_only_its_round(monkeypatch, tmp_path):
    mine, theirs, looked, failures = iter([500.0, 600.0, 700.0]), iter([None, 100.0, 100.0]), [], []

    def on_sterna(*_, look):
        looked.append(look)
        return Run(next(mine), (1.0,), [{"rows": 5}] if look else [])

    def on_spark(*_):
        rate = next(theirs)
        if rate is None:
            raise OSError("it broke")
        return Run(rate, (5.0,), [])

    monkeypatch.setattr(queries, "on_sterna", on_sterna)
    monkeypatch.setattr(queries, "on_spark", on_spark)
    monkeypatch.setattr(queries, "join_formats", lambda *_: ())

    def comparison():
        return queries._Comparison(
            SimpleNamespace(version="4.3.0"),
            tmp_path,
            "q8",
            FULL.load("q8"),
            None,
            lambda _: None,
            lambda *failure: failures.append(failure),
        )

    line = comparison().line(3)
    assert line["ratios"] == [6.0, 7.0]
    assert line["sterna_state_rows"] == 5
    assert looked == [True, True, False]
    ((what, error),) = failures
    assert (what, str(error)) == ("queries, q8: 300,000 rows an epoch, round 1, spark", "it broke")
    mine, theirs = iter([500.0]), iter([None])
    with pytest.raises(RuntimeError, match="no round"):
        comparison().line(1)


def test_a_query_is_measured_with_other_sizes_of_its_epochs_too(monkeypatch, tmp_path):
    """One that fails costs only itself, and one that Spark wins is told of."""
    monkeypatch.setattr(queries, "join_formats", lambda *_: ())
    monkeypatch.setattr(Load, "files", lambda *_: MagicMock())
    monkeypatch.setitem(LOADS, "q3", replace(LOADS["q3"], each=1_000, also=(500, 200, 100)))
    failures = []

    def on_sterna(*arguments, look):
        load = arguments[4]
        if load.rows == 200:
            raise OSError("it broke")
        return Run(float(load.rows), (1.0,), [])

    monkeypatch.setattr(queries, "on_sterna", on_sterna)
    monkeypatch.setattr(queries, "on_spark", lambda *_: Run(150.0, (1.0,), []))
    (line,) = queries.compare(
        MagicMock(),
        tmp_path,
        ["q3"],
        FULL,
        1,
        lambda _: None,
        lambda what, error: failures.append(f"{what}: {error}"),
    )
    assert (line["rows_per_epoch"], line["ratio"]) == (1_000, 6.67)
    assert [(one["rows_per_epoch"], one["ratio"]) for one in line["other_sizes"]] == [
        (500, 3.33),
        (100, 0.67),
    ]
    assert failures[0] == "queries, q3: 200 rows an epoch, round 1, sterna: it broke"
    assert telling.goals({"queries": [line]}) == {"q3_ratio": 6.67, "q3_at_least_5": True}
    assert better.peer_better({"queries": [line]}) == [
        "q3, 100 rows an epoch: Spark's own version takes 150 rows a second, Sterna 100"
    ]


def test_other_sizes_are_only_of_what_is_measured_whole():
    assert FULL.load("q3").also == LOADS["q3"].also != ()
    assert QUICK.load("q3").also == ()


@pytest.mark.parametrize("name", [pytest.param("q4", marks=pytest.mark.slow), "q8"])
def test_spark_answers_the_same_in_every_format_of_a_join(spark, tmp_path, name):
    formats = join_formats(name, spark.version)
    load = replace(Size(each=2_000, epochs=3, warm=1).load(name), in_flight=100, span=30_000.0)
    files = load.files(tmp_path, 1).written()
    answers = {}
    for one in formats:
        settings = {**SPARK_STATE, "spark.sql.shuffle.partitions": "2", JOIN_FORMAT: one}
        with set_for_a_while(spark, settings):
            writer = native(spark, name, files, load).writeStream.format("memory").queryName(f"in_{one}")
            query = writer.option("checkpointLocation", str(tmp_path / one)).trigger(availableNow=True)
            assert query.start().awaitTermination(120)
        answers[one] = sorted(map(tuple, spark.table(f"in_{one}").collect()))
    assert name in JOINING
    assert len(answers[formats[0]]) > 0
    assert all(rows == answers[formats[0]] for rows in answers.values())


def _line(query, ratio):
    return {
        "query": query,
        "rows_per_epoch": 100,
        "ratio": ratio,
        "at_least_5_times": ratio >= 5,
        "sterna_rows_per_second": round(10 * ratio),
        "spark_rows_per_second": 10,
    }


def test_queries_that_are_measured_again_take_the_place_of_earlier_ones(tmp_path):
    file = tmp_path / "queries.json"
    file.write_text(
        json.dumps(
            {
                "queries": [_line("q3", 0.5), _line("nbq8", 4.0)],
                "machine": {"day": "2026-11-17", "commit": "abc", "cores": 2},
                "failures": ["queries, q8: it broke", "queries, q6: it broke"],
            }
        ),
        encoding="utf-8",
    )
    now = {"queries": [_line("q8", 9.0), _line("q3", 6.0)], "machine": {"commit": "def"}, "failures": []}
    found = joined(now, earlier(file))
    assert [(line["query"], line["ratio"]) for line in found["queries"]] == [
        ("q3", 6.0),
        ("q8", 9.0),
        ("nbq8", 4.0),
    ]
    assert [line.get("machine") for line in found["queries"]] == [
        None,
        None,
        {"day": "2026-11-17", "commit": "abc"},
    ]
    assert found["failures"] == ["queries, q6: it broke"]
    assert found["goals"]["q3_at_least_5"]
    assert not found["goals"]["nbq8_at_least_5"]
    assert found["peer_better"] == []
    assert found["machine"] == {"commit": "def"}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"queries": []}', '{"queries": [], "machine": {}}'])
def test_what_is_no_output_of_queries_is_refused(text, tmp_path):
    file = tmp_path / "other.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"other.json"):
        earlier(file)
