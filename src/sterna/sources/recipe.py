"""How the router makes the rows of an edge, where these are not simply the rows of the source: unpacked from bytes, changed by a function.

In: a batch of the source's columns. Out: a batch of the recipe's schema. Bytes that hold something else raise ``InvalidInput``; a function that raises, or
returns something else than it did when it was tried on no rows, raises ``FoldError`` with its traceback. Both name what is wrong.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from sterna.errors import FoldError, InvalidInput

Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Recipe:
    """See the module's docstring.

    Attributes:
        columns: the columns of the source that it reads.
        schema: what comes out.
        packed: whether the (one) column holds serialised record batches; this is their schema.
        functions: what is applied then, in order, each with the schema of what it returns.
    """

    columns: tuple[str, ...]
    schema: pa.Schema
    packed: pa.Schema | None = None
    functions: tuple[tuple[Function, pa.Schema], ...] = ()

    def then(self, function: Function) -> Recipe:
        """With one more function; it is tried on no rows, to know what comes out."""
        if not callable(function):
            raise InvalidInput(f"map takes a function from a pyarrow Table to another, not {function!r}")
        tried = function(self.schema.empty_table())
        if isinstance(tried, pa.RecordBatch):
            tried = pa.Table.from_batches([tried])
        if not isinstance(tried, pa.Table):
            raise InvalidInput(
                f"the function {_name(function)} given to map returned {type(tried).__name__} for no rows: it must return a pyarrow Table"
            )
        schema = pa.schema([pa.field(item.name, item.type) for item in tried.schema])
        return replace(self, schema=schema, functions=(*self.functions, (function, schema)))

    def rows(self, batch: pa.RecordBatch) -> pa.Table:
        """The rows made of a batch that has the recipe's columns."""
        made = pa.Table.from_batches(self._opened(batch), self.packed) if self.packed else _table(batch)
        for function, schema in self.functions:
            made = _applied(function, made, schema)
        return made

    def count(self, batch: pa.RecordBatch) -> int:
        """How many rows of the source a batch stands for."""
        return sum(part.num_rows for part in self._opened(batch)) if self.packed else batch.num_rows

    def _opened(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """What the bytes hold, in place."""
        (column,) = batch.columns
        try:
            return [
                pa.ipc.read_record_batch(value.as_buffer(), self.packed) for value in column if value.is_valid
            ]
        except (pa.ArrowException, OSError) as error:
            raise InvalidInput(
                f"column {self.columns[0]!r} does not hold record batches of the schema that it was unpacked with: {error}"
            ) from error


def _applied(function: Function, rows: pa.Table, schema: pa.Schema) -> pa.Table:
    try:
        made = function(rows)
        if isinstance(made, pa.RecordBatch):
            made = pa.Table.from_batches([made])
        return made if made.schema == schema else made.select(schema.names).cast(schema)
    except (Exception, SystemExit) as error:
        raise FoldError(
            f"the function {_name(function)} given to map raised {type(error).__name__}, or did not return the columns that it returned "
            f"for no rows:\n{traceback.format_exc()}"
        ) from error


def _name(function: Any) -> str:
    return repr(getattr(function, "__name__", function))


def _table(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])
