"""Aggregate functions under the names of their results, over the rows of one stream.

In: functions by name, and the schema of the rows. Out: the columns in which their accumulators are kept
(``accumulators``), the fields of their results (``results``), and the way of values through all of them at
once: ``partial``, ``merge``, ``combine``, ``finish``, as in ``accumulators``. Accumulators are passed as one
list of columns, in the order of the schema. A function that is none, a column that is not there or is of a
type that a function can't take, and a name that is taken twice raise ``InvalidInput``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sterna.errors import InvalidInput
from sterna.operators.accumulators import Aggregate, First, Last
from sterna.operators.base import contiguous
from sterna.operators.groups import Groups, Index

Columns = list[pa.Array]


class Named:
    """See the module's docstring.

    Attributes:
        functions: by the names of their results.
        accumulators: the columns of the state.
        results: the fields of the results.
    """

    def __init__(
        self, functions: Mapping[str, Aggregate], schema: pa.Schema, taken: Sequence[str], who: str
    ) -> None:
        """For rows of a schema; ``taken`` are names that other columns have, ``who`` is for messages."""
        if not functions:
            raise InvalidInput(f"{who} names no aggregate, as in aggregate(n=sterna.count())")
        for name, function in functions.items():
            if not callable(getattr(type(function), "partial", None)):
                raise InvalidInput(
                    f"{name}={function!r} is not an aggregate such as sterna.count() or sterna.max('price')"
                )
        self.functions = dict(functions)
        self._schema, self._who = schema, who
        fields = {name: function.state(self._type(function)) for name, function in functions.items()}
        # The aggregate's own name where it has just one.
        self.accumulators = [
            pa.field(name if len(items) == 1 else f"{name}_{item.name}", item.type)
            for name, items in fields.items()
            for item in items
        ]
        self._counts = [len(items) for items in fields.values()]
        self.results = [
            pa.field(name, function.result(self._type(function))) for name, function in functions.items()
        ]
        columns = [*taken, *(item.name for item in self.accumulators)]
        clash = (set(taken) & set(functions)) | {name for name in columns if columns.count(name) > 1}
        if clash:
            raise InvalidInput(f"{who}: {sorted(clash)} name two columns")

    def _type(self, function: Aggregate) -> pa.DataType | None:
        if function.column is None:
            return None
        if function.column not in self._schema.names:
            raise InvalidInput(
                f"{self._who}: there is no column {function.column!r}; there are {self._schema.names}"
            )
        return self._schema.field(function.column).type

    @property
    def columns(self) -> list[str]:
        """The columns of the rows that the functions read."""
        return [function.column for function in self.functions.values() if function.column is not None]

    @property
    def ordered(self) -> bool:
        """Whether the order of rows matters."""
        return any(isinstance(function, First | Last) for function in self.functions.values())

    @property
    def exact(self) -> bool:
        """Whether accumulators may be combined in any order with a bit-identical result."""
        return not self.ordered and all(one.exact(self._type(one)) for one in self.functions.values())

    def options(self) -> dict[str, Any]:
        """What tells them from others: the accumulators of several look alike."""
        return {name: repr(function) for name, function in self.functions.items()}

    def native(self) -> list[tuple[str, str, str]] | None:
        """(accumulator, Spark function, column) for Spark's own ``groupBy``, or ``None`` if it can't."""
        out: list[tuple[str, str]] = []
        for function in self.functions.values():
            parts = function.native(self._type(function))
            if parts is None:
                return None
            out += parts
        return [(item.name, *part) for item, part in zip(self.accumulators, out, strict=True)]

    def partial(self, groups: Groups, rows: pa.RecordBatch | pa.Table, order: Index) -> Columns:
        """Accumulators of groups of rows, once these are put in an order."""
        index, out = pa.array(order), []
        for function in self.functions.values():
            column = function.column
            values = None if column is None else contiguous(rows.column(column)).take(index)
            out += function.partial(groups, values)
        return out

    def merge(self, groups: Groups, accumulators: Columns) -> Columns:
        """Accumulators of groups of accumulators."""
        parts = zip(self.functions.values(), self._split(accumulators), strict=True)
        return [column for function, part in parts for column in function.merge(groups, part)]

    def combine(self, old: Columns, new: Columns, found: npt.NDArray[np.bool_]) -> Columns:
        """Old accumulators with newer ones, where there are old ones."""
        parts = zip(self.functions.values(), self._split(old), self._split(new), strict=True)
        return [column for function, a, b in parts for column in function.combine(a, b, found)]

    def finish(self, accumulators: Columns) -> Columns:
        """The results."""
        parts = zip(self.functions.values(), self._split(accumulators), strict=True)
        return [function.finish(part) for function, part in parts]

    def _split(self, accumulators: Columns) -> list[Columns]:
        """Those of each function."""
        out, at = [], 0
        for count in self._counts:
            out.append(accumulators[at : at + count])
            at += count
        return out
