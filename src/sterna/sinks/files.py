"""Sinks that write files: parquet for readers, and staged output for callables.

``Parquet``: a task writes ``<path>/_sterna/<name>``, which Spark and pyarrow do not read (names with a
leading underscore are hidden); publishing moves it to ``<path>/part-<epoch>-<worker>.parquet``. Moved already
means published already.

``Staged``: a task writes parquet files below the checkpoint; publishing calls the user's function with a
DataFrame over exactly these files. The files stay until the epoch can't be replayed any more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema

from sterna.engine.checkpoint import DOCUMENT
from sterna.engine.crash import crash_point
from sterna.errors import SinkError
from sterna.sinks.base import Part, Sink, TaskSink
from sterna.state.store import Store

HIDDEN = "_sterna"
OWNER = f"{HIDDEN}/query.json"
SWEEP_EVERY = 64
"""After so many epochs, look for files that attempts left behind."""
BETWEEN = "between"
"""Below the checkpoint: outputs of an operator on their way to a DataFrame function in the same epoch."""


class Files(TaskSink):
    """Writes each worker's output as a parquet file."""

    def __init__(self, store: Store, directory: str) -> None:
        self._store, self._directory = store, directory

    def write(self, batch: pa.RecordBatch, epoch: int, worker: int, attempt: str) -> Part:  # noqa: D102
        buffer = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_batches([batch]), buffer, compression="snappy")
        name = f"{self._directory}/e{epoch}-w{worker}-{attempt}.parquet"
        self._store.write(name, buffer.getvalue())
        return {"file": name, "rows": batch.num_rows, "worker": worker}


def sweep(store: Store, directory: str, incarnation: int) -> None:
    """Removes what attempts of earlier incarnations left behind and no manifest names.

    What manifests name was published at recovery.
    """
    left = []
    for name in store.list(directory):
        match = re.match(r"e\d+-w\d+-i(\d+)-", name)
        if match and int(match.group(1)) < incarnation:
            left.append(f"{directory}/{name}")
    store.delete(left)


def sweep_epochs(store: Store, directory: str, epoch: int) -> None:
    """Removes what is left of epochs up to this one, which are forgotten.

    That is files of attempts that failed, and no manifest names them.
    """
    left = []
    for name in store.list(directory):
        match = re.match(r"e(\d+)-w\d+-", name)
        if match and int(match.group(1)) <= epoch:
            left.append(f"{directory}/{name}")
    store.delete(left)


class Parquet(Sink):
    """See the module's docstring."""

    def __init__(self, path: str) -> None:
        self._store = Store.open(path)

    def open(self, checkpoint: Store, schema: pa.Schema, spark: Any, incarnation: int) -> None:  # noqa: ARG002
        """Takes the directory for this query.

        ``SinkError`` if it is another's, whose files would be overwritten.
        """
        try:
            mine = str(checkpoint.read_document(DOCUMENT)["query"])
        except FileNotFoundError:
            return
        try:
            owner = self._store.read_document(OWNER).get("query")
        except FileNotFoundError:
            owner = None
            if any(name.startswith("part-") for name in self._store.list("")) and incarnation <= 1:
                raise SinkError(
                    f"{self._store.name('')} has output of another query, which would be overwritten; use a "
                    "directory of its own"
                ) from None
            self._store.write_document(OWNER, {"query": mine})
        if owner not in (None, mine):
            raise SinkError(
                f"{self._store.name('')} belongs to another query (its checkpoint has the identity {owner}, "
                f"this one {mine}), whose output would be overwritten; use a directory of its own"
            )

    def task(self) -> TaskSink:  # noqa: D102
        return Files(self._store, HIDDEN)

    def takes(self, part: Part) -> bool:  # noqa: D102
        return str(part.get("file", "")).startswith(f"{HIDDEN}/")

    def publish(self, epoch: int, parts: list[Part]) -> None:  # noqa: D102
        for part in parts:
            target = f"part-{epoch:09d}-{part['worker']:04d}.parquet"
            try:
                self._store.move(part["file"], target)
            except FileNotFoundError as error:
                if not self._store.exists(target):
                    raise SinkError(
                        f"epoch {epoch}: the output file {self._store.name(part['file'])} is gone, and "
                        f"{self._store.name(target)} is not there either"
                    ) from error
            crash_point("during-publish", epoch)

    def forget(self, epoch: int, parts: list[Part]) -> None:  # noqa: ARG002, D102
        if epoch % SWEEP_EVERY == 0:
            sweep_epochs(self._store, HIDDEN, epoch)


class Staged(Sink):
    """Calls a function with a DataFrame over staged files; see the module's docstring."""

    def __init__(self, function: Callable[[Any, int], Any]) -> None:
        self._function = function
        self._directory = "staged"

    def open(self, checkpoint: Store, schema: pa.Schema, spark: Any, incarnation: int) -> None:  # noqa: ARG002, D102
        self._store, self._schema, self._spark = checkpoint, schema, spark

    def task(self) -> TaskSink:  # noqa: D102
        return Files(self._store, self._directory)

    def takes(self, part: Part) -> bool:  # noqa: D102
        return str(part.get("file", "")).startswith(f"{self._directory}/")

    def publish(self, epoch: int, parts: list[Part]) -> None:  # noqa: D102
        try:
            self._function(self._frame(parts), epoch)
        except Exception as error:
            raise SinkError(
                f"the sink failed in epoch {epoch}: {error!r}; the epoch's output is kept and will be "
                "offered again, the same, when the query is started again"
            ) from error

    def _frame(self, parts: list[Part]) -> Any:
        schema = from_arrow_schema(self._schema)
        if not parts:
            return self._spark.createDataFrame([], schema)
        return self._spark.read.schema(schema).parquet(*[self._store.name(part["file"]) for part in parts])

    def forget(self, epoch: int, parts: list[Part]) -> None:  # noqa: D102
        self._store.delete([part["file"] for part in parts])
        if epoch % SWEEP_EVERY == 0:
            sweep_epochs(self._store, self._directory, epoch)
