"""An operator whose outputs are changed by a function before they leave the worker.

In: an operator, and a function from a ``pa.Table`` to another, which is called with a worker's outputs of an
epoch, if there are any. Out: an operator that differs in nothing but its outputs. A function that raises, or
returns something else than it did when it was tried on no rows, fails the epoch with a ``FoldError``.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sterna.operators.base import Edge, Epoch, Operator, Rows
from sterna.sources.recipe import Recipe
from sterna.state.tables import TableSpec


class Mapped(Operator):
    """See the module's docstring."""

    def __init__(self, inner: Operator, recipe: Recipe) -> None:
        self.inner, self._recipe = inner, recipe
        self.name: str = inner.name
        self.edges: tuple[Edge, ...] = inner.edges
        self.tables: tuple[TableSpec, ...] = inner.tables
        self.output: pa.Schema = recipe.schema
        self.ordered = inner.ordered

    def options(self) -> dict[str, Any]:
        """Those of the operator: its state is what it was."""
        return self.inner.options()

    def keep(self, table: str) -> int | None:
        """See ``Operator``."""
        return self.inner.keep(table)

    def combined_schema(self) -> pa.Schema | None:
        """See ``Operator``."""
        return self.inner.combined_schema()

    def combine(self, rows: Rows) -> Rows:
        """See ``Operator``."""
        return self.inner.combine(rows)

    def native(self) -> list[tuple[str, str, str]] | None:
        """See ``Operator``."""
        return self.inner.native()

    def apply(self, epoch: Epoch) -> pa.Table | None:
        """Applies the operator, then the function."""
        output, edge = self.inner.apply(epoch), self.edges[0]
        epoch.origins = None
        if output is None or not output.num_rows:
            return None
        table = output if isinstance(output, pa.Table) else pa.Table.from_batches([output])
        made = self._recipe.made(table)
        if all(edge.schema.field(key) in list(made.schema) for key in edge.keys):
            epoch.origins = lambda: edge.hashes(made)
        return made
