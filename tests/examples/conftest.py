"""Streams of texts for dataflows that are made with Spark, and run on the twin."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def frame(spark, tmp_path_factory):
    """A streaming DataFrame of (text, time) that nobody reads."""
    folder = str(tmp_path_factory.mktemp("texts"))
    return spark.readStream.schema("text string, time timestamp").parquet(folder)
