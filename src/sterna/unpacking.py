"""Streams whose rows come packed, as bytes or as files: the router makes rows of them, not Spark.

Spark hands on rows one by one, and that is most of what reading costs: bytes take a fraction of it, and the
path of a file next to nothing. What can't be raises ``InvalidInput``, here or, where only the bytes or the
file tell, in the epoch that reads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sterna.errors import InvalidInput, check_whole
from sterna.graph import Source
from sterna.schemas import arrow_schema
from sterna.sources.packed import Batches, ParquetFiles
from sterna.sources.recipe import Recipe
from sterna.stream import Stream, read

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

BINARY_FILE = "path string, modificationTime timestamp, length long, content binary"
"""What Spark's format of that name always has."""


def unpack(df: DataFrame, column: str, schema: Any) -> Stream:
    """Wraps a streaming DataFrame one of whose columns holds serialised record batches.

    The batches are made by ``pa.RecordBatch.serialize``, and the rows in them are the stream's. The router
    reads them in place. Streams that are unpacked from several columns of one DataFrame share its reading.
    """
    whole = read(df)
    if column not in whole.schema.names:
        raise InvalidInput(f"there is no column {column!r}; there are {whole.schema.names}")
    if not pa.types.is_binary(whole.schema.field(column).type):
        raise InvalidInput(
            f"column {column!r} is of type {whole.schema.field(column).type}: only binary columns hold "
            "record batches"
        )
    rows = arrow_schema(schema, df.sparkSession)
    return Stream(Source(df, Recipe((column,), rows, rows, Batches(column))), rows)


def read_parquet(spark: SparkSession, path: str | Path, schema: Any, files: int | None = None) -> Stream:
    """The rows of the parquet files that are in a folder and of those that will be.

    Spark's file source finds the files and keeps account of them, so that each is read once; the router opens
    them and reads the columns that are asked for. Routing tasks must be able to open the path as Spark names
    it, through ``pyarrow.fs``. A file should fit into memory some times, and there should be as many an epoch
    as there are cores. Where files are large, or are in folders by the values of columns, ``read`` Spark's
    own DataFrame.

    Args:
        spark: the session.
        path: the folder.
        schema: the columns that are read, as DDL or Arrow; a file may have others.
        files: at most so many an epoch; all that are there by default.
    """
    reader = spark.readStream.format("binaryFile").schema(BINARY_FILE).option("pathGlobFilter", "*.parquet")
    if files is not None:
        check_whole("files", files, 1)
        reader = reader.option("maxFilesPerTrigger", files)
    frame = reader.load(str(path)).select("path")
    rows = arrow_schema(schema, spark)
    return Stream(Source(frame, Recipe(("path",), rows, rows, ParquetFiles("path"))), rows)
