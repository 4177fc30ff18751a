"""Several operators, several sources, one job an epoch."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import sterna


def join(left, right, tables, later):
    """An inner join of all that came so far."""
    parts = []
    if left.num_rows:
        other = tables.right.get(left)
        parts.append(
            pa.table(
                {"key": other["key"], "name": left["name"].take(other["_position"]), "price": other["price"]}
            )
        )
        tables.left.append(left)
    if right.num_rows:
        other = tables.left.get(right)
        parts.append(
            pa.table(
                {"key": other["key"], "name": other["name"], "price": right["price"].take(other["_position"])}
            )
        )
        tables.right.append(right)
    return pa.concat_tables(parts)


def test_a_join_of_two_sources(feed, run):
    left = feed("key long, name string").add((1, "ice"), (2, "tern")).add((3, "sea"), (1, "snow"))
    right = feed("item long, price long").add((1, 10), (3, 30)).add((2, 20), (1, 11)).add((9, 90))

    # The fold addresses state by the left stream's names.
    def renamed(a, b, tables, later):
        return join(a, b.rename_columns(["key", "price"]), tables, later)

    stream = (
        sterna.read(left.stream())
        .key_by("key")
        .binary(
            sterna.read(right.stream()).key_by("item"),
            renamed,
            tables={"left": sterna.rows("name string"), "right": sterna.rows("price long")},
            output="key long, name string, price long",
        )
    )
    ours = sorted((row["key"], row["name"], row["price"]) for row in run(stream, share_host_state=False))
    theirs = left.batch().join(right.batch(), F.col("key") == F.col("item")).select("key", "name", "price")
    assert ours == sorted(map(tuple, theirs.collect()))


def counted(source):
    """Words, and how many words have each count."""
    words = sterna.read(source.stream()).key_by("word").aggregate(n=sterna.count()).named("words")
    return words, words.key_by("n").state_machine(
        lambda key, record, state: ((state or 0) + 1, [(key, (state or 0) + 1)]),
        state="m long",
        output="n long, m long",
    ).named("counts")


def test_a_chain_of_two_operators(feed, start):
    source = feed("word string").add("a", "b", "a").add("b", "c").add("c", "d")
    _, stream = counted(source)
    sink = sterna.sinks.memory()
    query = start(stream, sink=sink, trigger={"availableNow": True}, workers=3)
    assert query.await_termination(100)
    # After each epoch, each word that changed is told once more: (a,2) (b,1) | (b,2) (c,1) | (c,2) (d,1).
    told = {row["n"]: row["m"] for row in sink.rows()}
    assert told == {1: 3, 2: 3}
    assert {row["word"]: row["n"] for row in query.state("words").collect()} == {
        "a": 2,
        "b": 2,
        "c": 2,
        "d": 1,
    }
    assert {row["n"]: row["m"] for row in query.state("counts").collect()} == {1: 3, 2: 3}


def both(left, right, tables, later):
    rows = pa.concat_tables([left.select(["n"]), right.select(["n"])])
    rows = pa.table({"n": rows["n"], "one": pa.array([1] * rows.num_rows, pa.int64())})
    sums = rows.group_by("n", use_threads=False).aggregate([("one", "sum")])
    known = tables.total.get(sums)
    total = pc.add(sums["one_sum"], pc.fill_null(known["total"], 0))
    out = pa.table({"n": sums["n"], "total": total})
    tables.total.put(out)
    return out


def test_a_diamond(feed, run):
    source = feed("word string, mark string").add(("a", "x"), ("b", "x")).add(("a", "y"), ("c", "x"))
    stream = sterna.read(source.stream())
    words = stream.key_by("word").aggregate(n=sterna.count()).named("words")
    marks = stream.key_by("mark").aggregate(n=sterna.count()).named("marks")
    whole = words.key_by("n").binary(
        marks.key_by("n"), both, tables={"total": sterna.value("total long")}, output="n long, total long"
    )
    rows = run(whole)
    # Words: a1 b1 | a2 c1; marks: x2 | y1 x3.
    assert {row["n"]: row["total"] for row in rows} == {1: 4, 2: 2, 3: 1}


def test_one_operator_with_two_consumers(feed, run):
    source = feed("word string, mark string").add(("a", "x"), ("b", "x")).add(("a", "y"), ("c", "x"))
    words = sterna.read(source.stream()).key_by("word").aggregate(n=sterna.count()).named("words")
    once = words.key_by("n").aggregate(k=sterna.count()).named("once")
    whole = words.key_by("n").binary(
        once.key_by("n"),
        lambda left, right, tables, later: right.select(["n", "k"]) if right.num_rows else None,
        output="n long, k long",
    )
    assert {row["n"]: row["k"] for row in run(whole)} == {1: 3, 2: 1}


def test_transform_changes_a_source(feed, run):
    source = feed("line string").add("ice sea", "ice").add("tern sea")
    stream = sterna.read(source.stream()).transform(
        lambda df: df.select(F.explode(F.split("line", " ")).alias("word")).where("word != 'tern'")
    )
    rows = run(stream.key_by("word").aggregate(n=sterna.count()))
    assert {row["word"]: row["n"] for row in rows} == {"ice": 2, "sea": 2}


@pytest.mark.parametrize("operators", [1, 2])
def test_one_job_an_epoch_with_a_built_in_sink(feed, start, spark, tmp_path, operators):
    source = feed("word string").add("a", "b", "a").add("b", "c")
    stream = counted(source)[operators - 1]
    sink = sterna.sinks.parquet(str(tmp_path / "out"))
    query = start(stream, sink=sink)
    query.process_all_available()
    tracker = spark.sparkContext.statusTracker()
    group = str(query.streaming_query.runId)
    before = set(tracker.getJobIdsForGroup(group))
    source.add("x").add("y", "z")
    query.process_all_available()
    query.wait_for_epoch(3)
    assert len(set(tracker.getJobIdsForGroup(group)) - before) == 2


def test_transform_between_operators(feed, start):
    source = feed("word string").add("a", "b", "a").add("b", "c", "a").add("a")
    words = sterna.read(source.stream()).key_by("word").aggregate(n=sterna.count()).named("words")
    even = words.transform(lambda df: df.where("n % 2 = 0").select(F.upper("word").alias("word"), "n"))
    totals = even.key_by("word").aggregate(total=sterna.sum("n")).named("even")
    sink = sterna.sinks.memory()
    query = start(totals, sink=sink, trigger={"availableNow": True})
    query.migrate(sterna.rescale(3), at=1)
    assert query.await_termination(100)
    # a: 2, 3, 4; b: 1, 2; c: 1.
    assert {row["word"]: row["total"] for row in sink.rows()} == {"A": 6, "B": 2}
    assert {row["word"]: row["n"] for row in query.state("words").collect()} == {"a": 4, "b": 2, "c": 1}


def test_transform_before_the_sink(feed, start, spark, tmp_path):
    source = feed("word string").add("a", "b", "a").add("b", "c")
    counts = sterna.read(source.stream()).key_by("word").aggregate(n=sterna.count())
    shown = counts.transform(
        lambda df: df.select(F.concat_ws("=", "word", "n").alias("text")).where("text != 'b=1'")
    )
    out = str(tmp_path / "out")
    query = start(shown, sink=sterna.sinks.parquet(out), trigger={"availableNow": True})
    assert query.await_termination(100)
    assert sorted(row["text"] for row in spark.read.parquet(out).collect()) == ["a=2", "b=2", "c=1"]


def test_two_queries_at_once(feed, start, checkpoint):
    source = feed("word string")
    plain = sterna.read(source.stream()).key_by("word").aggregate(n=sterna.count())
    first = start(plain)
    second = start(counted(source)[1], checkpoint=f"{checkpoint}-2", share_host_state=False)
    for epoch in range(4):
        source.add("a", "b", *"cd"[: epoch % 3])
        for query in (first, second):
            query.process_all_available()
            query.migrate(sterna.rescale(1 + epoch % 3))
    expected = {"a": 4, "b": 4, "c": 2, "d": 1}
    assert {row["word"]: row["n"] for row in first.state().collect()} == expected
    assert {row["word"]: row["n"] for row in second.state("words").collect()} == expected
