"""The graph of a query: sources, stateful operators in topological order, and which of them feeds the sink.

Immutable and picklable; made by ``stream.py``, read by the engine. ``fingerprint`` identifies what a
checkpoint was written for: names, keys, tables and schemas, not the code of folds, which may be corrected
between two starts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sterna.errors import InvalidInput
from sterna.operators.base import Edge, Operator


@dataclass(frozen=True)
class Dataflow:
    """Operators in topological order; the last one's outputs go to the sink.

    Attributes:
        operators: the operators.
        sources: how many sources there are.
        derived: sources that are made of an operator's outputs by a DataFrame function, numbered after the
            real ones: that operator's index.
        final: the schema of what reaches the sink, if a DataFrame function stands before it.
    """

    operators: tuple[Operator, ...]
    sources: int
    derived: tuple[int, ...] = ()
    final: pa.Schema | None = None

    def __post_init__(self) -> None:
        names = [operator.name for operator in self.operators]
        if not names:
            raise InvalidInput("the dataflow has no stateful operator; use plain Structured Streaming for it")
        for name in names:
            if names.count(name) > 1:
                raise InvalidInput(f"two operators are called {name!r}; give each a name of its own")

    @property
    def edges(self) -> list[Edge]:
        """All edges, by number."""
        return sorted(
            (edge for operator in self.operators for edge in operator.edges), key=lambda edge: edge.number
        )

    @property
    def output(self) -> pa.Schema:
        """The schema of what reaches the sink."""
        return self.operators[-1].output if self.final is None else self.final

    def reader(self, edge: Edge) -> int:
        """The index of the operator that reads an edge."""
        return next(i for i, operator in enumerate(self.operators) if edge in operator.edges)

    def consumers(self, operator: int) -> list[tuple[int, Edge]]:
        """(reading operator, edge) of everything that reads an operator."""
        return [
            (i, e) for i, reader in enumerate(self.operators) for e in reader.edges if e.operator == operator
        ]

    def readers(self, source: int) -> list[tuple[int, Edge]]:
        """(reading operator, edge) of everything that reads a source."""
        return [(i, e) for i, reader in enumerate(self.operators) for e in reader.edges if e.source == source]

    def needed(self, source: int) -> list[str]:
        """The columns of a source that anybody reads."""
        return list(dict.fromkeys(name for _, edge in self.readers(source) for name in edge.columns))

    def wire_name(self, source: int, column: str) -> str:
        """What a source's column is called between Spark and the router.

        PySpark can't pass names with dots.
        """
        return f"s{source}_{self.needed(source).index(column)}"

    def depth(self, operator: int) -> int:
        """How many operators lie before this one on the longest way from a source."""
        origins = [self.origin(edge) for edge in self.operators[operator].edges]
        return max((self.depth(origin) + 1 for origin in origins if origin is not None), default=0)

    def origin(self, edge: Edge) -> int | None:
        """The operator whose outputs an edge carries, through a DataFrame function or not.

        ``None`` for a real source.
        """
        if edge.source is not None and edge.source >= self.sources:
            return self.derived[edge.source - self.sources]
        return edge.operator

    def phase(self, operator: int) -> int:
        """Which of the epoch's Spark jobs an operator runs in.

        There is a new one after each DataFrame function on the way to it.
        """
        phases = [0]
        for edge in self.operators[operator].edges:
            origin = self.origin(edge)
            if origin is not None:
                phases.append(self.phase(origin) + (edge.source is not None))
        return max(phases)

    def phases(self) -> list[list[int]]:
        """The operators of each phase, in order."""
        numbers = [self.phase(index) for index in range(len(self.operators))]
        return [
            [i for i, number in enumerate(numbers) if number == phase] for phase in range(max(numbers) + 1)
        ]

    def staged(self, operator: int) -> bool:
        """Whether an operator's outputs are written down for a DataFrame function."""
        return operator in self.derived or (self.final is not None and operator == len(self.operators) - 1)

    def timed_edges(self) -> list[Edge]:
        """The edges from sources that carry event time."""
        return [
            edge
            for edge in self.edges
            if edge.source is not None and edge.time and edge.source < self.sources
        ]

    def index(self, name: str) -> int:
        """The index of an operator by name."""
        for i, operator in enumerate(self.operators):
            if operator.name == name:
                return i
        raise InvalidInput(f"there is no operator {name!r}; there are {[o.name for o in self.operators]}")

    def description(self) -> list[dict[str, Any]]:
        """What the fingerprint is made of, readable."""
        return [
            {
                "name": operator.name,
                "kind": type(operator).__name__,
                "inputs": [
                    {
                        "source": e.source,
                        "operator": e.operator,
                        "keys": list(e.keys),
                        "time": e.time,
                        "columns": _columns(e.schema),
                    }
                    for e in operator.edges
                ],
                "tables": [
                    {"name": t.name, "kind": t.kind, "keys": _columns(t.keys), "values": _columns(t.values)}
                    for t in operator.tables
                ],
                "options": operator.options(),
            }
            for operator in self.operators
        ]

    def fingerprint(self) -> str:
        """Identifies the dataflow that a checkpoint belongs to."""
        return hashlib.sha256(json.dumps(self.description(), sort_keys=True).encode()).hexdigest()[:16]


def _columns(schema: Sequence[Any]) -> list[str]:
    return [f"{item.name} {item.type}" for item in schema]
