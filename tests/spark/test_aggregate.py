"""Aggregates on Spark, against Spark's own groupBy over the same data."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import sterna
from sterna.remote import Remote


def numbers(seed: int, rows: int = 300) -> pa.Table:
    random = np.random.default_rng(seed)
    value = random.normal(size=rows).round(3)
    return pa.table(
        {
            "word": pa.array(random.choice(["ice", "tern", "sea", "", None], rows).tolist(), pa.string()),
            "shelf": pa.array(random.integers(0, 5, rows), pa.int32()),
            "amount": pa.array(random.integers(-100, 100, rows), pa.int64(), mask=random.random(rows) < 0.2),
            "value": pa.array(value, pa.float64(), mask=random.random(rows) < 0.2),
            "at": pa.array(np.arange(rows) + 1000 * seed, pa.int64()),
        }
    )


@pytest.fixture
def filled(feed):
    source = feed("word string, shelf int, amount long, value double, at long")
    for seed in range(3):
        source.add_table(numbers(seed))
    return source


def result(rows, *keys):
    return {tuple(row[key] for key in keys): row for row in rows}


def test_all_functions_equal_sparks(filled, run):
    stream = (
        sterna.read(filled.stream())
        .key_by("word", "shelf", time="at")
        .aggregate(
            n=sterna.count(),
            some=sterna.count("amount"),
            total=sterna.sum("amount"),
            least=sterna.min("value"),
            most=sterna.max("value"),
            average=sterna.mean("value"),
            first=sterna.first("amount"),
            last=sterna.last("amount"),
            top=sterna.largest(3, "amount"),
        )
    )
    ours = result(run(stream), "word", "shelf")
    theirs = result(
        [
            row.asDict()
            for row in filled.batch()
            .groupBy("word", "shelf")
            .agg(
                F.count("*").alias("n"),
                F.count("amount").alias("some"),
                F.sum("amount").alias("total"),
                F.min("value").alias("least"),
                F.max("value").alias("most"),
                F.avg("value").alias("average"),
                F.min_by("amount", "at").alias("first"),
                F.max_by("amount", "at").alias("last"),
                F.slice(F.reverse(F.array_sort(F.collect_list("amount"))), 1, 3).alias("top"),
            )
            .collect()
        ],
        "word",
        "shelf",
    )
    assert ours.keys() == theirs.keys()
    for key, row in theirs.items():
        assert math.isclose(ours[key].pop("average"), row.pop("average"), rel_tol=1e-12)
        assert ours[key] == row


@pytest.mark.parametrize("combine", ["none", "router", "native"])
def test_it_does_not_matter_who_combines(filled, start, combine):
    stream = (
        sterna.read(filled.stream(files=3))
        .key_by("word")
        .aggregate(
            n=sterna.count(), total=sterna.sum("amount"), most=sterna.max("value"), least=sterna.min("shelf")
        )
    )
    sink = sterna.sinks.memory()
    query = start(stream, sink=sink, combine=combine, trigger={"availableNow": True})
    assert query.await_termination(100)
    theirs = (
        filled.batch()
        .groupBy("word")
        .agg(
            F.count("*").alias("n"),
            F.sum("amount").alias("total"),
            F.max("value").alias("most"),
            F.min("shelf").alias("least"),
        )
    )
    assert result(sink.rows(), "word") == result([row.asDict() for row in theirs.collect()], "word")
    assert query.status()["rows"] == 900


def test_spark_combines_where_many_rows_have_few_keys(feed, start):
    source = feed("key long")
    for _ in range(3):
        source.add_table(pa.table({"key": np.arange(24_000) % 7}))
    sink = sterna.sinks.memory()
    stream = sterna.read(source.stream()).key_by("key").aggregate(n=sterna.count())
    query = start(stream, sink=sink, trigger={"availableNow": True})
    assert query.await_termination(100)
    assert query._combiner.choice().native
    assert sum(row["n"] for row in sink.epochs[2].to_pylist()) == 72_000


def test_nobody_combines_where_keys_do_not_repeat(feed, start):
    source = feed("key long").add_table(pa.table({"key": np.arange(24_000)})).add(1)
    query = start(
        sterna.read(source.stream()).key_by("key").aggregate(n=sterna.count()), trigger={"availableNow": True}
    )
    assert query.await_termination(100)
    assert query._combiner.choice() == type(query._combiner.choice())()


def test_output_is_the_keys_that_changed(feed, run):
    source = feed("key string").add("a", "b", "a").add("b").add("c")
    sink = sterna.sinks.memory()
    run(sterna.read(source.stream()).key_by("key").aggregate(n=sterna.count()), sink=sink)
    told = [sorted((row["key"], row["n"]) for row in sink.epochs[epoch].to_pylist()) for epoch in range(3)]
    assert told == [[("a", 2), ("b", 1)], [("b", 2)], [("c", 1)]]


def test_rows_that_are_combined_are_a_load_of_their_own(feed, start, checkpoint):
    """The first epoch is not combined: a thousand rows. After it each key is a row for each partition."""
    source = feed("key string")
    for _ in range(3):
        source.add(*["a", "b"] * 500)
    counted = sterna.read(source.stream()).key_by("key").aggregate(n=sterna.count())
    query = start(counted, checkpoint=checkpoint, trigger={"availableNow": True})
    assert query.await_termination(100)
    assert 0 < query.statistics().rows.sum() < 100
    outside = Remote(checkpoint)
    assert 0 < outside.statistics("aggregate", outside.last()).rows.sum() < 100
