"""How the router makes the rows of an edge, where these are not simply the rows of the source.

They are unpacked from bytes (``packed``), or changed by a function. In: a batch of the source's columns. Out:
a batch of the recipe's schema. Bytes that can't be read raise ``InvalidInput``; a function that raises, or
returns something else than it did when it was tried on no rows, raises ``FoldError`` with its traceback. Both
name what is wrong.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from sterna.errors import FoldError, InvalidInput
from sterna.sources.packed import Packed

Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Recipe:
    """See the module's docstring.

    Attributes:
        columns: the columns of the source that it reads.
        schema: what comes out.
        given: what there is before any function: the schema of the source, or of the packed rows.
        packed: how rows are made of bytes, where the columns hold such.
        functions: what is applied then, in order, each with the schema of what it returns.
    """

    columns: tuple[str, ...]
    schema: pa.Schema
    given: pa.Schema
    packed: Packed | None = None
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
                f"the function {_name(function)} given to map returned {type(tried).__name__} for no rows: "
                "it must return a pyarrow Table"
            )
        schema = pa.schema([pa.field(item.name, item.type) for item in tried.schema])
        twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
        if twice:
            raise InvalidInput(
                f"the function {_name(function)} given to map returned two columns called {twice[0]!r}"
            )
        return replace(self, schema=schema, functions=(*self.functions, (function, schema)))

    def opened(self, batch: pa.RecordBatch) -> pa.Table:
        """The rows in a batch that has the recipe's columns, before any function."""
        if self.packed is not None:
            return pa.Table.from_batches(self.packed.opened(batch, self.given), self.given)
        # Times come in the session's zone.
        return pa.Table.from_batches([batch]).cast(self.given)

    def made(self, rows: pa.Table) -> pa.Table:
        """What the functions make of rows."""
        for function, schema in self.functions:
            rows = _applied(function, rows, schema)
        return rows

    def count(self, batch: pa.RecordBatch) -> int:
        """How many rows of the source a batch stands for."""
        return batch.num_rows if self.packed is None else self.packed.count(batch, self.given)


def _applied(function: Function, rows: pa.Table, schema: pa.Schema) -> pa.Table:
    try:
        made = function(rows)
        if isinstance(made, pa.RecordBatch):
            made = pa.Table.from_batches([made])
        return made if made.schema == schema else made.select(schema.names).cast(schema)
    except (Exception, SystemExit) as error:
        raise FoldError(
            f"the function {_name(function)} given to map raised {type(error).__name__}, or did not return "
            f"the columns that it returned for no rows:\n{traceback.format_exc()}"
        ) from error


def _name(function: Any) -> str:
    return repr(getattr(function, "__name__", function))
