"""The examples on a real Spark, over made-up texts, while the number of workers changes."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sterna
from examples.reference import changes
from sterna.examples.patterns import maximal_patterns
from sterna.examples.texts import Shape, generate, texts
from sterna.examples.words import words

SECOND = 1_000_000
SHAPE = Shape(rate=30.0, base=1_000 * SECOND, vocabulary=15, least=1, most=6)
TEXTS, EPOCHS = 400, 5
ALL = generate(SHAPE, np.arange(TEXTS))


@pytest.fixture
def numbers(spark, tmp_path):
    """The numbers of all texts, as many an epoch."""
    folder = tmp_path / "numbers"
    folder.mkdir()
    for epoch, some in enumerate(np.array_split(np.arange(TEXTS), EPOCHS)):
        pq.write_table(pa.table({"value": some}), folder / f"{epoch}.parquet")
        os.utime(folder / f"{epoch}.parquet", (epoch, epoch))  # Spark takes files in this order
    return spark.readStream.schema("value long").option("maxFilesPerTrigger", 1).parquet(str(folder))


def run(stream, tmp_path):
    """What comes out of a query that gets a third worker."""
    sink = sterna.sinks.memory()
    query = stream.start(
        sink=sink,
        checkpoint=str(tmp_path / "checkpoint"),
        bins=16,
        workers=2,
        watermark_delay=0,
        trigger={"availableNow": True},
        at_end="flush",
    )
    query.migrate(sterna.rescale(3), sterna.matched(), at=2)
    try:
        assert query.await_termination(100), "the query did not end"
        assert {one["workers"] for one in query.status()["operators"].values()} == {3}
    finally:
        query.stop()
    return sink.table()


def test_words(numbers, tmp_path):
    found = run(words(texts(numbers, SHAPE)), tmp_path)
    assert {row["word"]: row["n"] for row in found.to_pylist()} == Counter(
        word for text in ALL["text"].to_pylist() for word in text.split()
    )


def test_maximal_patterns(numbers, tmp_path):
    stream = texts(numbers, SHAPE)
    found = run(maximal_patterns(stream, window="6 seconds", slide="2 seconds", support=12), tmp_path)
    times = ALL["time"].cast(pa.int64()).to_pylist()
    transactions = [
        (frozenset(text.split()), t) for text, t in zip(ALL["text"].to_pylist(), times, strict=True)
    ]
    told = zip(
        found["pattern"].to_pylist(),
        found["time"].cast(pa.int64()).to_pylist(),
        found["maximal"].to_pylist(),
        strict=True,
    )
    expected = changes(transactions, 6 * SECOND, 2 * SECOND, support=12, longest=3)
    assert sorted(told) == expected
    assert len(expected) > 20
