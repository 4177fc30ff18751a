"""What reaches a worker in an epoch, and the order in which it is seen.

Messages arrive in any order. Rows are seen in the order (time, source partition, sequence), or (time, key at
the operator they come from, sequence); state that was sent in the order of its hashes. So a second attempt,
or another placement, sees the same.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa

from sterna.engine import messages as kinds
from sterna.engine.messages import Message
from sterna.hashing import stable_order
from sterna.operators.base import ORIGIN, Edge, Operator, Rows, microseconds

_Place = tuple[int, int]


class Inbox:
    """The messages for one operator in one slot.

    Attributes:
        worker: who it is for; ``None`` if nobody was greeted here.
        stats: what the routers counted.
        marks: what the workers of the operators before say they have sent.
    """

    def __init__(self, operator: Operator) -> None:
        self.worker: int | None = None
        self.stats: list[dict[str, Any]] = []
        self.marks: dict[str, str] = {}
        self._operator = operator
        self._chunks: dict[int, list[tuple[_Place, Rows]]] = defaultdict(list)
        self._combined: list[tuple[_Place, Rows]] = []
        self._state: dict[int, list[tuple[_Place, pa.RecordBatch]]] = defaultdict(list)
        self._late: list[tuple[_Place, pa.RecordBatch]] = []

    def receive(self, message: Message) -> None:
        """Takes a message."""
        place = (message.source, message.sequence)
        if message.kind == kinds.HELLO:
            self.worker = message.number
        elif message.kind in (kinds.ROWS, kinds.LATE):
            edge = next(edge for edge in self._operator.edges if edge.number == message.number)
            batch = message.batch(edge.wire)
            if message.kind == kinds.LATE:
                self._late.append((place, batch))
            else:
                self._chunks[message.number].append((place, _rows(batch)))
        elif message.kind == kinds.COMBINED:
            schema = self._operator.combined_schema()
            assert schema is not None
            wire = pa.schema([pa.field("_hash", pa.uint64()), *schema])
            self._combined.append((place, _rows(message.batch(wire))))
        elif message.kind == kinds.STATE:
            schema = self._operator.tables[message.number].schema()
            self._state[message.number].append((place, message.batch(schema)))
        elif message.kind == kinds.STATS:
            self.stats.append(message.json())
        elif message.kind == kinds.MARK:
            self.marks[f"{message.number}/{message.source}"] = bytes(message.body).decode()

    def state(self, table: int) -> pa.RecordBatch | None:
        """What has arrived for a table, in the order of its hashes."""
        arrived = _in_order(self._state.get(table, []))
        if not arrived:
            return None
        whole = pa.concat_batches(arrived)
        hashes = whole.column("_hash").to_numpy()
        return whole.take(pa.array(stable_order(hashes))) if np.any(hashes[1:] < hashes[:-1]) else whole

    def rows(self, edge: Edge) -> Rows:
        """The rows of an edge."""
        chunks = _in_order(self._chunks.get(edge.number, []))
        rows = Rows.concat(chunks, pa.schema(list(edge.wire)[1:]))
        if edge.operator is not None:
            rows = self._by_origin(rows)
        if self._operator.ordered and edge.time is not None and rows.count:
            times = microseconds(rows.batch.column(edge.time))
            if np.any(times[1:] < times[:-1]):
                rows = rows.take(np.argsort(times, kind="stable"))
        return rows

    def _by_origin(self, rows: Rows) -> Rows:
        """Rows of an operator in the order of the keys they come from.

        That order does not depend on where those keys are.
        """
        origins = rows.batch.column(0).to_numpy()
        rows = Rows(rows.hashes, rows.batch.drop_columns([ORIGIN]))
        exact = self._operator.combined_schema() is not None
        if exact or not np.any(origins[1:] < origins[:-1]):
            return rows
        return rows.take(stable_order(origins))

    def combined(self) -> Rows | None:
        """What the routers have combined already."""
        schema = self._operator.combined_schema()
        if schema is None or not self._combined:
            return None
        return Rows.concat(_in_order(self._combined), schema)

    def late(self) -> pa.RecordBatch | None:
        """The rows that came too late, without their hashes."""
        if not self._late:
            return None
        return pa.concat_batches(_in_order(self._late)).drop_columns(["_hash"])


def _in_order(placed: list[tuple[_Place, Any]]) -> list[Any]:
    return [one for _, one in sorted(placed, key=lambda pair: pair[0])]


def _rows(batch: pa.RecordBatch) -> Rows:
    hashes = batch.column(0).to_numpy(zero_copy_only=False)
    schema = pa.schema(list(batch.schema)[1:])
    return Rows(hashes, pa.RecordBatch.from_arrays(batch.columns[1:], schema=schema))
