"""Spark's own versions give the same answers, so that comparing their speed means something."""

from __future__ import annotations

import os
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from nexmark import reference
from nexmark.events import shape_of, whole
from sterna.bench.systems import SPARK_STATE
from sterna.nexmark.generator import SCHEMAS
from sterna.nexmark.native import NATIVE, Frames

EVENTS = 6_000
LATER = 10 * 86_400_000_000


def files(folder, shape):
    """Three files of each kind, and one with an event long after.

    That one lets all windows close and matches nothing.
    """
    tables = whole(shape, EVENTS)
    for (kind, schema), table in zip(SCHEMAS.items(), tables, strict=True):
        (folder / kind).mkdir()
        for part in range(3):
            size = table.num_rows // 3 + 1
            pq.write_table(table.slice(part * size, size), folder / kind / f"{part}.parquet")
            os.utime(folder / kind / f"{part}.parquet", (part, part))  # Spark takes files in this order
        last = table.slice(table.num_rows - 1).to_pylist()[0]
        for name, value in last.items():
            if pa.types.is_timestamp(schema.field(name).type):
                last[name] = value + pa.scalar(LATER, pa.duration("us")).as_py()
            if name in ("id", "auction", "seller", "bidder"):
                last[name] = -1 if name != "seller" else -2
        pq.write_table(pa.Table.from_pylist([last], schema), folder / kind / "3.parquet")


def answer(spark, folder, query, longest):
    frames = [
        spark.readStream.schema(from_arrow_schema(schema))
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / kind))
        for kind, schema in SCHEMAS.items()
    ]
    started = (
        NATIVE[query](Frames(*frames, longest))
        .writeStream.format("memory")
        .queryName(f"native_{query}")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start()
    )
    try:
        started.processAllAvailable()
    finally:
        started.stop()
    rows = [tuple(row.values()) for row in spark.table(f"native_{query}").toArrow().to_pylist()]
    rows = [row for row in rows if row[0] != -1]
    return list({row[0]: row for row in rows}.values()) if query in reference.LAST_OF_KEY else rows


@pytest.fixture
def configured(spark):
    """The session, set up as Spark's guide recommends for large state, and as before afterwards."""
    settings = {**SPARK_STATE, "spark.sql.shuffle.partitions": "2"}
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


@pytest.mark.parametrize("query", NATIVE)
def test_spark_answers_the_same(query, configured, tmp_path):
    # Windows of half a day, and of four hours, have to end several times.
    shape = replace(shape_of(query), rate=0.053 if query in ("q8", "nbq8", "nbqx") else 50.0)
    files(tmp_path, shape)
    found = answer(configured, tmp_path, query, "2 hours")
    expected = reference.answer(query, *whole(shape, EVENTS))
    assert len(expected) > 1
    assert reference.comparable(found) == expected
