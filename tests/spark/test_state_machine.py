"""The per-record operator on Spark."""

from __future__ import annotations

from collections import Counter

import sterna


def running(key, record, state):
    """Adds up; a zero drops the key."""
    if record["amount"] == 0:
        return None, [(key, state or 0, "closed")]
    total = (state or 0) + record["amount"]
    return total, [(key, total, "open")]


def test_totals_and_dropped_state(feed, start):
    source = feed("key string, amount long")
    source.add(("a", 1), ("b", 10), ("a", 2)).add(("a", 0), ("b", 5)).add(("a", 7))
    sink = sterna.sinks.memory()
    stream = (
        sterna.read(source.stream())
        .key_by("key")
        .state_machine(running, state="total long", output="key string, total long, what string")
    )
    query = start(stream, sink=sink, trigger={"availableNow": True})
    assert query.await_termination(100)
    rows = [(row["key"], row["total"], row["what"]) for row in sink.rows()]
    assert [row for row in rows if row[0] == "a"] == [
        ("a", 1, "open"),
        ("a", 3, "open"),
        ("a", 3, "closed"),
        ("a", 7, "open"),
    ]
    assert [row for row in rows if row[0] == "b"] == [("b", 10, "open"), ("b", 15, "open")]
    assert {row["key"]: row["total"] for row in query.state().collect()} == {"a": 7, "b": 15}
    assert [row["key"] for row in query.state(epoch=1).collect()] == ["b"]


def test_a_dropped_key_is_not_in_the_state(feed, start):
    source = feed("key string, amount long").add(("a", 1), ("b", 1)).add(("a", 0))
    stream = (
        sterna.read(source.stream())
        .key_by("key")
        .state_machine(running, state="total long", output="key string, total long, what string")
    )
    query = start(stream, trigger={"availableNow": True})
    assert query.await_termination(100)
    assert [row["key"] for row in query.state().collect()] == ["b"]


def nested(key, record, state):
    state = state or {"words": [], "last": None, "seen": {}}
    seen = dict(state["seen"])
    seen[record["word"]] = seen.get(record["word"], 0) + 1
    words = [*state["words"], record["word"]]
    last = {"word": record["word"], "length": len(words)}
    return {"words": words, "last": last, "seen": seen}, [
        {"key": key, "words": words, "last": last, "seen": seen}
    ]


def test_nested_types_come_back_as_they_were_put_in(feed, start):
    source = feed("key int, word string").add((1, "ice"), (1, "sea"), (2, "tern")).add((1, "ice"))
    kinds = "words array<string>, last struct<word: string, length: int>, seen map<string, int>"
    sink = sterna.sinks.memory()
    stream = (
        sterna.read(source.stream())
        .key_by("key")
        .state_machine(nested, state=kinds, output=f"key int, {kinds}")
    )
    query = start(stream, sink=sink, trigger={"availableNow": True})
    assert query.await_termination(100)
    (final,) = [row for row in query.state().collect() if row["key"] == 1]
    assert final["words"] == ["ice", "sea", "ice"]
    assert final["last"].asDict() == {"word": "ice", "length": 3}
    assert final["seen"] == {"ice": 2, "sea": 1}


def bag(key, record, state):
    state = state if state is not None else Counter()
    state[record["word"]] += 1
    return state, [(key, state.most_common(1)[0][0])]


def test_pickled_objects_where_asked_for(feed, run):
    source = feed("key int, word string").add((1, "ice"), (1, "sea")).add((1, "sea"), (2, "tern"))
    stream = (
        sterna.read(source.stream())
        .key_by("key")
        .state_machine(bag, state=sterna.pickled(), output="key int, most string")
    )
    assert {row["key"]: row["most"] for row in run(stream)} == {1: "sea", 2: "tern"}


def test_records_come_in_the_order_of_their_times(feed, run):
    source = feed("key int, at long").add((1, 30), (1, 10), (1, 20)).add((1, 5))
    stream = (
        sterna.read(source.stream())
        .key_by("key", time="at")
        .state_machine(
            lambda key, record, state: ((state or 0) + 1, [(record["at"],)]), state="n long", output="at long"
        )
    )
    assert [row["at"] for row in run(stream)] == [10, 20, 30, 5]
