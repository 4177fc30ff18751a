"""From rows with a text, or with an array of items, to single items. Both examples begin with this."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import sterna
from sterna.errors import InvalidInput
from sterna.folds import Ints, contiguous
from sterna.stream import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SPACE = " "
PUNCTUATION = ".,;:!?…\"'`()[]{}<>«»“”„-–—"


def read(texts: DataFrame | Stream, column: str) -> Stream:
    """The stream of texts; ``InvalidInput`` unless the column is there and holds texts or arrays of texts."""
    stream = texts if isinstance(texts, Stream) else sterna.read(texts)
    if column not in stream.schema.names:
        raise InvalidInput(f"there is no column {column!r} of texts; there are {stream.schema.names}")
    kind = stream.schema.field(column).type
    if not pa.types.is_string(kind.value_type if pa.types.is_list(kind) else kind):
        raise InvalidInput(f"column {column!r} is of type {kind}: texts are strings, or arrays of strings")
    return stream


def items_of(column: pa.Array | pa.ChunkedArray) -> tuple[Ints, pa.Array]:
    """The items of each row: for each the number of its row, and the item, in the order of the row.

    The items of a text are its words: what white space (ASCII's) parts, in small letters, without punctuation
    around it. Those of an array are taken as they are, but a space inside one counts as ``_``: no item has a
    space in it. Nulls and empty items are left out.

    Example:
        >>> row, item = items_of(pa.array(["Terns migrate, far.", None, "(far)"]))
        >>> row.tolist(), item.to_pylist()
        ([0, 0, 0, 2], ['terns', 'migrate', 'far', 'far'])
    """
    values = contiguous(column)
    if pa.types.is_list(values.type):
        item = pc.replace_substring(pc.list_flatten(values), SPACE, "_")
    else:
        # utf8_split_whitespace overlooks white space at the end of some texts with letters beyond ASCII, not
        # every time the same: seen in pyarrow 19 and 26.
        values = pc.ascii_split_whitespace(pc.utf8_lower(values))
        item = pc.utf8_trim(pc.list_flatten(values), PUNCTUATION)
    there = pc.fill_null(pc.greater(pc.binary_length(item), 0), False)
    row = pc.list_parent_indices(values).filter(there)
    return np.asarray(row.to_numpy(), np.int64), item.filter(there)


def expanded(many: Ints) -> tuple[Ints, Ints]:
    """Each row as often as is said: for each copy the number of the row, and which copy of it this is.

    Example:
        >>> [found.tolist() for found in expanded(np.array([2, 0, 3]))]
        [[0, 0, 2, 2, 2], [0, 1, 0, 1, 2]]
    """
    row = np.repeat(np.arange(len(many)), many)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
