"""Events as rows of a DataFrame, or as bytes: a row with a serialised record batch for each kind.

Spark hands a Python source's rows to the JVM and back to Python value by value. Bytes make that trip as they
are, and the router reads them in place.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sterna.nexmark.generator import SCHEMAS, TIME, Events, kind_of
from sterna.nexmark.shape import Ints

PACKED = pa.schema([pa.field(kind, pa.binary()) for kind in SCHEMAS])
ROWS = pa.schema(
    [
        pa.field("kind", pa.string()),
        pa.field("dateTime", TIME),
        *(pa.field(kind, pa.struct(list(schema))) for kind, schema in SCHEMAS.items()),
    ]
)


def packed(events: Events) -> pa.RecordBatch:
    """One row with all events; of a kind that there is nothing of, null."""
    parts = [_one(batch) for batch in events.batches]
    return pa.RecordBatch.from_arrays(parts, schema=PACKED)


def _one(batch: pa.RecordBatch) -> pa.Array:
    """An array of one byte string, without copying it."""
    if not batch.num_rows:
        return pa.nulls(1, pa.binary())
    part = batch.serialize()
    offsets = pa.py_buffer(np.array([0, part.size], np.int32))
    return pa.Array.from_buffers(pa.binary(), 1, [None, offsets, part])


def rows(numbers: Ints, events: Events) -> pa.RecordBatch:
    """A row for each of the events, which have these numbers and are all there."""
    kind = kind_of(numbers)
    times = np.empty(len(numbers), np.int64)
    structs = []
    for code, batch in enumerate(events.batches):
        mine = kind == code
        times[mine] = batch.column("dateTime").cast(pa.int64()).to_numpy()
        which = pa.array(np.cumsum(mine) - 1, mask=~mine)
        structs.append(pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema)).take(which))
    names = pa.array(list(SCHEMAS)).take(pa.array(kind))
    return pa.RecordBatch.from_arrays([names, pa.array(times).view(TIME), *structs], schema=ROWS)
