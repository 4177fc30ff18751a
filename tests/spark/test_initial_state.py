"""State that is there before the first epoch."""

from __future__ import annotations

import pytest

import sterna
from sterna.errors import InvalidInput


def counts(source):
    return sterna.read(source.stream()).key_by("key").aggregate(n=sterna.count(), most=sterna.max("value"))


@pytest.fixture
def source(feed):
    return feed("key string, value double").add(("a", 1.0), ("b", 9.0)).add(("a", 5.0))


def test_initial_state(source, start, spark):
    before = spark.createDataFrame(
        [(10, 3.0, "a"), (20, 4.0, "c"), (1, None, None)], "n long, most double, key string"
    )
    sink = sterna.sinks.memory()
    query = start(
        counts(source), sink=sink, initial_state={"aggregate": before}, trigger={"availableNow": True}
    )
    assert query.await_termination(100)
    assert [(row["n"], row["most"]) for row in sink.rows() if row["key"] == "a"] == [(11, 3.0), (12, 5.0)]
    state = {row["key"]: (row["n"], row["most"]) for row in query.state().collect()}
    assert state == {"a": (12, 5.0), "b": (1, 9.0), "c": (20, 4.0), None: (1, None)}


def test_it_counts_only_at_the_first_start(source, start, spark):
    before = spark.createDataFrame([("a", 10, 3.0)], "key string, n long, most double")
    for _ in range(2):
        query = start(counts(source), initial_state={"aggregate": before}, trigger={"availableNow": True})
        assert query.await_termination(100)
    assert {row["key"]: row["n"] for row in query.state().collect()} == {"a": 12, "b": 1}


def test_types_are_taken_as_the_state_has_them(source, start, spark):
    before = spark.createDataFrame([("a", 10, 3)], "key string, n int, most int")
    query = start(counts(source), initial_state={"aggregate": before}, trigger={"availableNow": True})
    assert query.await_termination(100)
    assert {row["key"]: row["n"] for row in query.state().collect()} == {"a": 12, "b": 1}


def test_state_of_the_per_record_operator(feed, start, spark):
    source = feed("key string").add("a", "b")
    stream = (
        sterna.read(source.stream())
        .key_by("key")
        .state_machine(
            lambda key, record, state: ({"n": state["n"] + 1 if state else 1, "tags": ["x"]}, []),
            state="n long, tags array<string>",
            output="key string",
        )
    )
    before = spark.createDataFrame(
        [("a", 4, ["y"]), ("z", 1, None)], "key string, n long, tags array<string>"
    )
    query = start(stream, initial_state={"state_machine": before}, trigger={"availableNow": True})
    assert query.await_termination(100)
    assert {row["key"]: row["n"] for row in query.state().collect()} == {"a": 5, "b": 1, "z": 1}


@pytest.mark.parametrize(
    ("rows", "schema", "words"),
    [
        ([("a", 1, 1.0), ("a", 2, 1.0)], "key string, n long, most double", r"key \('a',\) twice"),
        ([("a", 1)], "key string, n long", r"missing are \['most'\]"),
    ],
)
def test_wrong_initial_state_is_refused_and_the_checkpoint_stays_free(
    source, start, spark, rows, schema, words
):
    before = spark.createDataFrame(rows, schema)
    with pytest.raises(InvalidInput, match=words):
        start(counts(source), initial_state={"aggregate": before})
    query = start(counts(source), trigger={"availableNow": True})
    assert query.await_termination(100)
    assert {row["key"]: row["n"] for row in query.state().collect()} == {"a": 2, "b": 1}


def test_other_things_are_refused(source, start, spark):
    before = spark.createDataFrame([("a", 1, 1.0)], "key string, n long, most double")
    with pytest.raises(InvalidInput, match="no operator 'x'"):
        start(counts(source), initial_state={"x": before})
    with pytest.raises(InvalidInput, match="batch DataFrame"):
        start(
            counts(source),
            initial_state={"aggregate": source.stream().selectExpr("key", "1L AS n", "value AS most")},
        )
