"""Words are counted right: left alone, while state moves in every way, and through crashes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import sterna
from examples.running import STRATEGIES, Run
from sterna.errors import InvalidInput
from sterna.examples.texts import Shape, generate
from sterna.examples.words import words
from sterna.testing import POINTS, crashing

SHAPE = Shape(vocabulary=200, least=1)
EPOCHS, TEXTS = 14, 60


def epoch(number):
    """Its two partitions."""
    first = number * TEXTS
    return [generate(SHAPE, np.arange(a, a + TEXTS // 2)) for a in (first, first + TEXTS // 2)]


def expected():
    texts = generate(SHAPE, np.arange(EPOCHS * TEXTS))["text"].to_pylist()
    return Counter(word for text in texts for word in text.split())


def told(run):
    """The last that was told of each word."""
    return {row["word"]: row["n"] for row in run.sink.rows()}


@pytest.fixture(scope="session")
def flow(frame):
    return words(frame).dataflow()[0]


@pytest.mark.parametrize("combine", [False, True])
def test_moving_state_in_every_way_changes_nothing(flow, tmp_path, combine):
    run = Run(flow, tmp_path, combine=combine)
    wanted = dict(enumerate(zip((7, 3, 6, 2, 5), STRATEGIES.values(), strict=True), start=1))
    names = []
    for number in range(EPOCHS):
        if number in wanted:
            workers, strategy = wanted[number]
            names.append(run.twin.migrate(sterna.rescale(workers), strategy, if_busy="queue"))
        run.epoch(*epoch(number))
    assert [run.twin.handle(name).wait()["status"] for name in names] == ["done"] * len(STRATEGIES)
    assert {row["word"]: row["n"] for row in run.twin.state("words").to_pylist()} == expected()
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


def test_columns_that_can_not_be_are_refused(frame):
    with pytest.raises(InvalidInput, match="no column 'tweet' of texts"):
        words(frame, text="tweet")
    with pytest.raises(InvalidInput, match="'time' is of type timestamp"):
        words(frame, text="time")
