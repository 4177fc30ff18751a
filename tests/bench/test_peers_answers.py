"""What Sterna answers where it is compared with Spark: from files, in the columns that are read, to the end.

Spark's own versions are compared with the definitions in ``nexmark/test_native.py``.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import sterna
from nexmark import reference
from sterna.bench.peers.loads import Size
from sterna.nexmark.generator import generate
from sterna.nexmark.queries import QUERIES

SPANS = {"q8": 30_000.0, "nbq8": 30_000.0, "nbqx": 10_000.0}
"""Seconds of event time an epoch, so that windows end."""


@pytest.mark.parametrize("query", QUERIES)
def test_sterna_answers_from_files_what_the_definition_says(spark, tmp_path, query):
    load = Size(each=2_000, epochs=3, warm=1).load(query)
    load = replace(load, in_flight=100, span=SPANS.get(query, 100.0))
    files, sink = load.files(tmp_path / "files", 2).written(), sterna.sinks.memory()
    started = QUERIES[query](files.streams(spark)).start(
        sink=sink,
        checkpoint=str(tmp_path / "checkpoint"),
        workers=2,
        watermark_delay=0,
        trigger={"availableNow": True},
        at_end="flush",
    )
    assert started.await_termination(240)
    rows = [tuple(row.values()) for row in sink.table().to_pylist()]
    if query in reference.LAST_OF_KEY:
        rows = list({row[0]: row for row in rows}.values())
    events = generate(load.shape, 0, load.epochs * load.events)
    expected = reference.answer(query, *(pa.Table.from_batches([batch]) for batch in events.batches))
    assert reference.comparable(rows) == expected != []
