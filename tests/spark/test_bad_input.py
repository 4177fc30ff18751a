"""What bad input gets on the real surface: an error that names the thing, and nothing lost."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sterna
from sterna.errors import CheckpointError, FoldError, InvalidInput


def counts(source):
    return sterna.read(source.stream()).key_by("key").aggregate(n=sterna.count())


@pytest.fixture
def source(feed):
    return feed("key string, value long, tags array<string>").add(("a", 1, []), ("b", 2, []))


def test_a_batch_is_not_a_stream(source):
    with pytest.raises(InvalidInput, match="streaming DataFrame"):
        sterna.read(source.batch())


def test_spark_connect_is_said_at_once():
    remote = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe", "isStreaming": True})
    with pytest.raises(InvalidInput, match="Spark Connect"):
        sterna.read(remote())


def test_columns_that_are_not_there(source):
    stream = sterna.read(source.stream())
    with pytest.raises(InvalidInput, match=r"no column 'word'; there are \['key', 'value', 'tags'\]"):
        stream.key_by("word")
    with pytest.raises(InvalidInput, match="no column 'when'"):
        stream.key_by("key", time="when")
    with pytest.raises(InvalidInput, match="no column 'price'"):
        stream.key_by("key").aggregate(top=sterna.max("price"))
    with pytest.raises(InvalidInput, match=r"'tags' of type .* can't be a key"):
        stream.key_by("tags")
    with pytest.raises(InvalidInput, match="'key' of type string can't be event time"):
        stream.key_by("value", time="key")
    with pytest.raises(InvalidInput, match="twice"):
        stream.key_by("key", "key")
    with pytest.raises(InvalidInput, match="at least one column"):
        stream.key_by()


def test_windows_that_can_not_be(source):
    stream = sterna.read(source.stream())
    with pytest.raises(InvalidInput, match=r"event time: key_by\(..., time=...\)"):
        stream.key_by("key").window("1 minute")
    keyed = stream.key_by("key", time="value")
    for length, slide in [("1 minute", "2 minutes"), ("1 minute", 0), (0, None)]:
        with pytest.raises(InvalidInput, match="can't slide by"):
            keyed.window(length, slide)
    with pytest.raises(InvalidInput, match="not a duration"):
        keyed.window("a while")
    with pytest.raises(InvalidInput, match="no column 'price'"):
        keyed.window("1 minute").aggregate(top=sterna.max("price"))
    with pytest.raises(InvalidInput, match="names no aggregate"):
        keyed.window("1 minute").aggregate()
    with pytest.raises(InvalidInput, match=r"\['window_end'\] name two columns"):
        keyed.window("1 minute").aggregate(window_end=sterna.count())


def test_two_columns_of_one_name(source, spark):
    with pytest.raises(InvalidInput, match="two columns called 'key'"):
        sterna.read(source.stream().selectExpr("key", "value AS key"))


def test_wrong_options(source, start):
    stream = counts(source)
    for options, words in [
        ({"bins": 100}, "power of two"),
        ({"bins": 2**21}, "2^20"),
        ({"workers": 0}, "between 1 and"),
        ({"workers": -3}, "-3"),
        ({"workers": 5, "bins": 4}, "bins=8 or more"),
        ({"at_end": "drop"}, "at_end"),
        ({"combine": "always"}, "combine"),
        ({"watermark_delay": "soon"}, "not a duration"),
        ({"late": sterna.sinks.memory()}, "timed input"),
    ]:
        with pytest.raises(InvalidInput) as raised:
            start(stream, **options)
        assert words in str(raised.value)


def test_a_stream_without_state_is_sparks_business(source, start):
    with pytest.raises(InvalidInput, match="no stateful operator"):
        start(sterna.read(source.stream()))


def test_wrong_schemas(source):
    keyed = sterna.read(source.stream()).key_by("key")
    with pytest.raises(InvalidInput, match="'total lon' is not a schema"):
        keyed.state_machine(lambda *_: None, state="total lon", output="n long")
    with pytest.raises(InvalidInput, match="needs output"):
        keyed.unary(lambda *_: None)
    with pytest.raises(InvalidInput, match="has an expiry but"):
        keyed.unary(lambda *_: None, tables={"past": sterna.rows("x long", keep="1 hour")}, output="n long")


def guarded(broken):
    def fold(key, record, state):
        if broken and record["value"] < 0:
            raise ValueError(f"negative: {record['value']}")
        return (state or 0) + abs(record["value"]), [(key, (state or 0) + abs(record["value"]))]

    return fold


def test_a_fold_that_raises_and_is_corrected(feed, start):
    source = (
        feed("key string, value long").add(("a", 1), ("b", 2)).add(("b", 3), ("bad key", -7)).add(("a", 4))
    )

    def stream(broken):
        return (
            sterna.read(source.stream())
            .key_by("key")
            .state_machine(guarded(broken), state="total long", output="key string, total long")
        )

    sink = sterna.sinks.memory()
    query = start(stream(broken=True), sink=sink, trigger={"availableNow": True})
    with pytest.raises(FoldError) as raised:
        query.await_termination(100)
    text = str(raised.value)
    assert "'bad key'" in text
    assert "bin" in text
    assert "epoch 1" in text
    assert "ValueError: negative: -7" in text
    assert "in fold\n    raise ValueError(f\"negative: {record['value']}\")" in text
    assert "org.apache" not in text
    assert query.status()["epoch"] == 0
    again = start(stream(broken=False), sink=sink, trigger={"availableNow": True})
    assert again.await_termination(100)
    assert [row["total"] for row in sink.rows() if row["key"] == "a"] == [1, 5]
    assert {row["key"]: row["total"] for row in again.state().collect()} == {"a": 5, "b": 5, "bad key": 7}


def test_an_arrow_fold_that_raises_names_the_key(feed, start):
    def fold(rows, tables, later):
        if pc.any(pc.less(rows["value"], 0)).as_py():
            raise ValueError("negative")
        return rows.select(["key"])

    source = feed("key string, value long").add(*[(f"k{i}", i - 13 if i == 7 else i) for i in range(20)])
    query = start(
        sterna.read(source.stream()).key_by("key").unary(fold, output="key string"),
        trigger={"availableNow": True},
    )
    with pytest.raises(FoldError, match="'k7'") as raised:
        query.await_termination(100)
    assert "ValueError: negative" in str(raised.value)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (lambda rows: rows.select(["key"]), r"missing \['value'\]"),
        (lambda rows: pa.table({"key": rows["key"], "value": rows["key"]}), "do not fit"),
    ],
)
def test_an_output_of_the_wrong_schema(feed, start, result, words):
    source = feed("key string, value long").add(("a", 1))
    stream = (
        sterna.read(source.stream())
        .key_by("key")
        .unary(lambda rows, tables, later: result(rows), output="key string, value long")
    )
    query = start(stream, trigger={"availableNow": True})
    with pytest.raises(FoldError, match=words):
        query.await_termination(100)


def test_a_state_of_the_wrong_schema(feed, start):
    source = feed("key string").add("a")
    keyed = sterna.read(source.stream()).key_by("key")
    stream = keyed.state_machine(lambda key, record, state: ("x", []), state="n long", output="key string")
    query = start(stream, trigger={"availableNow": True})
    with pytest.raises(FoldError, match="does not fit its schema"):
        query.await_termination(100)


def test_a_sum_that_leaves_its_type(feed, start):
    source = feed("key string, value long").add(("a", 2**63 - 1)).add(("a", 1))
    query = start(
        sterna.read(source.stream()).key_by("key").aggregate(total=sterna.sum("value")),
        trigger={"availableNow": True},
    )
    with pytest.raises(InvalidInput, match="sum of column 'value'"):
        query.await_termination(100)
    assert query.status()["epoch"] == 0


def test_a_checkpoint_of_another_dataflow(source, start):
    query = start(counts(source), trigger={"availableNow": True})
    assert query.await_termination(100)
    other = sterna.read(source.stream()).key_by("value").aggregate(n=sterna.count())
    with pytest.raises(CheckpointError, match=r"belongs to another dataflow.*'aggregate' keyed by"):
        start(other)
    again = start(counts(source), trigger={"availableNow": True})
    assert again.await_termination(100)


def test_two_queries_on_one_checkpoint(source, start):
    query = start(counts(source))
    query.process_all_available()
    with pytest.raises(CheckpointError, match="in use by another running query"):
        start(counts(source))
    source.add(("c", 1, []))
    query.process_all_available()
    assert {row["key"] for row in query.state().collect()} == {"a", "b", "c"}
    query.stop()
    again = start(counts(source), trigger={"availableNow": True})
    assert again.await_termination(100)
