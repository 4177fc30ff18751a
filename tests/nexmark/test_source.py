"""``spark.readStream.format("nexmark")`` on a real Spark."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import sterna
from nexmark import reference
from nexmark.events import USUAL, shape_of, whole
from sterna import nexmark
from sterna.errors import InvalidInput
from sterna.nexmark import Shape, generate
from sterna.nexmark.queries import QUERIES
from sterna.nexmark.source import AvailableNow, Nexmark, Options, Reader


def frame(spark, **options):
    nexmark.register(spark)
    reader = spark.readStream.format("nexmark")
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load()


def after(reader, event, offset=None):
    """The event that comes next after an epoch that begins at this one."""
    return reader.latestOffset(offset or {"event": event})["event"]


def test_rows_are_the_events(spark, tmp_path):
    events = frame(spark, rate=0, perEpoch=400, events=1_000, eventRate=1000, seed=3, partitions=3)
    rows = []
    query = (
        events.select("kind", "bid.*")
        .writeStream.foreachBatch(lambda df, epoch: rows.append((epoch, df.toArrow())))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    query.processAllAvailable()
    query.stop()
    sizes = [table.num_rows for _, table in rows if table.num_rows]
    assert sizes == [400, 400, 200]
    found = pa.concat_tables([table for _, table in rows])
    bids = found.filter(pa.compute.equal(found["kind"], "bid"))
    wanted = generate(Shape(rate=1000.0, seed=3), 0, 1_000).bids
    assert bids["price"].to_pylist() == wanted["price"].to_pylist()
    assert bids["dateTime"].cast(pa.int64()).to_pylist() == wanted["dateTime"].cast(pa.int64()).to_pylist()


def test_what_is_there_now_is_all_that_there_is(spark, tmp_path):
    """Spark 4.1 has no way for a source to be asked to end, and reads one epoch."""
    events = frame(spark, rate=0, perEpoch=400, events=1_000)
    answers = QUERIES["q2"](nexmark.streams(events))
    query = answers.start(checkpoint=str(tmp_path / "c"), workers=2, trigger={"availableNow": True})
    assert query.await_termination(100)
    known = AvailableNow.__module__.startswith("pyspark.")
    assert query.status()["rows"] == (1_000 if known else 400)


def test_a_trigger_that_ends_takes_what_was_due_when_it_began():
    reader = Reader(Options.parse({"rate": "1000", "begin": "0", "perEpoch": "10"}))
    reader.prepareForTriggerAvailableNow()
    assert after(reader, 0) == 10
    end = reader._end
    assert after(reader, end - 4) == end
    assert after(reader, end) == end
    endless = Reader(Options.parse({"rate": "0", "perEpoch": "10"}))
    endless.prepareForTriggerAvailableNow()
    assert after(endless, 7) == after(endless, 17) == 17


def test_all_events_are_there_now_unless_somebody_wants_them_when_they_are_due(tmp_path):
    reader = Reader(Options.parse({"events": "1000", "perEpoch": "600"}))
    reader.prepareForTriggerAvailableNow()
    assert [after(reader, 0), after(reader, 600), after(reader, 1_000)] == [600, 1_000, 1_000]
    until = tmp_path / "until"
    until.write_text("70")
    told = Reader(Options.parse({"until": str(until)}))
    told.prepareForTriggerAvailableNow()
    assert after(told, 0) == 70
    due = Reader(Options.parse({"events": "1000", "rate": "0.001"}))
    due.prepareForTriggerAvailableNow()
    assert after(due, 0) == 0


def test_all_events_are_read_by_a_trigger_that_ends(spark, tmp_path):
    rows = []
    query = (
        frame(spark, events=1_000)
        .writeStream.foreachBatch(lambda df, epoch: rows.append(df.count()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(100)
    assert sum(rows) == (1_000 if AvailableNow.__module__.startswith("pyspark.") else 0)


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        ({"rate": "1000"}, {"rate": "2000"}, r"eventRate 1000\.0, .*rate unless .* Set eventRate to 1000\.0"),
        ({}, {"seed": "7"}, "Set seed to 0"),
        ({}, {"base": "7"}, f"Set base to {Shape.base}"),
        ({"dilation": "60"}, {}, "Set dilation to 60"),
        ({"inFlight": "50"}, {}, "Set inFlight to 50"),
        ({}, {"disorder": "5"}, "Set disorder to 1"),
        ({}, {"packed": "true"}, "Set packed to false"),
        ({}, {"kinds": "bid"}, "Set kinds to person,auction,bid"),
    ],
)
def test_a_stream_does_not_go_on_among_other_events(before, now, says):
    old = Reader(Options.parse({"begin": "0", "events": "100", **before})).latestOffset({"event": 0})
    stream = Reader(Options.parse({"begin": "0", "events": "200", **now}))
    with pytest.raises(InvalidInput, match=says):
        stream.latestOffset(old)
    with pytest.raises(InvalidInput, match=says):
        stream.partitions({"event": 0}, old)


def test_what_decides_only_when_events_come_can_be_another():
    before = {"rate": "1000", "begin": "0", "events": "100"}
    now = {
        "rate": "2000",
        "eventRate": "1000",
        "events": "200",
        "begin": "5",
        "partitions": "7",
        "perEpoch": "50",
        "kinds": "bid, person, auction",
    }
    old = Reader(Options.parse(before)).latestOffset({"event": 0})
    assert after(Reader(Options.parse(now)), 100, old) == 150


def test_offsets_that_do_not_say_what_the_events_are_can_be_gone_on_with():
    reader = Reader(Options.parse({"rate": "0", "perEpoch": "50", "events": "100", "seed": "3"}))
    assert after(reader, 50) == 100
    assert reader.latestOffset({"event": 100}) == {"event": 100}  # or Spark would take it for news
    assert [part.stop for part in reader.partitions({"event": 50}, reader.latestOffset({"event": 50}))] == [
        75,
        100,
    ]


def test_a_query_is_not_started_again_with_another_rate(spark, tmp_path):
    def run(**options):
        stream = nexmark.streams(frame(spark, perEpoch=500, begin=0, **options, packed="true"))
        query = QUERIES["q2"](stream).start(checkpoint=str(tmp_path / "c"), bins=16, workers=2)
        try:
            query.process_all_available(60)
        finally:
            query.stop()

    run(rate=1_000, events=500)
    with pytest.raises(Exception, match=r"Set eventRate to 1000\.0"):
        run(rate=2_000, events=1_000)
    run(rate=2_000, eventRate=1_000, events=1_000)


@pytest.mark.parametrize("packed", ["true", "false"])
def test_a_query_goes_on_where_it_was(spark, tmp_path, packed):
    sink = sterna.sinks.memory()

    def run(events):
        stream = nexmark.streams(
            frame(spark, rate=0, perEpoch=2_000, events=events, eventRate=1000, packed=packed)
        )
        query = QUERIES["q3"](stream).start(sink=sink, checkpoint=str(tmp_path / "c"), bins=16, workers=2)
        query.process_all_available(60)
        if events > 4_000:
            query.migrate(sterna.rescale(3)).wait(60)
        status = query.status()
        query.stop()
        return status

    # Of packed events only those are opened that somebody reads: persons and auctions.
    assert run(4_000)["rows"] == (4_000 if packed == "false" else 320)
    run(6_000)
    rows = [tuple(row.values()) for row in sink.table().to_pylist()]
    assert reference.comparable(rows) == reference.answer("q3", *whole(USUAL, 6_000))


@pytest.mark.parametrize("events", [4_000, pytest.param(60_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("query", QUERIES)
def test_queries_answer_the_same_on_spark_through_a_restart_and_a_move(spark, tmp_path, query, events):
    shape = replace(shape_of(query), extra=Shape.extra)
    long, sink = events > 4_000, sterna.sinks.memory()
    for until in (events // 2, events):
        options = {
            "rate": 0,
            "perEpoch": events // (10 if long else 4),
            "events": until,
            "eventRate": shape.rate,
        }
        if spark.version < "4.2":  # which does not tell a source where it was
            options["perEpoch"] = events
        ending = {"trigger": {"availableNow": True}, "at_end": "flush"} if until == events else {}
        started = QUERIES[query](nexmark.streams(frame(spark, **options, packed="true"))).start(
            sink=sink,
            checkpoint=str(tmp_path / "c"),
            bins=16,
            workers=2,
            watermark_delay=0,
            share_host_state=False,
            **ending,
        )
        target, strategy = sterna.rescale(3 if until < events else 2), sterna.matched()
        moving = started.migrate(target, strategy if long else sterna.all_at_once())
        if ending:
            assert started.await_termination(240)
        else:
            started.process_all_available(120)
        moved = moving.wait(60)
        assert moved["status"] == "done"
        started.stop()
    # What moved the second time was there since the first start.
    if query != "q7":  # of which a window or two are all the state: whether their bins move is chance
        assert bool(moved["bytes"]) == (query not in ("q1", "q2"))
    rows = [tuple(row.values()) for row in sink.table().to_pylist()]
    if query in reference.LAST_OF_KEY:
        rows = list({row[0]: row for row in rows}.values())
    assert reference.comparable(rows) == reference.answer(query, *whole(shape, events))


def test_events_are_due_as_the_rate_says(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("sterna.nexmark.source.time.time", lambda: now[0])
    reader = Reader(Options.parse({"rate": "1000", "begin": "90", "perEpoch": "4000"}))
    assert after(reader, 0) == 4_000
    assert after(reader, 8_000) == 10_000
    now[0] = 101.0
    assert after(reader, 10_000) == 11_000


def test_without_a_beginning_nothing_is_overdue(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("sterna.nexmark.source.time.time", lambda: now[0])
    reader = Reader(Options.parse({"rate": "1000"}))
    assert after(reader, 5_000) == 5_000
    now[0] = 100.5
    assert after(reader, 5_000) == 5_500


def test_a_file_can_say_that_the_stream_has_ended(tmp_path):
    until = tmp_path / "until"
    reader = Reader(Options.parse({"rate": "1000", "begin": "0", "until": str(until)}))
    assert after(reader, 0) > 10**9
    until.write_text("77")
    assert after(reader, 50) == 77
    assert after(reader, 77) == 77


def test_an_epoch_is_cut_into_partitions_that_are_all_of_it():
    reader = Reader(Options.parse({"partitions": "3"}))
    cuts = [(part.start, part.stop) for part in reader.partitions({"event": 10}, {"event": 21})]
    assert cuts == [(10, 13), (13, 17), (17, 21)]
    assert reader.partitions({"event": 10}, {"event": 10}) == []
    many = Reader(Options.parse({"partitions": "100000"}))
    assert [(part.start, part.stop) for part in many.partitions({"event": 7}, {"event": 9})] == [
        (7, 8),
        (8, 9),
    ]
    with pytest.raises(InvalidInput, match="would go back to 5"):
        reader.partitions({"event": 10}, {"event": 5})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"speed": "3"}, "no option 'speed'"),
        ({"rate": "fast"}, "must be a number"),
        ({"rate": "-1"}, "at least 0"),
        ({"rate": "0"}, "needs perEpoch"),
        ({"packed": "yes"}, "true or false"),
        ({"kinds": "bid,lot"}, "'lot'"),
        ({"partitions": "0"}, "at least 1"),
        ({"partitions": str(10**9)}, "at most 100,000"),
        ({"rate": "1_000"}, "must be a number"),
        ({"events": "10.7"}, "whole number"),
        ({"events": "+-5"}, "whole number"),
        ({"events": "²"}, "whole number"),
        ({"seed": str(2**63)}, "seed"),
        ({"rate": "inf"}, "and a number"),
        ({"dilation": "0"}, "dilation"),
        ({"inFlight": str(10**18)}, "option inFlight is"),
        ({"inFlight": str(10**400)}, "option inFlight is"),
        ({"rate": "1e-12"}, "option rate is"),
        ({"eventRate": "1e-9"}, "option eventRate is"),
        ({"base": str(2**63)}, "option base is"),
        ({"dilation": "1e300"}, "option dilation is"),
        ({"disorder": str(10**20)}, "option disorder is"),
        ({"events": str(10**17)}, "option events is"),
    ],
)
def test_options_that_can_not_be_are_refused(options, says):
    with pytest.raises(InvalidInput, match=says):
        Nexmark(options).schema()


def test_it_is_not_read_in_batches(spark):
    with pytest.raises(Exception, match=r"nexmark is a stream: spark\.readStream"):
        spark.read.format("nexmark").load().count()


def test_streams_need_the_source_as_it_is(spark):
    rates = spark.readStream.format("rate").load()
    with pytest.raises(InvalidInput, match="format\\('nexmark'\\)"):
        nexmark.streams(rates)
