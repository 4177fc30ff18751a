"""``map``, ``where`` and ``unpack``: rows that the router makes, hashes and sends."""

from __future__ import annotations

import datetime as dt
import os
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import sterna
from sterna.errors import FoldError, InvalidInput

SCHEMA = pa.schema([("key", pa.string()), ("n", pa.int64())])


def packed(*rows):
    """Rows (key, n) as bytes."""
    columns = [pa.array([row[i] for row in rows], item.type) for i, item in enumerate(SCHEMA)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA).serialize().to_pybytes()


def counted(rows):
    return sorted((row["key"], row["n"]) for row in rows)


def test_packed_rows_are_rows(feed, run, start):
    source = feed("data binary").add(packed(("a", 1), ("b", 2)), packed(("a", 3))).add(None)
    stream = sterna.unpack(source.stream(2), "data", SCHEMA).key_by("key").aggregate(n=sterna.sum("n"))
    assert counted(run(stream)) == [("a", 4), ("b", 2)]


@pytest.fixture
def files(tmp_path):
    """Adds a parquet file to a folder, in the order of calls."""
    folder = tmp_path / "some files%20"
    folder.mkdir()

    def add(**columns):
        number = len(list(folder.iterdir()))
        hidden = folder / f".{number}"
        pq.write_table(pa.table(columns), hidden)
        os.utime(hidden, (1.7e9 + number, 1.7e9 + number))
        hidden.rename(folder / f"{number}.parquet")
        return folder

    return add


def test_parquet_files_are_rows(spark, files, start):
    files(other=pa.array([0, 0]), n=pa.array([1, 2], pa.int32()), key=["a", "b"])
    files(key=["a"], n=[4])
    folder = files(n=pa.array([], pa.int64()), key=pa.array([], pa.string()))
    sink = sterna.sinks.memory()
    stream = sterna.read_parquet(spark, folder, "key string, n long", files=1).where(key=["a"])
    options = {"sink": sink, "trigger": {"availableNow": True}}
    query = start(stream.key_by("key").aggregate(n=sterna.sum("n")), **options)
    assert query.await_termination(100)
    assert [(row["key"], row["n"]) for row in sink.rows()] == [("a", 1), ("a", 5)]
    assert query.status()["rows"] == 3
    assert query.status()["epoch"] >= 2


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("key string, m long", r"0\.parquet has no column 'm'; there are \['key', 'n'\]"),
        ("key string, n timestamp", r"0\.parquet does not hold what was asked for"),
    ],
)
def test_a_file_with_other_columns_is_named(spark, files, start, schema, words):
    folder = files(key=["a"], n=["x"])
    stream = sterna.read_parquet(spark, folder, schema).key_by("key").aggregate(n=sterna.count())
    with pytest.raises(InvalidInput, match=words):
        start(stream).await_termination(60)


def test_a_file_that_is_none_is_named(spark, tmp_path, start):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "bad.parquet").write_bytes(b"not parquet")
    stream = sterna.read_parquet(spark, tmp_path / "files", "key string").key_by("key")
    with pytest.raises(InvalidInput, match=r"bad\.parquet can't be read as a parquet file"):
        start(stream.aggregate(n=sterna.count())).await_termination(60)
    with pytest.raises(InvalidInput, match="files"):
        sterna.read_parquet(spark, tmp_path / "files", "key string", files=0)


def test_a_function_filters_and_adds_columns(feed, run):
    source = feed("key string, n long").add(("a", 1), ("b", 2), ("a", 5))

    def doubled(rows):
        return rows.filter(pc.greater(rows["n"], 1)).append_column(
            "twice", pc.multiply(rows.filter(pc.greater(rows["n"], 1))["n"], 2)
        )

    stream = sterna.read(source.stream()).map(doubled).key_by("key").aggregate(n=sterna.sum("twice"))
    assert counted(run(stream)) == [("a", 10), ("b", 4)]


def test_mapped_rows_and_plain_ones_of_one_source_are_read_once(feed, run):
    source = feed("key string, n long").add(("a", 1), ("b", 2)).stream()
    low = sterna.read(source).map(lambda rows: rows.filter(pc.less(rows["n"], 2))).key_by("key")
    joined = sterna.read(source).key_by("key").join(low, left={"whole": "n"}, right={"low": "n"})
    assert run(joined) == [{"key": "a", "whole": 1, "low": 1}]


def rows_of_all_kinds(feed):
    source = feed("key string, n long, d decimal(9,2), day date, raw binary, `a.b` int, flag boolean")
    day = dt.date(2020, 2, 29)
    return source.add(
        ("a", 1, Decimal("1.50"), day, b"x", 7, True),
        ("b", 2, Decimal("1.50"), day, b"x", 7, True),
        ("a", 4, Decimal("2.50"), day, b"x", 7, True),
        ("a", 8, Decimal("1.50"), dt.date(2021, 3, 1), b"x", 7, True),
        ("a", 16, Decimal("1.50"), day, b"y", 7, True),
        ("a", 32, Decimal("1.50"), day, b"x", 8, True),
        ("a", 64, Decimal("1.50"), day, b"x", 7, False),
        (None, 128, None, None, None, None, None),
        ("c", 256, Decimal("1.50"), day, b"x", 7, True),
    )


@pytest.mark.parametrize("made", ["by Spark", "in the router"])
def test_rows_are_chosen_by_the_values_of_columns(feed, run, made, tmp_path):
    read = sterna.read(rows_of_all_kinds(feed).stream())
    read = read if made == "by Spark" else read.map(lambda rows: rows)
    chosen = read.where(key=["a", "c"], d=Decimal("1.5"), day=dt.date(2020, 2, 29), raw=b"x", flag=True)
    chosen = chosen.where(**{"a.b": (7, 9)})
    # Where rows are Spark's, Spark leaves the others out: there is nothing for the router to do.
    assert (chosen.origin.recipe is None) == (made == "by Spark")
    assert counted(run(chosen.key_by("key").aggregate(n=sterna.sum("n")))) == [("a", 1), ("c", 256)]
    none = read.where(n=[]).key_by("key").aggregate(n=sterna.count())
    assert counted(run(none, checkpoint=str(tmp_path / "none"))) == []


def test_values_that_no_row_can_have_are_refused_where_they_are_written(feed):
    read = sterna.read(feed("key string, n long, x double, at timestamp, b array<long>").stream())
    for values, why in [
        ({}, "at least one column"),
        ({"m": 1}, "no column 'm'"),
        ({"n": "one"}, "where\\(n='one'\\): column 'n' is of type int64"),
        ({"n": [1, None]}, "a null equals nothing"),
        ({"n": 2**70}, "of type int64"),
        ({"key": 5}, "of type string"),
        ({"x": 1.5}, "can't choose by column 'x' of type double"),
        ({"at": "2020-01-01"}, "can't choose by column 'at'"),
        ({"b": [[1]]}, "can't choose by column 'b'"),
    ]:
        with pytest.raises(InvalidInput, match=why):
            read.where(**values)
    counted = read.key_by("key").aggregate(n=sterna.count())
    with pytest.raises(InvalidInput, match="after transform, let its function do it"):
        counted.transform(lambda df: df).where(n=1)


def test_what_leaves_an_operator_is_chosen_there(feed, run):
    read = sterna.read(feed("key string, n long").add(("a", 1), ("b", 2), ("a", 3), ("c", 4)).stream())
    counted = read.key_by("key").aggregate(n=sterna.count(), total=sterna.sum("n"))
    once = counted.where(n=1).map(lambda rows: rows.select(["total"]))
    assert once.schema.names == ["total"]
    assert sorted(row["total"] for row in run(once)) == [2, 4]
    with pytest.raises(InvalidInput, match="no column 'm'"):
        counted.where(m=1)


def test_the_hash_is_that_of_spark(feed, run):
    """So rows that the router hashes meet those that Spark hashes, whatever the type of the key."""
    source = feed("k double, d decimal(20,3), t timestamp, s string")
    rows = [
        (x, Decimal("1.500") * i, dt.datetime(2020, 1, 1 + i, tzinfo=dt.timezone.utc), f"ä{i}")
        for i, x in enumerate([0.0, -0.0, float("nan"), 1.5])
    ]
    frame = source.add(*rows).stream()
    keys = ("k", "d", "t", "s")
    plain = sterna.read(frame).transform(lambda df: df.withColumn("one", df["s"])).key_by(*keys)
    mapped = sterna.read(frame).map(lambda table: table.append_column("two", table["s"])).key_by(*keys)
    assert sorted(row["one"] for row in run(plain.join(mapped, left=["one"], right=["two"]))) == [
        "ä0",
        "ä1",
        "ä2",
        "ä3",
    ]


def test_a_function_that_raises_is_named(feed, start):
    source = feed("key string, n long").add(("a", 0))

    def inverse(rows):
        if rows.num_rows:
            raise ZeroDivisionError("of course")
        return rows

    query = start(sterna.read(source.stream()).map(inverse).key_by("key").aggregate(n=sterna.count()))
    with pytest.raises(FoldError, match=r"'inverse'.*ZeroDivisionError"):
        query.await_termination(60)


def test_bytes_of_something_else_are_named(feed, start):
    source = feed("data binary").add(b"not arrow")
    query = start(sterna.unpack(source.stream(), "data", SCHEMA).key_by("key").aggregate(n=sterna.count()))
    with pytest.raises(InvalidInput, match="'data' does not hold record batches"):
        query.await_termination(60)


def test_what_can_not_be_is_refused_where_it_is_written(feed):
    source = feed("key string, data binary").stream()
    read = sterna.read(source)
    unpacked = sterna.unpack(source, "data", SCHEMA)
    with pytest.raises(InvalidInput, match="no column 'datum'"):
        sterna.unpack(source, "datum", SCHEMA)
    with pytest.raises(InvalidInput, match="only binary columns"):
        sterna.unpack(source, "key", SCHEMA)
    with pytest.raises(InvalidInput, match="use map"):
        unpacked.transform(lambda df: df)
    with pytest.raises(InvalidInput, match="must return a pyarrow Table"):
        read.map(lambda rows: rows.num_rows)
    with pytest.raises(InvalidInput, match="takes a function"):
        read.map("upper")


def test_joins_and_unions_that_can_not_be_are_refused(feed):
    left = sterna.read(feed("key string, n long, at timestamp").stream())
    right = sterna.read(feed("key string, n long, at timestamp").stream())
    with pytest.raises(InvalidInput, match="no column 'm'"):
        left.key_by("key").join(right.key_by("key"), left=["m"], right=["n"])
    with pytest.raises(InvalidInput, match="two output columns would be called 'n'"):
        left.key_by("key").join(right.key_by("key"), left=["n"], right=["n"])
    with pytest.raises(InvalidInput, match="one stream has an event time"):
        left.key_by("key", time="at").join(right.key_by("key"), left=["n"], right={"m": "n"})
    with pytest.raises(InvalidInput, match="differ in type"):
        left.key_by("key").join(right.key_by("n"), left=["n"], right={"m": "at"})
    with pytest.raises(InvalidInput, match="same columns and keys"):
        left.key_by("key").union(right.key_by("n"))
