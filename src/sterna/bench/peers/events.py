"""NEXMark's events as parquet files, the same number of each kind an epoch.

Any system that reads files can be given them. Each side reads the same files in the way that suits it best:
Spark with its own file source, as DataFrames, Sterna with ``read_parquet``, whose router reads the files that
Spark's file source has found. Only the kinds that a query reads are written, and streams have only the
columns that it reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

import sterna
from sterna.nexmark.generator import SCHEMAS
from sterna.nexmark.shape import Shape
from sterna.nexmark.streams import Streams
from sterna.nexmark.writing import write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Files:
    """Files of events: so many epochs, in which so many events happen.

    Attributes:
        folder: where they are.
        shape: what the events look like.
        epochs: how many there are.
        each: events that happen in an epoch, of all kinds.
        reads: which columns of which kinds are read; other kinds are not written.
        cores: files of a kind in an epoch, so that every core has one to read; fewer, if the events of an
            epoch can't be shared out evenly.
    """

    folder: Path
    shape: Shape
    epochs: int
    each: int
    reads: Mapping[str, Sequence[str]]
    cores: int = 1

    @property
    def parts(self) -> int:
        """Files of a kind in an epoch."""
        return next(parts for parts in range(self.cores, 0, -1) if self.each % parts == 0)

    def written(self) -> Files:
        """Writes what is missing of them; folders of the other kinds are there, and empty."""
        for kind in SCHEMAS:
            (self.folder / kind).mkdir(parents=True, exist_ok=True)
        write(
            self.shape, self.folder, self.epochs * self.each, self.each // self.parts, kinds=tuple(self.reads)
        )
        return self

    def frames(self, spark: SparkSession) -> dict[str, DataFrame]:
        """A streaming DataFrame for each kind, with the columns that are read.

        That of a kind that nobody reads is empty.
        """
        return {
            kind: spark.readStream.schema(from_arrow_schema(self._columns(kind, schema)))
            .option("maxFilesPerTrigger", self.parts)
            .parquet(str(self.folder / kind))
            for kind, schema in SCHEMAS.items()
        }

    def streams(self, spark: SparkSession) -> Streams:
        """Sterna's streams of the three kinds, with the columns that are read."""
        return Streams(
            *(
                sterna.read_parquet(spark, self.folder / kind, self._columns(kind, schema), self.parts)
                for kind, schema in SCHEMAS.items()
            )
        )

    def _columns(self, kind: str, schema: pa.Schema) -> pa.Schema:
        return pa.schema([schema.field(name) for name in self.reads.get(kind, schema.names)])
