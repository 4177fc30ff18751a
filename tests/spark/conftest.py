"""Streams made of files that a test writes, one file an epoch, and queries that end with the test."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sterna
from sterna.schemas import arrow_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession


class Feed:
    """A folder that Spark watches; each file in it is an epoch's rows."""

    def __init__(self, spark: SparkSession, path: Path, schema: str, format: str = "parquet") -> None:
        self._spark, self._path, self._format = spark, path, format
        self._ddl = schema
        self.schema = arrow_schema(schema, spark)
        self._count = itertools.count()
        self._began = time.time() - 1000
        path.mkdir()

    def add(self, *rows: tuple[Any, ...] | Any) -> Feed:
        """One more file with these rows: tuples, or single values where there is one column."""
        tuples = [row if isinstance(row, tuple) else (row,) for row in rows]
        columns = [
            pa.array([row[position] for row in tuples], item.type)
            for position, item in enumerate(self.schema)
        ]
        return self.add_table(pa.Table.from_arrays(columns, schema=self.schema))

    def add_table(self, table: pa.Table) -> Feed:
        """One more file with the rows of a table."""
        number = next(self._count)
        target = self._path / f"{number:06d}.{self._format}"
        hidden = self._path / f"_{number:06d}"
        if self._format == "json":
            hidden.write_text("".join(f"{line}\n" for line in _json_lines(table)))
        else:
            pq.write_table(table, hidden)
        # Spark takes files in the order of their modification times.
        os.utime(hidden, (self._began + number, self._began + number))
        hidden.rename(target)
        return self

    def stream(self, files: int = 1) -> DataFrame:
        """The streaming DataFrame, so many files an epoch."""
        reader = self._spark.readStream.schema(self._ddl).option("maxFilesPerTrigger", files)
        return reader.format(self._format).load(str(self._path))

    def batch(self) -> DataFrame:
        """All rows so far as a batch."""
        return self._spark.read.schema(self._ddl).format(self._format).load(str(self._path))


def _json_lines(table: pa.Table) -> list[str]:
    return [json.dumps(row, default=str) for row in table.to_pylist()]


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Callable[..., Feed]:
    """Makes feeds: ``feed("key long, value double")``."""
    count = itertools.count()

    def make(schema: str, format: str = "parquet") -> Feed:
        return Feed(spark, tmp_path / f"feed{next(count)}", schema, format)

    return make


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")


@pytest.fixture
def start(checkpoint: str) -> Iterator[Callable[..., sterna.Query]]:
    """Starts queries with few bins and workers; they are stopped at the end."""
    queries: list[sterna.Query] = []

    def begin(stream: sterna.Stream, **options: Any) -> sterna.Query:
        query = stream.start(**{"checkpoint": checkpoint, "bins": 16, "workers": 2, **options})
        queries.append(query)
        return query

    yield begin
    for query in queries:
        query.stop()


@pytest.fixture
def run(start: Callable[..., sterna.Query]) -> Callable[..., list[dict[str, Any]]]:
    """Runs a query over all that is there, and returns what reached its sink."""

    def through(stream: sterna.Stream, **options: Any) -> list[dict[str, Any]]:
        sink = options.pop("sink", None) or sterna.sinks.memory()
        query = start(stream, sink=sink, **{"trigger": {"availableNow": True}, **options})
        assert query.await_termination(100), "the query did not end"
        return sink.rows()

    return through


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What was seen of queries on a Spark of several processes: see ``cluster_program.py``."""
    program = Path(__file__).with_name("cluster_program.py")
    command = [sys.executable, str(program), str(tmp_path_factory.mktemp("cluster"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report
