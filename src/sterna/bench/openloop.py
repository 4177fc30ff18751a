"""The input of open-loop benchmarks: a feeder in its own process, and the records as a streaming DataFrame.

Contract. ``Feeder`` drops files of record ranges into a folder as a ``Schedule`` says, whatever the system
does; a run at another rate takes a new one, which goes on where the last one ended. ``records`` reads the
folder with Spark's own file source and makes records of the ranges with native expressions, so the input
costs every system the same and next to nothing.

Spread. Spark packs small files into partitions by ``spark.sql.files.openCostInBytes`` (4 MB), which these
files never reach: an epoch's files are dealt out evenly, to within one file, over ``defaultParallelism``
partitions, without a shuffle. So a file should hold a fraction of what an epoch takes. Files that an epoch
has read are deleted (``cleanSource``), because Spark lists the folder at every trigger: with 2,000 files left
in it, finding the new ones took 68 to 81 ms an epoch, and 35 to 40 ms where Spark deletes them (two runs,
each first once). An epoch of more than 32 files would have Spark start a job to list them
(``parallelPartitionDiscovery.threshold``): ``getBatch`` took 200 to 500 ms in place of 10, so one long epoch
made the next ones long too, whatever system ran. Streams made here raise that limit. Spark's file source
writes the names of all files it has ever read into its log again at every tenth epoch: after some minutes of
40 files a second that took 230 to 380 ms. Streams made here do not have it compact that log.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sterna.bench import feeder
from sterna.bench.child import Child
from sterna.bench.feeder import Schedule
from sterna.bench.source import Keyed

__all__ = ["Fed", "Feeder", "Input", "Records", "Schedule"]

SETTINGS = {
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.sql.streaming.fileSource.log.compactInterval": "1000000",
}


class Fed(Protocol):
    """Records that come as a schedule says, while this context lasts."""

    @property
    def stream(self) -> DataFrame:
        """The records."""

    @property
    def alive(self) -> bool:
        """Whether they still come."""

    def stop(self) -> int:
        """Lets no more come; returns the first that did not."""

    def __enter__(self) -> Any:
        """Begins."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends, if it has not ended."""


class Input(Protocol):
    """What the harness can feed a system with."""

    def fed(self, spark: SparkSession, folder: str, schedule: Schedule) -> Fed:
        """The records of a schedule; files, if there are any, go into the folder."""


class Feeder(Child):
    """The feeding process, from this side; stop it, or use it as a context."""

    stream: DataFrame
    """The records that it feeds, where somebody reads them."""

    def __init__(
        self, folder: str, schedule: Schedule, limit: float = 6 * 3600.0, line: int | None = None
    ) -> None:
        self.schedule = schedule
        os.makedirs(folder, exist_ok=True)
        options = {
            "rate": schedule.rate,
            "begin": schedule.begin,
            "first": schedule.first,
            "every": schedule.every,
            "limit": limit,
            "parent": os.getpid(),
            **({} if line is None else {"line": line}),
        }
        words = [text for name, value in options.items() for text in (f"--{name}", repr(value))]
        super().__init__(feeder.__file__, folder, *words)

    def stop(self) -> int:
        """Ends the process; returns the first record that it has not written."""
        said = self.end().strip()
        if said:
            return int(said)
        if self.process.returncode == -signal.SIGTERM:  # before it listened, and so before it wrote anything
            return self.schedule.first
        raise RuntimeError(f"the feeder ended with {self.process.returncode} and without a word")


@dataclass(frozen=True)
class Records:
    """What a record is: its key, and a text as long as wanted that follows from the key.

    Attributes:
        keys: which key each record number becomes.
        payload: length of the text; 0 for none.
    """

    keys: Keyed
    payload: int = 0

    def stream(self, spark: SparkSession, folder: str, files: int | None = None) -> DataFrame:
        """A streaming DataFrame of ``key`` and, if wanted, ``payload``.

        An epoch takes at most so many files, all by default.
        """
        os.makedirs(folder, exist_ok=True)
        for name, value in SETTINGS.items():
            spark.conf.set(name, value)
        reader = spark.readStream.schema("value string").option("cleanSource", "delete")
        if files is not None:
            reader = reader.option("maxFilesPerTrigger", files)
        return self.of(reader.text(folder))

    def fed(self, spark: SparkSession, folder: str, schedule: Schedule) -> Feeder:
        """See ``Input``: a process writes files."""
        stream = self.stream(spark, folder)
        feeder = Feeder(folder, schedule)
        feeder.stream = stream
        return feeder

    def of(self, lines: DataFrame) -> DataFrame:
        """The records of lines ``start,end``."""
        start, end = (F.split_part("value", F.lit(","), F.lit(i)).cast("long") for i in (1, 2))
        numbers = lines.select(F.explode(F.sequence(start, end - 1)).alias("n"))
        return self.with_payload(numbers.select(self.keys.expression(F.col("n")).alias("key")))

    def state(self, spark: SparkSession) -> DataFrame:
        """What a count by key holds once it has seen each key once: a batch DataFrame of all keys."""
        counted = spark.range(self.keys.count).select(
            F.col("id").alias("key"), F.lit(1).cast("long").alias("n")
        )
        return self.with_payload(counted)

    def with_payload(self, keyed: DataFrame) -> DataFrame:
        """The same rows with their text, if they have one."""
        if not self.payload:
            return keyed
        # Digests, so that nobody who compresses what he sends or keeps finds it smaller than it is.
        pieces = [F.sha2(F.concat_ws(":", F.lit(i), "key"), 512) for i in range(-(-self.payload // 128))]
        return keyed.withColumn("payload", F.substring(F.concat(*pieces), 1, self.payload))
