"""Where outputs go, and that a failing or odd sink loses and doubles nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import sterna
from sterna.engine import crash
from sterna.errors import InvalidInput, SinkError


def counts(source):
    return sterna.read(source.stream()).key_by("key").aggregate(n=sterna.count())


@pytest.fixture
def source(feed):
    return feed("key string").add("a", "b", "a").add("b", "c").add("c", "d")


EXPECTED = {0: [("a", 2), ("b", 1)], 1: [("b", 2), ("c", 1)], 2: [("c", 2), ("d", 1)]}
ALL = sorted(row for rows in EXPECTED.values() for row in rows)


def visible(path):
    return sorted(
        p.name
        for p in Path(path).rglob("*")
        if p.is_file() and not p.relative_to(path).parts[0].startswith(("_", "."))
    )


def test_parquet(source, start, spark, tmp_path):
    out = str(tmp_path / "out")
    query = start(counts(source), sink=sterna.sinks.parquet(out), trigger={"availableNow": True})
    assert query.await_termination(100)
    assert sorted(map(tuple, spark.read.parquet(out).collect())) == ALL
    assert all(name.startswith("part-") and name.endswith(".parquet") for name in visible(out))
    # Besides, there is only a file that says whose directory it is.
    hidden = [p.name for p in Path(out).rglob("*") if p.is_file() and p.name not in visible(out)]
    assert hidden == ["query.json"]


@pytest.mark.parametrize("point", ["after-prepare", "during-publish"])
def test_parquet_is_idempotent(source, start, spark, tmp_path, point):
    out = str(tmp_path / "out")

    def strike(name, epoch):
        if (name, epoch) == (point, 1):
            raise RuntimeError("struck")

    crash.set_hook(strike)
    try:
        query = start(counts(source), sink=sterna.sinks.parquet(out), trigger={"availableNow": True})
        with pytest.raises(RuntimeError, match="struck"):
            query.await_termination(100)
    finally:
        crash.set_hook(None)
    again = start(counts(source), sink=sterna.sinks.parquet(out), trigger={"availableNow": True})
    assert again.await_termination(100)
    assert sorted(map(tuple, spark.read.parquet(out).collect())) == ALL


def test_console(source, start, capsys):
    query = start(
        counts(source), sink=sterna.sinks.console(rows=1), trigger={"availableNow": True}, workers=1
    )
    assert query.await_termination(100)
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == ["epoch 0: 2 rows", "  key | n"]
    assert printed[2] in ("  a | 2", "  b | 1")
    assert printed[3] == "  … 1 more"


def test_a_callable_that_evaluates_twice(source, start):
    seen = {}

    def sink(df, epoch):
        assert df.count() == len(EXPECTED[epoch])
        seen[epoch] = sorted(map(tuple, df.collect()))

    query = start(counts(source), sink=sink, trigger={"availableNow": True})
    assert query.await_termination(100)
    assert seen == EXPECTED


def test_a_callable_that_evaluates_partly(source, start):
    seen = {}

    def sink(df, epoch):
        seen[epoch] = tuple(df.limit(1).collect()[0])

    query = start(counts(source), sink=sink, trigger={"availableNow": True})
    assert query.await_termination(100)
    assert all(seen[epoch] in rows for epoch, rows in EXPECTED.items())
    assert {row["key"]: row["n"] for row in query.state().collect()} == {"a": 2, "b": 2, "c": 2, "d": 1}


def test_a_callable_that_never_evaluates(source, start):
    called = []
    query = start(counts(source), sink=lambda df, epoch: called.append(epoch), trigger={"availableNow": True})
    assert query.await_termination(100)
    assert called == [0, 1, 2]
    assert {row["key"]: row["n"] for row in query.state().collect()} == {"a": 2, "b": 2, "c": 2, "d": 1}


def test_a_callable_that_raises_gets_the_same_output_again(source, start):
    offered = []

    def sink(df, epoch):
        offered.append((epoch, sorted(map(tuple, df.collect()))))
        if len(offered) == 2:
            raise OSError("no room")

    query = start(counts(source), sink=sink, trigger={"availableNow": True})
    with pytest.raises(SinkError, match="no room") as raised:
        query.await_termination(100)
    assert "epoch 1" in str(raised.value)
    assert isinstance(query.exception(), SinkError)
    again = start(counts(source), sink=sink, trigger={"availableNow": True})
    assert again.await_termination(100)
    assert offered == [(0, EXPECTED[0]), (1, EXPECTED[1]), (1, EXPECTED[1]), (2, EXPECTED[2])]


def test_staged_files_do_not_stay(feed, start, checkpoint):
    source = feed("key string")
    for _ in range(6):
        source.add("a", "b")
    query = start(counts(source), sink=lambda df, epoch: None, trigger={"availableNow": True}, retain=2)
    assert query.await_termination(100)
    epochs = {int(p.name.split("-")[0][1:]) for p in (Path(checkpoint) / "staged").iterdir()}
    assert epochs == {4, 5}


def test_an_empty_epoch_reaches_a_callable(feed, start):
    source = feed("key string").add("a").add()
    seen = {}

    def sink(df, epoch):
        seen[epoch] = (df.count(), df.columns)

    query = start(counts(source), sink=sink, trigger={"availableNow": True})
    assert query.await_termination(100)
    assert seen == {0: (1, ["key", "n"]), 1: (0, ["key", "n"])}


def test_what_is_no_sink_is_refused(source, start):
    with pytest.raises(InvalidInput, match="neither"):
        start(counts(source), sink="out")
