"""What the user builds: ``Stream``, ``KeyedStream``, and ``WindowedStream`` between the two.

``sterna.read(df)`` wraps a streaming DataFrame; ``key_by`` says what state belongs to; a stateful operator
makes a new stream of its outputs; ``start`` runs it all. Nothing runs before ``start``. What does not make
sense raises ``InvalidInput`` at the line where it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from sterna.dataflow import Dataflow
from sterna.durations import seconds
from sterna.errors import InvalidInput
from sterna.graph import Source, Stateful, Transformed, build, only
from sterna.operators import windows
from sterna.operators.accumulators import Aggregate as Function
from sterna.operators.aggregate import Aggregate
from sterna.operators.base import Edge, Operator
from sterna.operators.fold import Fold, TableWish
from sterna.operators.joining import Join, Side, union_of
from sterna.operators.mapped import Mapped
from sterna.operators.named import Named
from sterna.operators.state_machine import Pickled, StateMachine
from sterna.schemas import arrow_schema, key_type_ok, of_frame
from sterna.sources.chosen import chosen
from sterna.sources.recipe import Recipe
from sterna.wishes import checked, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sterna.engine.spark import Functions
    from sterna.operators.joining import Columns
    from sterna.query import Query


def read(df: DataFrame) -> Stream:
    """Wraps a streaming DataFrame."""
    if type(df).__module__.startswith("pyspark.sql.connect"):
        raise InvalidInput(
            "this DataFrame comes from a Spark Connect session, which Sterna does not support: it runs tasks "
            "next to the state and needs a classic session (SparkSession.builder.master(...) or spark-submit "
            "without --remote)"
        )
    if not getattr(df, "isStreaming", False):
        raise InvalidInput(
            "sterna.read needs a streaming DataFrame (spark.readStream...); this one is a batch"
        )
    return Stream(Source(df), of_frame(df))


class Stream:
    """Rows: of a source, or the outputs of an operator."""

    def __init__(self, origin: Source | Stateful | Transformed, schema: pa.Schema) -> None:
        self.origin, self.schema = origin, schema

    @property
    def spark(self) -> SparkSession:
        """The session of the source."""
        origin = self.origin
        while not isinstance(origin, Source):
            origin = (origin.stream if isinstance(origin, Transformed) else origin.inputs[0].stream).origin
        session: SparkSession = origin.frame.sparkSession
        return session

    def transform(self, function: Callable[[DataFrame], DataFrame]) -> Stream:
        """Applies any stateless DataFrame -> DataFrame function.

        After a stateful operator it gets that operator's outputs of one epoch, and what follows it runs as a
        Spark job of its own.
        """
        if isinstance(self.origin, Source):
            if self.origin.recipe is not None:
                raise InvalidInput(
                    "transform works on a DataFrame, and this stream's rows are made in the router: use map, "
                    "or transform before unpack and map"
                )
            return read(function(self.origin.frame))
        # Tried on no rows, to know what comes out.
        tried = function(self.spark.createDataFrame([], from_arrow_schema(self.schema)))
        return Stream(Transformed(self, function), of_frame(tried))

    def where(self, **values: Any) -> Stream:
        """Only the rows whose columns have these values: ``where(state=["OR", "ID"], category=10)``.

        Where the rows are still Spark's, Spark leaves the others out before anything is sent to Python; where
        a router or an operator makes them, it does.
        """
        kept = chosen(self.schema, values)
        if isinstance(self.origin, Source) and self.origin.recipe is None:
            return self.transform(lambda df: df.where(kept.column()))
        return self.map(kept)

    def map(self, function: Callable[[pa.Table], pa.Table]) -> Stream:
        """Applies a stateless function of a ``pa.Table`` to parts of the stream, before rows are sent.

        It filters, adds columns, combines: the rows of a source in the router, the outputs of an operator at
        the worker that made them, those of an epoch at a time. How rows are cut into parts must not matter: a
        function that combines them does so as far as it gets. It is tried on no rows, to know what comes out.
        Where a source's column of event time is there before the function, late rows are taken out before it.
        An operator whose outputs are used with and without a function is two operators.
        """
        if isinstance(self.origin, Source):
            recipe = self.origin.recipe or _as_they_are(self.schema)
            mapped = recipe.then(function)
            return Stream(Source(self.origin.frame, mapped), mapped.schema)
        if isinstance(self.origin, Transformed):
            raise InvalidInput(
                "map and where are for the rows of a source or an operator; after transform, let its "
                "function do it"
            )
        mapped, before = _as_they_are(self.schema).then(function), self.origin.build

        def build(name: str, edges: tuple[Edge, ...]) -> Operator:
            return Mapped(before(name, edges), mapped)

        return Stream(replace(self.origin, build=build), mapped.schema)

    def key_by(self, *columns: str, time: str | None = None) -> KeyedStream:
        """Says which columns state belongs to, and which column is event time.

        A null is a key like any other, as in Spark's ``groupBy``; -0.0 is 0.0, and all NaN are one key. A row
        without an event time counts as older than any: it is late as soon as there is a watermark.
        """
        if not columns:
            raise InvalidInput("key_by needs at least one column")
        if not all(isinstance(column, str) for column in columns):
            raise InvalidInput(
                f"key_by takes names of columns, not {columns!r}; make others with transform first"
            )
        for column in [*columns, *([time] if time else [])]:
            if column not in self.schema.names:
                raise InvalidInput(f"there is no column {column!r}; there are {self.schema.names}")
        for column in columns:
            if not key_type_ok(self.schema.field(column).type):
                raise InvalidInput(
                    f"column {column!r} of type {self.schema.field(column).type} can't be a key; use columns "
                    "of plain types"
                )
        if time is not None and not _is_time(self.schema.field(time).type):
            raise InvalidInput(
                f"column {time!r} of type {self.schema.field(time).type} can't be event time; use a "
                "timestamp, a date, or a long in microseconds"
            )
        if len(set(columns)) < len(columns):
            raise InvalidInput(f"key_by names a column twice: {list(columns)}")
        return KeyedStream(self, columns, time)

    def named(self, name: str) -> Stream:
        """Names the operator that makes this stream: for ``query.state(name)`` and in the checkpoint."""
        if not isinstance(self.origin, Stateful):
            raise InvalidInput("only the output of a stateful operator can be named")
        if not name or not all(c.isalnum() or c in "-_" for c in name):
            raise InvalidInput(f"{name!r} is not a name: use letters, digits, - and _")
        return Stream(replace(self.origin, name=name), self.schema)

    def dataflow(self) -> tuple[Dataflow, list[Any], Functions]:
        """The graph that ends in this stream, its source DataFrames, and its DataFrame functions."""
        return build(self)

    def start(self, **options: Any) -> Query:
        """Starts the query; see ``sterna.start.start`` for the options."""
        from sterna.start import start  # noqa: PLC0415 - a query is made of streams, so it imports this module

        return start(self, **options)


class KeyedStream:
    """A stream whose rows belong to keys."""

    def __init__(self, stream: Stream, keys: tuple[str, ...], time: str | None) -> None:
        self.stream, self.keys, self.time = stream, keys, time

    @property
    def schema(self) -> pa.Schema:
        """The columns of the stream."""
        return self.stream.schema

    def aggregate(self, **named: Function) -> Stream:
        """Built-in aggregates: ``aggregate(n=sterna.count())``.

        There is one output row for each key that changed in an epoch.
        """
        needed = Named(named, self.schema, self.keys, "aggregate").columns
        time = [self.time] if self.time else []
        columns = tuple(dict.fromkeys([*self.keys, *needed, *time]))

        def build(name: str, edges: tuple[Edge, ...]) -> Operator:
            return Aggregate(name, edges, dict(named))

        return self._stateful("aggregate", (self,), build, (columns,))

    def window(self, length: str | float, slide: str | float | None = None) -> WindowedStream:
        """The rows of each key in windows of event time, for ``aggregate``.

        Args:
            length: of a window, such as ``"1 minute"``.
            slide: from the beginning of a window to that of the next; as long as the window, which makes
                windows tumble, unless given.
        """
        if self.time is None:
            raise InvalidInput("a window is a stretch of event time: key_by(..., time=...)")
        return WindowedStream(self, length, length if slide is None else slide)

    def state_machine(self, fold: Callable[..., Any], state: Any, output: Any) -> Stream:
        """The per-record operator: ``fold(key, record, state) -> (state, outputs)`` in plain Python."""
        spark = self.stream.spark
        kept = state if isinstance(state, Pickled) else arrow_schema(state, spark)
        out = arrow_schema(output, spark)

        def build(name: str, edges: tuple[Edge, ...]) -> Operator:
            return StateMachine(name, edges, fold, kept, out)

        return self._stateful("state_machine", (self,), build)

    def unary(
        self,
        fold: Callable[..., Any],
        tables: Mapping[str, TableWish] | None = None,
        output: Any = None,
        later: Any = None,
    ) -> Stream:
        """Arrow in, Arrow out: ``fold(rows, tables, later) -> pa.Table`` once for each worker and epoch.

        Args:
            fold: the function.
            tables: state tables by name, made with ``sterna.value(...)`` and ``sterna.rows(...)``.
            output: the output's schema, as DDL or Arrow.
            later: columns that ``later.notify_at`` keeps beside the key; by default those of the stream.
        """
        if later is None:
            later = pa.schema([item for item in self.schema if item.name not in self.keys])
        return self.folded("unary", (self,), fold, tables, output, later)

    def binary(
        self,
        other: KeyedStream,
        fold: Callable[..., Any],
        tables: Mapping[str, TableWish] | None = None,
        output: Any = None,
        later: Any = None,
    ) -> Stream:
        """Two inputs with keys of the same types: ``fold(left, right, tables, later) -> pa.Table``.

        State is addressed by this stream's key names; ``later`` keeps only the key unless columns are named.
        """
        return self._binary("binary", other, fold, tables, output, later, (None, None))

    def join(
        self, other: KeyedStream, left: Columns, right: Columns, keep: str | float | None = None
    ) -> Stream:
        """All pairs of rows of the two streams with equal keys.

        Each is put out once, in the epoch in which its second row comes. As in SQL, nulls match nothing.

        Args:
            other: the other stream, with keys of the same types.
            left: the columns of this stream that are kept and put out after the keys: names, or a dict of new
                names to names.
            right: those of the other.
            keep: how long after its event time a row is kept at least, such as ``"12 hours"``; for ever by
                default. It bounds the state and says nothing of pairs: to join what is in the same window,
                let the window be part of the keys.
        """
        sides = (
            Side.of(self.schema, self.keys, self.time, left),
            Side.of(other.schema, other.keys, other.time, right),
        )
        join = Join(*sides)
        tables = {
            "left": rows(sides[0].kept, join.time, keep),
            "right": rows(sides[1].kept, join.time, keep),
        }
        needed = (sides[0].columns, sides[1].columns)
        return self._binary("join", other, join, tables, join.output, None, needed)

    def union(self, *others: KeyedStream) -> Stream:
        """The rows of several streams with the same columns as one stream."""
        for other in others:
            if other.schema != self.schema or other.keys != self.keys:
                raise InvalidInput(
                    f"union needs streams with the same columns and keys: {self.schema.names} by "
                    f"{list(self.keys)} and {other.schema.names} by {list(other.keys)} differ"
                )
            if other.time != self.time:
                raise InvalidInput(
                    f"union needs streams with the same event time: {self.time!r} and {other.time!r} differ"
                )
        return self.folded("union", (self, *others), union_of, {}, self.schema, pa.schema([]))

    def _binary(
        self,
        kind: str,
        other: KeyedStream,
        fold: Callable[..., Any],
        tables: Mapping[str, TableWish] | None,
        output: Any,
        later: Any,
        columns: tuple[tuple[str, ...] | None, tuple[str, ...] | None],
    ) -> Stream:
        mine = [self.schema.field(key).type for key in self.keys]
        theirs = [other.schema.field(key).type for key in other.keys]
        if mine != theirs:
            raise InvalidInput(f"the keys of the two streams differ in type: {mine} and {theirs}")
        kept = pa.schema([]) if later is None else later
        return self.folded(kind, (self, other), fold, tables, output, kept, columns)

    def folded(
        self,
        kind: str,
        inputs: tuple[KeyedStream, ...],
        fold: Callable[..., Any],
        tables: Mapping[str, TableWish] | None,
        output: Any,
        later: Any,
        columns: tuple[tuple[str, ...] | None, ...] | None = None,
    ) -> Stream:
        """What all folds are made with: see ``unary``; ``columns`` are those of each input that travel."""
        wishes = checked(tables, self.keys, self.time, self.stream.spark)
        out = self._output(output)
        kept = arrow_schema(later, self.stream.spark)

        def build(name: str, edges: tuple[Edge, ...]) -> Operator:
            return Fold(name, edges, fold, wishes, out, kept)

        return self._stateful(kind, inputs, build, columns)

    def _stateful(
        self,
        kind: str,
        inputs: tuple[KeyedStream, ...],
        build: Callable[[str, tuple[Edge, ...]], Operator],
        columns: tuple[tuple[str, ...] | None, ...] | None = None,
    ) -> Stream:
        wanted = columns or (None,) * len(inputs)
        edges = tuple(
            Edge(number, 0, None, one.keys, one.time, only(one.schema, some))
            for number, (one, some) in enumerate(zip(inputs, wanted, strict=True))
        )
        # Built once already here, so that what does not make sense is said at the user's line.
        return Stream(Stateful(kind, inputs, build, None, wanted), build(kind, edges).output)

    def _output(self, output: Any) -> pa.Schema:
        if output is None:
            raise InvalidInput(
                "a fold needs output=..., the schema of what it returns, such as 'auction long, n long'"
            )
        return arrow_schema(output, self.stream.spark)


class WindowedStream:
    """A keyed stream whose rows belong to windows of event time."""

    def __init__(self, keyed: KeyedStream, length: str | float, slide: str | float) -> None:
        self._keyed = keyed
        self._length, self._slide = (int(seconds(one) * 1e6) for one in (length, slide))
        if not 0 < self._slide <= self._length:
            raise InvalidInput(
                f"a window of {length!r} can't slide by {slide!r}: that must be more than nothing, and no "
                "more than the window"
            )

    def aggregate(self, **named: Function) -> Stream:
        """Built-in aggregates of each key and window: ``aggregate(n=sterna.count())``.

        There is one output row for each window in which the key has rows, once the watermark has passed its
        end: the key, ``window_start``, ``window_end``, and the results.
        """
        keyed = self._keyed
        assert keyed.time is not None
        keys = tuple(keyed.schema.field(key) for key in keyed.keys)
        functions = Named(named, keyed.schema, [*keyed.keys, *windows.NAMES], "aggregate")
        fold = windows.Windows(self._length, self._slide, keys, keyed.time, functions)
        columns = tuple(dict.fromkeys([*keyed.keys, keyed.time, *functions.columns]))
        return keyed.folded("window", (keyed,), fold, fold.tables, fold.output, fold.later, (columns,))


def _as_they_are(schema: pa.Schema) -> Recipe:
    return Recipe(tuple(schema.names), schema, schema)


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_int64(kind))
