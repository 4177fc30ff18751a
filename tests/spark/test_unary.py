"""Arrow folds with state tables on Spark."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

import sterna

SECOND = 1_000_000


def fresh_only(rows, tables, later):
    """Each key once: the first row of a key passes, with what came before it in the epoch."""
    known = tables.seen.get(rows)
    new = rows.filter(pc.invert(known["_found"]))
    tables.seen.put(new.append_column("n", pa.array([1] * new.num_rows, pa.int64())))
    return new.select(["key"])


def test_a_value_table(feed, run):
    source = feed("key string").add("a", "b").add("b", "c").add("a", "d")
    stream = (
        sterna.read(source.stream())
        .key_by("key")
        .unary(fresh_only, tables={"seen": sterna.value("n long")}, output="key string")
    )
    assert sorted(row["key"] for row in run(stream)) == ["a", "b", "c", "d"]


def recent(rows, tables, later):
    """For each row, how many rows of its key are still there, itself included."""
    tables.past.append(rows)
    held = tables.past.get(rows)
    counts = held.group_by("_position").aggregate([([], "count_all")]).sort_by("_position")
    return pa.table({"key": rows["key"], "at": rows["at"], "n": counts["count_all"]})


def test_rows_expire_behind_the_watermark(feed, start):
    source = feed("key string, at long")
    for at in (0, 4, 8, 12, 16):
        source.add(("a", at * SECOND))
    sink = sterna.sinks.memory()
    stream = (
        sterna.read(source.stream())
        .transform(lambda df: df.withColumn("x", df["at"]))
        .key_by("key", time="at")
        .unary(
            recent,
            tables={"past": sterna.rows("x long", keep="5 seconds")},
            output="key string, at long, n long",
        )
    )
    query = start(stream, sink=sink, watermark_delay=0, trigger={"availableNow": True})
    assert query.await_termination(100)
    # The watermark of an epoch is the newest time before it; rows older than that by more than 5 s are gone
    # in the next one.
    assert [row["n"] for row in sink.rows()] == [1, 2, 3, 4, 4]
    state = [row["x"] // SECOND for row in query.state(table="past").collect()]
    assert sorted(state) == [8, 12, 16]


def forget(rows, tables, later):
    gone = rows.filter(rows["gone"])
    tables.past.delete(gone)
    tables.past.append(rows.filter(pc.invert(rows["gone"])))
    held = tables.past.get(rows)
    return held.select(["key", "x"])


def test_deleted_rows_are_gone(feed, run):
    source = feed("key int, x long, gone boolean")
    source.add((1, 1, False), (2, 2, False)).add((1, 0, True)).add((1, 3, False), (2, 4, False))
    sink = sterna.sinks.memory()
    stream = (
        sterna.read(source.stream())
        .key_by("key")
        .unary(forget, tables={"past": sterna.rows("x long")}, output="key int, x long")
    )
    run(stream, sink=sink)
    assert sink.epochs[1].num_rows == 0
    assert sorted((row["key"], row["x"]) for row in sink.epochs[2].to_pylist()) == [(1, 3), (2, 2), (2, 4)]
