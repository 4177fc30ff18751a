"""Keys of any plain type, null keys, strange numbers, strange names."""

from __future__ import annotations

import datetime as dt
import decimal
import math

import pytest
from pyspark.sql import functions as F

import sterna

NAN = float("nan")
UTC = dt.timezone.utc

KEYS = {
    "boolean": [True, False, None],
    "tinyint": [1, -128, None],
    "int": [1, -5, None],
    "long": [1, -(2**63), 2**63 - 1],
    "float": [1.5, -2.5, None],
    "double": [1.5, -1e300, float("inf")],
    "decimal(20,3)": [decimal.Decimal("1.500"), decimal.Decimal("-12345678901234567.125"), None],
    "string": ["", "tern", "лёд"],
    "binary": [b"", b"\x00\xff", None],
    "date": [dt.date(1969, 12, 31), dt.date(2026, 1, 2), None],
    "timestamp": [dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC), None],
    "timestamp_ntz": [dt.datetime(1969, 1, 2, 3, 4, 5, 678901), None],  # noqa: DTZ001 - without one on purpose
}


def test_every_plain_type_is_a_key_and_a_value(feed, start):
    columns = {f"c{number}": kind for number, kind in enumerate(KEYS)}
    schema = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    source = feed(schema)
    length = max(map(len, KEYS.values()))
    rows = [tuple(values[row % len(values)] for values in KEYS.values()) for row in range(length)]
    source.add(*rows).add(*rows, *rows)
    sink = sterna.sinks.memory()
    named = {f"max_{name}": sterna.max(name) for name in columns if columns[name] != "binary"}
    stream = sterna.read(source.stream()).key_by(*columns)
    stream = stream.aggregate(n=sterna.count(), **named)
    query = start(stream, sink=sink, trigger={"availableNow": True}, workers=3)
    assert query.await_termination(100)
    final = sink.epochs[1].to_pylist()
    assert {row["n"] for row in final} == {3}
    assert {tuple(row[name] for name in columns) for row in final} == set(rows)
    for row in final:
        assert all(row[f"max_{name}"] == row[name] for name in columns if columns[name] != "binary")
    theirs = {tuple(row) for row in query.state().select("n", *columns).collect()}
    assert theirs == {
        tuple(row)
        for row in source.batch()
        .groupBy(*columns)
        .agg(F.count("*").alias("n"))
        .select("n", *columns)
        .collect()
    }


def test_strange_numbers_are_one_key(feed, run):
    source = (
        feed("x double, y float").add((0.0, NAN), (-0.0, -NAN), (None, 0.0)).add((-0.0, NAN), (None, -0.0))
    )
    rows = run(sterna.read(source.stream()).key_by("x", "y").aggregate(n=sterna.count()))
    last = {(str(row["x"]), str(row["y"])): row["n"] for row in rows}
    assert last == {("0.0", "nan"): 3, ("None", "0.0"): 2}
    assert all(math.copysign(1, row["x"]) == 1 for row in rows if row["x"] is not None)


def test_null_is_a_key_as_in_sparks_group_by(feed, run):
    source = feed("key string").add(None, "a", None).add(None)
    rows = run(sterna.read(source.stream()).key_by("key").aggregate(n=sterna.count()))
    assert {row["key"]: row["n"] for row in rows} == {None: 3, "a": 1}


def test_null_keys_in_the_per_record_operator(feed, run):
    source = feed("key string, other double").add((None, NAN), (None, NAN)).add((None, NAN))
    stream = (
        sterna.read(source.stream())
        .key_by("key", "other")
        .state_machine(
            lambda key, record, state: ((state or 0) + 1, [(key[0], (state or 0) + 1)]),
            state="n long",
            output="key string, n long",
        )
    )
    assert [row["n"] for row in run(stream)] == [1, 2, 3]


@pytest.mark.parametrize("combine", ["router", "native"])
def test_names_with_dots_spaces_and_backticks(feed, run, spark, combine):
    source = feed("a long, b long").add((1, 10), (2, 20)).add((1, 5))
    odd = source.stream().toDF("the key.id", "v`al. ue")
    stream = sterna.read(odd).key_by("the key.id").aggregate(**{"the total.": sterna.sum("v`al. ue")})
    rows = run(stream, combine=combine)
    assert {row["the key.id"]: row["the total."] for row in rows} == {1: 15, 2: 20}


def test_names_that_sterna_uses_itself(feed, start):
    source = feed("a long, b long").add((1, 10), (2, 20)).add((1, 5))
    frame = source.stream().toDF("_hash", "_source")
    sink = sterna.sinks.memory()
    query = start(
        sterna.read(frame).key_by("_hash").aggregate(_gone=sterna.sum("_source"), slot=sterna.count()),
        sink=sink,
        trigger={"availableNow": True},
    )
    assert query.await_termination(100)
    assert {row["_hash"]: (row["_gone"], row["slot"]) for row in sink.rows()} == {1: (15, 2), 2: (20, 1)}
    assert {(row["_hash"], row["_gone"], row["slot"]) for row in query.state().collect()} == {
        (1, 15, 2),
        (2, 20, 1),
    }


def test_timestamps_in_another_time_zone(feed, start, spark):
    moment = dt.datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    source = (
        feed("key timestamp, value timestamp")
        .add((moment, moment))
        .add((moment, moment + dt.timedelta(hours=1)))
    )
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        sink = sterna.sinks.memory()
        query = start(
            sterna.read(source.stream()).key_by("key").aggregate(last=sterna.max("value"), n=sterna.count()),
            sink=sink,
            trigger={"availableNow": True},
        )
        assert query.await_termination(100)
        assert sink.epochs[1].to_pylist() == [{"key": moment, "last": moment + dt.timedelta(hours=1), "n": 2}]
        (row,) = (
            query.state()
            .select(F.unix_micros("key").alias("key"), F.unix_micros("last").alias("last"))
            .collect()
        )
        assert (row["key"], row["last"]) == (moment.timestamp() * 1e6, (moment.timestamp() + 3600) * 1e6)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
