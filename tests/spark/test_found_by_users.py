"""What people ran into.

Keys of another type in the initial state, other functions on an old checkpoint, an output directory of
another query, odd names.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import sterna
from sterna.errors import CheckpointError, InvalidInput, SinkError, SternaError


def sums(source, function=sterna.sum):
    return sterna.read(source.stream()).key_by("k").aggregate(n=function("v"))


def test_initial_state_with_keys_of_a_smaller_type_is_found(spark, feed, run):
    source = feed("k long, v long").add((1, 5), (2, 7)).add((1, 3))
    initial = spark.createDataFrame([(1, 100)], "k int, n long")
    rows = run(sums(source), initial_state={"aggregate": initial})
    assert [row["n"] for row in rows if row["k"] == 1] == [105, 108]


@pytest.mark.parametrize("columns", ["k string, n long", "k long, n double", "k double, n long"])
def test_initial_state_of_another_type_is_refused(spark, feed, start, columns):
    source = feed("k long, v long").add((1, 5))
    initial = spark.createDataFrame([], columns)
    with pytest.raises(InvalidInput, match=r"column '.' is .* and must be bigint; cast it"):
        start(sums(source), initial_state={"aggregate": initial})


@pytest.mark.parametrize("other", [sterna.max, sterna.last, sterna.count])
def test_another_function_on_the_same_checkpoint_is_another_dataflow(feed, run, other):
    source = feed("k long, v long").add((1, 5))
    run(sums(source))
    with pytest.raises(CheckpointError, match="another dataflow"):
        run(sums(source, other))


def test_an_output_directory_belongs_to_one_query(feed, start, tmp_path):
    source = feed("k long, v long").add((1, 5))
    out = str(tmp_path / "out")
    now = {"availableNow": True}
    start(sums(source), sink=sterna.sinks.parquet(out), trigger=now).await_termination(60)
    with pytest.raises(SinkError, match="belongs to another query"):
        start(sums(source), sink=sterna.sinks.parquet(out), checkpoint=str(tmp_path / "other"))
    again = start(sums(source), sink=sterna.sinks.parquet(out), trigger=now)
    assert again.await_termination(60)


def test_a_checkpoint_that_was_deleted_begins_anew(feed, run, checkpoint):
    source = feed("k long, v long").add((1, 5))
    for _ in range(4):
        assert run(sums(source)) == [{"k": 1, "n": 5}]
        shutil.rmtree(checkpoint)


def test_an_epoch_that_was_prepared_for_another_sink(feed, start, checkpoint):
    source = feed("k long, v long").add((1, 5))
    now = {"availableNow": True}
    start(sums(source), sink=sterna.sinks.noop(), trigger=now).await_termination(60)
    os.unlink(f"{checkpoint}/epochs/{1:012d}.committed.json")
    source.add((1, 1))
    query = start(sums(source), sink=sterna.sinks.memory(), trigger=now)
    with pytest.raises(CheckpointError, match="prepared for another kind of sink"):
        query.await_termination(60)


def test_names_that_the_engine_uses_itself(feed, run):
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
    source = feed("_origin long, _at long, at timestamp, v long").add((1, 2, moment, 5))

    def keep(rows, tables, later):
        if rows.num_rows:
            later.notify_at(rows["at"], rows)
        due = later.due
        return pa.table({"_origin": due["_origin"], "_at": due["_at"], "v": due["v"]})

    keyed = sterna.read(source.stream()).key_by("_origin", time="at")
    first = keyed.unary(keep, {}, "_origin long, _at long, v long")
    counted = first.key_by("_origin", "_at").aggregate(n=sterna.sum("v"))
    assert run(counted, watermark_delay=0, at_end="flush") == [{"_origin": 1, "_at": 2, "n": 5}]


def test_what_ended_moves_nothing(feed, start):
    query = start(sums(feed("k long, v long").add((1, 5))), trigger={"availableNow": True})
    query.await_termination(60)
    with pytest.raises(SternaError, match="has ended"):
        query.migrate(sterna.rescale(3))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"checkpoint": ""}, "checkpoint must be"),
        ({"retain": 0}, "retain must be"),
        ({"trigger": "1 second"}, "trigger must be a dict"),
        ({"initial_state": 3}, "initial_state must be a dict"),
    ],
)
def test_options_that_are_wrong_are_named(feed, start, wrong, words):
    with pytest.raises(InvalidInput, match=words):
        start(sums(feed("k long, v long")), **wrong)


def test_a_strategy_as_text(feed, start):
    query = start(sums(feed("k long, v long").add((1, 5))))
    with pytest.raises(InvalidInput, match=r"write sterna\.fluid"):
        query.migrate(sterna.rescale(3), "fluid")


def test_a_column_is_no_aggregate(spark, feed):
    keyed = sterna.read(feed("k long, v long").stream()).key_by("k")
    with pytest.raises(InvalidInput):
        keyed.aggregate(n=F.sum("v"))
    with pytest.raises(InvalidInput, match="names of columns"):
        sterna.read(feed("k long, v long").stream()).key_by(F.col("k"))
