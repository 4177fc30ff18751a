"""All triggers of Spark's micro-batch mode; and what Sterna leaves alone."""

from __future__ import annotations

import pytest

import sterna
from sterna.engine.coordinator import Coordinator
from sterna.engine.placement import Placer
from sterna.errors import StateError
from sterna.lifetime import Lifetime
from sterna.sources.tick import Ticker


def counts(source):
    return sterna.read(source.stream(files=2)).key_by("key").aggregate(n=sterna.count())


@pytest.fixture
def source(feed):
    return feed("key string").add("a").add("b").add("a")


def state(query):
    return {row["key"]: row["n"] for row in query.state().collect()}


@pytest.mark.parametrize(
    ("trigger", "epochs"), [({"availableNow": True}, 2), ({"once": True}, 1)], ids=["availableNow", "once"]
)
def test_triggers_that_end(source, start, trigger, epochs):
    query = start(counts(source), trigger=trigger)
    assert query.await_termination(100)
    assert query.status()["epoch"] == epochs - 1
    assert not query.is_active
    assert state(query)["a"] == 2


@pytest.mark.parametrize(
    "trigger", [None, {"processingTime": "100 milliseconds"}], ids=["default", "processingTime"]
)
def test_triggers_that_go_on(source, start, trigger):
    query = start(counts(source), trigger=trigger)
    query.wait_for_epoch(1)
    source.add("z")
    query.wait_for_epoch(2)
    assert query.is_active
    assert state(query) == {"a": 2, "b": 1, "z": 1}


def test_a_query_that_has_started_has_its_sources(source, start):
    """Their logs are written as the session says when they are made, and it says so only while it starts."""
    query = start(counts(source))
    assert not query.streaming_query.status["message"].startswith("Initializing")


def test_a_move_under_available_now(source, start):
    query = start(counts(source), trigger={"availableNow": True})
    query.migrate(sterna.rescale(3), at=4)
    assert query.await_termination(100)
    assert query.status()["epoch"] == 4
    assert query.status()["operators"]["aggregate"]["workers"] == 3


@pytest.mark.parametrize("where", ["look", "tick", "launch"])
def test_what_fails_between_two_runs_under_available_now_fails_the_query(source, start, monkeypatch, where):
    def gone(*_):
        raise StateError("the store is gone")

    launch = Lifetime._launch
    with monkeypatch.context() as broken:
        broken.setattr(Coordinator, "wants_epoch", gone if where == "look" else lambda _: True)
        if where == "tick":
            broken.setattr(Ticker, "tick", gone)
        if where == "launch":
            broken.setattr(
                Lifetime, "_launch", lambda self: launch(self) if self.streaming_query is None else gone()
            )
        query = start(counts(source), trigger={"availableNow": True})
        with pytest.raises(StateError, match="the store is gone"):
            query.await_termination(60)
    assert not query.is_active
    assert isinstance(query.exception(), StateError)
    assert start(counts(source), trigger={"availableNow": True}).await_termination(100)


def test_what_can_not_be_given_back_keeps_nothing_else(source, start, monkeypatch):
    def stuck(_):
        raise StateError("stuck")

    query = start(counts(source), trigger={"availableNow": True})
    assert query.await_termination(100)
    query = start(counts(source))
    query.wait_for_epoch(1)
    with monkeypatch.context() as broken:
        broken.setattr(Placer, "close", stuck)
        with pytest.raises(StateError, match="stuck"):
            query.release()
    assert not query.is_active
    assert query._coordinator.incarnation._lock is None


def test_a_wrong_trigger_leaves_the_checkpoint_free(source, start):
    with pytest.raises(Exception, match="sometimes"):
        start(counts(source), trigger={"processingTime": "sometimes"})
    query = start(counts(source), trigger={"availableNow": True})
    assert query.await_termination(100)


def test_json_files_and_sparks_rate_source(feed, spark, start, tmp_path):
    source = feed("key string", "json").add("a", "b").add("a")
    rate = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", 10)
        .load()
        .selectExpr("CAST(value % 3 AS STRING) AS key")
    )
    both = source.stream().union(rate)
    query = start(sterna.read(both).key_by("key").aggregate(n=sterna.count()))
    query.wait_for_epoch(2)
    query.stop()
    found = state(query)
    assert (found["a"], found["b"]) == (2, 1)
    assert sum(found[key] for key in "012") == 10 * (query.status()["epoch"] + 1)


def test_the_users_session_stays_as_it_is(source, start, spark):
    before = dict(spark.conf.getAll)
    views = spark.catalog.listTables()
    initial = spark.createDataFrame([("a", 1)], "key string, n long")
    query = start(counts(source), initial_state={"aggregate": initial}, trigger={"availableNow": True})
    query.migrate(sterna.rescale(5), at=1)
    assert query.await_termination(100)
    query.state().collect()
    assert dict(spark.conf.getAll) == before
    assert spark.catalog.listTables() == views
    assert query.streaming_query.runId
