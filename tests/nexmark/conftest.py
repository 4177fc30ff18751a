"""The dataflows of the queries; they are made with Spark, and run on the twin."""

from __future__ import annotations

import pytest

from sterna import nexmark
from sterna.nexmark.queries import QUERIES


@pytest.fixture(scope="session")
def flows(spark):
    """The dataflow of each query over packed events."""
    nexmark.register(spark)
    frame = spark.readStream.format("nexmark").option("packed", "true").load()
    return {name: query(nexmark.streams(frame)).dataflow()[0] for name, query in QUERIES.items()}
