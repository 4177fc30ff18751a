"""The graph under streams: where each comes from, and how sources, edges and operators get their numbers.

``build`` walks from the last stream back to the sources and numbers everything once, in topological order.
What crosses a DataFrame function after an operator becomes a derived source, numbered after the real ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sterna.dataflow import Dataflow
from sterna.engine.spark import Functions
from sterna.errors import InvalidInput
from sterna.operators.base import Edge, Operator
from sterna.sources.recipe import Recipe

if TYPE_CHECKING:
    from sterna.stream import KeyedStream, Stream


@dataclass(frozen=True)
class Source:
    """A streaming DataFrame, and how the router makes rows of it, if these are not the DataFrame's own."""

    frame: Any
    recipe: Recipe | None = None


@dataclass(frozen=True)
class Stateful:
    """An operator to be: made once its inputs have numbers."""

    kind: str
    inputs: tuple[KeyedStream, ...]
    build: Callable[[str, tuple[Edge, ...]], Operator]
    name: str | None = None
    columns: tuple[tuple[str, ...] | None, ...] = (None,)
    """For each input the columns that travel; ``None`` for all."""


@dataclass(frozen=True)
class Transformed:
    """The outputs of an operator, changed by a DataFrame function."""

    stream: Stream
    function: Callable[[Any], Any]


def only(schema: pa.Schema, columns: tuple[str, ...] | None) -> pa.Schema:
    """Some columns of a schema; ``None`` for all."""
    return schema if columns is None else pa.schema([schema.field(name) for name in columns])


def build(stream: Stream) -> tuple[Dataflow, list[Any], Functions]:
    """The dataflow that ends in a stream, its source DataFrames, and the DataFrame functions inside it."""
    return _Builder().build(stream)


class _Builder:
    """Numbers sources, edges and operators, each once, in topological order."""

    def __init__(self) -> None:
        self._frames: list[Any] = []
        self._derived: list[tuple[int, Callable[[Any], Any]]] = []
        self._operators: list[tuple[str, Stateful, list[Edge]]] = []
        self._phases: list[int] = []
        self._numbers: dict[int, int] = {}
        self._names: dict[str, int] = {}
        self._edges = 0

    def build(self, stream: Stream) -> tuple[Dataflow, list[Any], Functions]:
        origin, final, schema = stream.origin, None, None
        if isinstance(origin, Transformed):
            last, final = _unwound(origin)
            origin, schema = last.origin, stream.schema
        if not isinstance(origin, Stateful):
            raise InvalidInput("the dataflow has no stateful operator; use plain Structured Streaming for it")
        self._operator(origin)
        # Derived sources are numbered after the real ones, whose number is known only now.
        operators = tuple(
            node.build(name, tuple(self._settled(edge) for edge in edges))
            for name, node, edges in self._operators
        )
        flow = Dataflow(
            operators, len(self._frames), tuple(operator for operator, _ in self._derived), schema
        )
        return flow, self._frames, Functions(tuple(function for _, function in self._derived), final)

    def _settled(self, edge: Edge) -> Edge:
        if edge.source is None or edge.source >= 0:
            return edge
        return replace(edge, source=len(self._frames) + (-1 - edge.source))

    def _source(self, source: Source) -> int:
        for index, frame in enumerate(self._frames):
            if frame is source.frame:
                return index
        self._frames.append(source.frame)
        return len(self._frames) - 1

    def _operator(self, node: Stateful) -> int:
        if id(node) in self._numbers:
            return self._numbers[id(node)]
        origins: list[tuple[int | None, int | None, Callable[[Any], Any] | None]] = []
        phase = 0
        for one in node.inputs:
            origin = one.stream.origin
            if isinstance(origin, Source):
                origins.append((self._source(origin), None, None))
                continue
            function = None
            if isinstance(origin, Transformed):
                last, function = _unwound(origin)
                origin = last.origin
            assert isinstance(origin, Stateful)
            number = self._operator(origin)
            phase = max(phase, self._phases[number] + (function is not None))
            origins.append((None, number, function))
        edges = []
        for one, columns, (read_source, read_operator, function) in zip(
            node.inputs, node.columns, origins, strict=True
        ):
            source, operator = read_source, read_operator
            if operator is not None and (function is not None or self._phases[operator] < phase):
                # What crosses into a later job is written down in between, changed or not.
                self._derived.append((operator, function or _unchanged))
                source, operator = -len(self._derived), None
            origin = one.stream.origin
            recipe = origin.recipe if isinstance(origin, Source) else None
            schema = only(one.schema, columns)
            edges.append(Edge(self._edges, source, operator, one.keys, one.time, schema, recipe))
            self._edges += 1
        name = node.name
        if name is None:
            self._names[node.kind] = self._names.get(node.kind, 0) + 1
            name = node.kind if self._names[node.kind] == 1 else f"{node.kind}-{self._names[node.kind]}"
        self._operators.append((name, node, edges))
        self._phases.append(phase)
        self._numbers[id(node)] = len(self._operators) - 1
        return self._numbers[id(node)]


def _unchanged(frame: Any) -> Any:
    return frame


def _unwound(origin: Transformed) -> tuple[Stream, Callable[[Any], Any]]:
    """The operator's stream under a chain of transforms, and these as one function."""
    functions = [origin.function]
    stream = origin.stream
    while isinstance(stream.origin, Transformed):
        functions.append(stream.origin.function)
        stream = stream.origin.stream

    def whole(frame: Any) -> Any:
        for function in reversed(functions):
            frame = function(frame)
        return frame

    return stream, whole
