"""What goes through the exchange: a few rows, each with a binary body.

A message is (slot, kind, operator, number, source, sequence, body): ``slot`` is the partition it is for, ``operator`` the operator that reads
it. The body of rows and state is one serialised Arrow batch without its schema, which both sides know. Receipts and marks are JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

HELLO = 0  # tells a slot that it exists, so that a worker without input applies its epoch too
ROWS = 1  # rows of an edge
COMBINED = 2  # rows of an edge, combined to accumulators
STATE = 3  # state of moving bins
STATS = 4  # what a router saw
MARK = 5  # "operator o at worker w sent all it has for epoch t, and its result had this digest"
RECEIPT = 6
LATE = 7  # rows that came too late, for the late output

SCHEMA = pa.schema(
    [
        pa.field("slot", pa.int32()),
        pa.field("kind", pa.int8()),
        pa.field("operator", pa.int32()),
        pa.field("number", pa.int32()),
        pa.field("source", pa.int32()),
        pa.field("sequence", pa.int32()),
        pa.field("body", pa.binary()),
    ]
)
DDL = "slot int, kind tinyint, operator int, number int, source int, sequence int, body binary"

CHUNK_BYTES = 16 << 20
"""About how large a body may become: large enough to be cheap, small enough to stream."""


@dataclass(frozen=True, slots=True)
class Message:
    """One row of the exchange; ``number`` is the edge, or the table of moving state."""

    slot: int
    kind: int
    operator: int = -1
    number: int = 0
    source: int = 0
    sequence: int = 0
    body: Any = b""

    def json(self) -> Any:
        """The body of a receipt, mark or statistics message."""
        return json.loads(bytes(self.body))

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """The body of rows or state."""
        return pa.ipc.read_record_batch(pa.py_buffer(self.body), schema)


def json_body(data: Any) -> bytes:
    """A JSON body."""
    return json.dumps(data, separators=(",", ":")).encode()


def pack(messages: Iterable[Message]) -> Iterator[pa.RecordBatch]:
    """Messages as Arrow batches of bounded size."""
    held: list[Message] = []
    size = 0
    for message in messages:
        held.append(message)
        size += len(message.body)
        if size >= CHUNK_BYTES or len(held) >= 1024:
            yield _packed(held)
            held, size = [], 0
    if held:
        yield _packed(held)


def _packed(held: list[Message]) -> pa.RecordBatch:
    columns = [pa.array([getattr(m, item.name) for m in held], item.type) for item in list(SCHEMA)[:-1]]
    # The binary column from its buffers: one copy of each body, and bodies may be any kind of buffer.
    offsets = np.zeros(len(held) + 1, np.int32)
    np.cumsum([len(m.body) for m in held], out=offsets[1:])
    data = pa.py_buffer(b"".join(m.body for m in held))
    columns.append(pa.Array.from_buffers(pa.binary(), len(held), [None, pa.py_buffer(offsets), data]))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
    """The messages in Arrow batches; bodies are views, not copies."""
    for batch in batches:
        heads = [batch.column(name).to_pylist() for name in SCHEMA.names[:-1]]
        bodies = batch.column("body")
        for row, (slot, kind, operator, number, source, sequence) in enumerate(zip(*heads, strict=True)):
            if kind is None:  # the empty side of the join that pins a slot
                continue
            body = bodies[row].as_buffer()
            yield Message(slot, kind, operator, number, source, sequence, b"" if body is None else body)
