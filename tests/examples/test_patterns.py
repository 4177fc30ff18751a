"""The maximal frequent patterns are those of the definition.

That holds left alone, while state moves in every way, and through crashes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sterna
from examples.reference import changes, on_time
from examples.running import STRATEGIES, Run
from sterna.errors import InvalidInput
from sterna.examples.patterns import maximal_patterns
from sterna.examples.texts import Shape, generate
from sterna.testing import POINTS, crashing

SECOND = 1_000_000
SHAPE = Shape(rate=20.0, base=0, vocabulary=12, least=1, most=7, drift=60)
WINDOWS = {"window": "6 seconds", "slide": "2 seconds", "support": 9, "longest": 3}
EPOCHS, TEXTS = 14, 40


def table(transactions):
    """Rows of (words, time in microseconds)."""
    return pa.table(
        {
            "text": pa.array([" ".join(words) for words, _ in transactions], pa.string()),
            "time": pa.array([time for _, time in transactions], pa.int64()).cast(pa.timestamp("us", "UTC")),
        }
    )


def told(run):
    """What came out, sorted."""
    found = run.sink.table()
    columns = (found["pattern"], found["time"].cast(pa.int64()), found["maximal"])
    return sorted(zip(*(column.to_pylist() for column in columns), strict=True))


def transactions(texts):
    """The transactions of a table."""
    times = texts["time"].cast(pa.int64()).to_pylist()
    return [(frozenset(t.split()), time) for t, time in zip(texts["text"].to_pylist(), times, strict=True)]


def epoch(number):
    """Its two partitions; out of order within the epoch."""
    numbers = np.arange(number * TEXTS, (number + 1) * TEXTS)
    return [generate(SHAPE, numbers[1::2]), generate(SHAPE, numbers[0::2][::-1])]


def expected():
    return changes(
        transactions(generate(SHAPE, np.arange(EPOCHS * TEXTS))), 6 * SECOND, 2 * SECOND, support=9, longest=3
    )


@pytest.fixture(scope="session")
def flow(frame):
    return maximal_patterns(frame, **WINDOWS).dataflow()[0]


def test_a_pattern_is_maximal_while_nothing_above_it_is_frequent(frame, tmp_path):
    stream = maximal_patterns(frame, window=4, slide=2, support=2)
    run = Run(stream.dataflow()[0], tmp_path)
    run.epoch(table([("ab", 0), ("ba", 1 * SECOND), ("a", 2 * SECOND), ("a", 3 * SECOND)]))
    assert told(run.end()) == [
        ("a", 6 * SECOND, True),
        ("a", 8 * SECOND, False),
        ("a b", 2 * SECOND, True),
        ("a b", 6 * SECOND, False),
    ]


def test_the_example_has_something_to_tell():
    """Patterns of every length come and go."""
    lengths = [len(pattern.split()) for pattern, _, now in expected() if now]
    assert min(lengths.count(length) for length in (1, 2, 3)) > 10


WORDS = st.lists(st.sampled_from("abcde"), max_size=6)
EPOCH = st.lists(st.tuples(WORDS, st.integers(0, 8)), max_size=8)
MOVES = st.dictionaries(
    st.integers(0, 5), st.tuples(st.integers(1, 6), st.sampled_from(list(STRATEGIES))), max_size=3
)


@given(
    epochs=st.lists(EPOCH, min_size=1, max_size=6),
    pace=st.sampled_from([0, 2, 5, 30]),
    length=st.sampled_from([(4, 2), (3, 3), (6, 1)]),
    support=st.integers(1, 3),
    longest=st.integers(1, 4),
    delay=st.sampled_from([0, 3, 20]),
    moves=MOVES,
    crashes=st.dictionaries(st.integers(0, 5), st.sampled_from(POINTS), max_size=2),
)
@settings(max_examples=40)
def test_what_comes_out_follows_from_the_definition(
    epochs, pace, length, support, longest, delay, moves, crashes, frame, tmp_path_factory
):
    window, slide = length
    stream = maximal_patterns(frame, window=window, slide=slide, support=support, longest=longest)
    run = Run(stream.dataflow()[0], tmp_path_factory.mktemp("patterns"), watermark_delay=delay * SECOND)
    timed = [
        [(frozenset(words), (pace * number + second) * SECOND) for words, second in rows]
        for number, rows in enumerate(epochs)
    ]
    for number, rows in enumerate(timed):
        if number in moves:
            workers, strategy = moves[number]
            run.twin.migrate(sterna.rescale(workers), STRATEGIES[strategy], if_busy="queue")
        half = len(rows) // 2
        with crashing(crashes.get(number, POINTS[0]), epoch=number if number in crashes else -1):
            run.epoch(table(rows[:half]), table(rows[half:]))
    run.twin.flush()
    assert run.twin.state("frequent", "counts").num_rows == 0
    assert run.twin.state("maximal", "standing").num_rows == 0
    found = told(run.end())
    assert found == changes(on_time(timed, delay * SECOND), window * SECOND, slide * SECOND, support, longest)


def test_moving_state_in_every_way_changes_nothing(flow, tmp_path):
    still = Run(flow, tmp_path / "still", workers=1, bins=1, seed=None)
    run = Run(flow, tmp_path / "moved")
    wanted = dict(enumerate(zip((7, 3, 6, 2, 5), STRATEGIES.values(), strict=True), start=1))
    names = []
    for number in range(EPOCHS):
        if number in wanted:
            workers, strategy = wanted[number]
            names.append(run.twin.migrate(sterna.rescale(workers), strategy, if_busy="queue"))
        run.epoch(*epoch(number))
        still.epoch(*epoch(number))
    assert run.epochs() == still.epochs()
    assert [run.twin.handle(name).wait()["status"] for name in names] == ["done"] * len(STRATEGIES)
    assert told(run.end()) == told(still.end()) == expected()


@pytest.mark.parametrize("operator", ["frequent", "maximal"])
def test_one_operator_may_move_without_the_other(flow, tmp_path, operator):
    run = Run(flow, tmp_path)
    for number in range(EPOCHS):
        if number == 4:
            run.twin.migrate(sterna.rescale(2), sterna.fluid(), operator=operator)
        run.epoch(*epoch(number))
    assert told(run.end()) == expected()


def test_crashes_change_nothing(flow, tmp_path):
    run = Run(flow, tmp_path)
    struck = []
    for number in range(EPOCHS):
        if number == 3:
            run.twin.migrate(sterna.rescale(6), sterna.matched())
        with crashing(POINTS[number % len(POINTS)]) as hits:
            run.epoch(*epoch(number))
        struck += hits
    assert {one.split("@")[0] for one in struck} == set(POINTS) - {"during-publish"}
    assert told(run.end()) == expected()


def test_what_waits_is_one_count_for_each_pattern_and_pane(flow, tmp_path):
    """However many epochs and partitions a pane came in."""
    run = Run(flow, tmp_path)
    for number in range(EPOCHS):
        run.epoch(*epoch(number))
    run.epoch()
    waiting = run.twin.state("frequent", "later").to_pylist()
    counts = {row["pattern"]: row["n"] for row in run.twin.state("frequent", "counts").to_pylist()}
    run.end()
    leaving = [(row["pattern"], row["__sterna_at__"]) for row in waiting if row["n"] < 0]
    assert len(leaving) == len(set(leaving)) > 0
    assert counts == {
        pattern: -sum(row["n"] for row in waiting if row["n"] < 0 and row["pattern"] == pattern)
        for pattern in {pattern for pattern, _ in leaving}
    }


def test_items_may_come_in_arrays(spark, tmp_path):
    (tmp_path / "baskets").mkdir()
    baskets = spark.readStream.schema("goods array<string>, when long").parquet(str(tmp_path / "baskets"))
    stream = maximal_patterns(baskets, window=2, slide=2, support=2, items="goods", time="when")
    run = Run(stream.dataflow()[0], tmp_path)
    goods = pa.array([["Tea", "ice cream"], ["ice cream", "Tea"], ["tea"], None], pa.list_(pa.string()))
    run.epoch(pa.table({"goods": goods, "when": [0, 1, 1, 1]}))
    assert told(run.end()) == [("Tea ice_cream", 2 * SECOND, True), ("Tea ice_cream", 4 * SECOND, False)]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"window": "5 seconds"}, "a window is one or more slides"),
        ({"slide": 0}, "a window is one or more slides"),
        ({"slide": "12 seconds"}, "a window is one or more slides"),
        ({"support": 0}, "support must be a whole number from 1 on"),
        ({"longest": 1.5}, "longest must be a whole number from 1 on"),
        ({"items": "words"}, "no column 'words' of texts"),
        ({"items": "time"}, "'time' is of type timestamp"),
        ({"time": "text"}, "'text' of type string can't be event time"),
        ({"time": "when"}, "no column 'when'"),
        ({"time": "n"}, "can't be called 'n'"),
    ],
)
def test_what_can_not_be_is_refused(frame, wrong, message):
    with pytest.raises(InvalidInput, match=message):
        maximal_patterns(frame, **{**WINDOWS, **wrong})
