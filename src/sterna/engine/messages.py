"""What goes through the exchange: a few rows (slot, body), each body a small header and its content.

A message is (kind, operator, number, source, sequence, content): ``slot`` is the partition it is for,
``operator`` the operator that reads it. The content of rows and state is one serialised Arrow batch without
its schema, which both sides know. Receipts and marks are JSON. The row has just two columns because every
column costs PySpark several calls into the JVM when the plan is built, in every epoch.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
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

SCHEMA = pa.schema([pa.field("slot", pa.int32()), pa.field("body", pa.binary())])
HEADER = struct.Struct("<iiiiiixxxxxxxx")  # 32 bytes, so that the Arrow content behind it stays aligned

CHUNK_BYTES = 16 << 20
"""How much state is read at once: large enough to be cheap, small enough to stream."""

PIECE_BYTES, BATCH_BYTES = 256 << 10, 1 << 20
"""About how large a body, and a batch of bodies, may become.

The JVM copies a body several times on its way from Python to Python. Small ones stay in the processor's
cache, and are no humongous objects to its collector.
"""


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
        """The content of a receipt, mark or statistics message."""
        return json.loads(bytes(self.body))

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """The content of rows or state."""
        return pa.ipc.read_record_batch(pa.py_buffer(self.body), schema)

    def header(self) -> bytes:
        """What precedes the content in the row's body."""
        return HEADER.pack(self.slot, self.kind, self.operator, self.number, self.source, self.sequence)


def json_body(data: Any) -> bytes:
    """A JSON content."""
    return json.dumps(data, separators=(",", ":")).encode()


def parse(body: Any) -> Message:
    """The message in a row's body; its content is a view, not a copy."""
    buffer = pa.py_buffer(body)
    slot, kind, operator, number, source, sequence = HEADER.unpack(memoryview(buffer)[: HEADER.size])
    return Message(slot, kind, operator, number, source, sequence, buffer[HEADER.size :])


def in_pieces(like: Message, rows: pa.RecordBatch, sequence: Iterator[int]) -> Iterator[Message]:
    """Messages like one that has no content, with the rows in bodies of about ``PIECE_BYTES``.

    Example:
        >>> rows = pa.RecordBatch.from_pydict({"n": np.arange(120_000)})
        >>> found = in_pieces(Message(0, ROWS), rows, iter(range(10)))
        >>> [(one.sequence, len(one.batch(rows.schema))) for one in found]
        [(0, 30000), (1, 30000), (2, 30000), (3, 30000)]
    """
    parts = max(1, -(-rows.nbytes // PIECE_BYTES))
    step = max(1, -(-rows.num_rows // parts))
    for start in range(0, rows.num_rows, step):
        yield replace(like, sequence=next(sequence), body=rows.slice(start, step).serialize())


def pack(messages: Iterable[Message]) -> Iterator[pa.RecordBatch]:
    """Messages as Arrow batches of bounded size."""
    held: list[Message] = []
    size = 0
    for message in messages:
        held.append(message)
        size += len(message.body)
        if size >= BATCH_BYTES or len(held) >= 1024:
            yield _packed(held)
            held, size = [], 0
    if held:
        yield _packed(held)


def _packed(held: list[Message]) -> pa.RecordBatch:
    # The binary column from its buffers: one copy of each content, which may be any kind of buffer.
    offsets = np.zeros(len(held) + 1, np.int32)
    np.cumsum([HEADER.size + len(m.body) for m in held], out=offsets[1:])
    data = pa.py_buffer(b"".join(part for m in held for part in (m.header(), m.body)))
    bodies = pa.Array.from_buffers(pa.binary(), len(held), [None, pa.py_buffer(offsets), data])
    return pa.RecordBatch.from_arrays([pa.array([m.slot for m in held], pa.int32()), bodies], schema=SCHEMA)


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
    """The messages in Arrow batches."""
    for batch in batches:
        for body in batch.column("body"):
            yield parse(body.as_buffer())
