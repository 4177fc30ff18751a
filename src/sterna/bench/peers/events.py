"""NEXMark's events as parquet files, one file of each kind an epoch, which any system that reads files can be given.

All sides read the same files with Spark's own file source, so the source costs each the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import from_arrow_schema

from sterna.nexmark.generator import SCHEMAS, Shape
from sterna.nexmark.writing import write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Files:
    """Files of events: so many epochs of so many events.

    Attributes:
        folder: where they are.
        shape: what the events look like.
        epochs: how many files of each kind.
        each: events of an epoch.
    """

    folder: Path
    shape: Shape
    epochs: int
    each: int

    def written(self) -> Files:
        """Writes what is missing of them."""
        write(self.shape, self.folder, self.epochs * self.each, self.each)
        return self

    def frames(self, spark: SparkSession) -> dict[str, DataFrame]:
        """A streaming DataFrame for each kind, a file an epoch."""
        return {
            kind: spark.readStream.schema(from_arrow_schema(schema))
            .option("maxFilesPerTrigger", 1)
            .parquet(str(self.folder / kind))
            for kind, schema in SCHEMAS.items()
        }
