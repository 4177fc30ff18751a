"""NEXMark as a Spark streaming source: ``spark.readStream.format("nexmark").option("rate", 100_000).load()``.

Known to a session after ``register(spark)``; importing ``sterna.nexmark`` does so for the active one, and for
those that ``sterna.session`` makes later. An offset is the number of the next event, so every epoch can be
read again and is the same. It also holds the options that decide what the events are, and in what form they
come: a query that starts again with others is refused, for its event number n would be another one.

Options:
    rate: events a second; event ``n`` is due ``n / rate`` seconds after ``begin``, whatever the reader does.
        0: as many as ``perEpoch`` says, at once. Without ``rate`` and ``begin`` the trigger ``availableNow``
        reads all events, if it is known how many there are.
    begin: seconds since 1970 at which event 0 is due. Unless given, a query that starts or goes on has no
        backlog.
    events: how many there are in all; the stream then stays silent.
    until: a file of the driver's machine; once it is there, it tells how many there are in all.
    eventRate: events for each second of event time, where that is not ``rate``.
    perEpoch: at most so many events an epoch.
    partitions: into how many tasks an epoch is cut.
    packed: ``true`` for chunks of events as Arrow bytes, which Sterna's router reads (see ``streams``), in
        place of rows.
    kinds: which kinds of events to make, such as ``auction,bid``; the numbers of the others stay free.
    seed, base, dilation, inFlight, disorder: see ``generator.Shape``.

A row has ``kind`` (person, auction or bid), ``dateTime``, and a struct for each kind, of which one is not
null. Options that are unknown or can't be are refused when the stream is made.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from sterna.errors import InvalidInput
from sterna.nexmark.generator import SCHEMAS, generate, kind_of
from sterna.nexmark.packing import PACKED, ROWS, packed, rows
from sterna.nexmark.shape import Shape, UnfitShape
from sterna.session import on_session

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as AvailableNow
except ImportError:  # Spark 4.1, where such a trigger reads one epoch

    class AvailableNow:  # type: ignore[no-redef]
        """Nothing to know about."""


CHUNK = 50_000
"""Events that are made at once: they fit a processor's cache."""

NAMES = [
    "rate",
    "begin",
    "events",
    "until",
    "eventRate",
    "perEpoch",
    "partitions",
    "packed",
    "kinds",
    "seed",
    "base",
    "dilation",
    "inFlight",
    "disorder",
]


DECIDED = {
    "eventRate": "rate",
    "seed": "seed",
    "base": "base",
    "dilation": "dilation",
    "inFlight": "in_flight",
    "disorder": "disorder",
}
"""The options that decide what the events are, and what ``Shape`` calls them."""
MOST_PARTITIONS = 100_000


@dataclass(frozen=True)
class Options:
    """What a stream was asked to be; see the module's docstring."""

    shape: Shape
    rate: float
    begin: float | None
    events: int | None
    per_epoch: int | None
    partitions: int
    packed: bool
    kinds: tuple[str, ...] = tuple(SCHEMAS)
    until: str | None = None
    paced: bool = True
    """Whether ``rate`` or ``begin`` was given: somebody wants events when they are due."""

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Options:
        """From the options of a reader, whose names Spark does not keep in their case."""
        options = _Given({name.lower(): value for name, value in given.items()})
        rate, per_epoch = options.number("rate", 10_000, 0), options.count("perEpoch")
        if not rate and per_epoch is None:
            raise InvalidInput("nexmark with rate 0 needs perEpoch: how many events an epoch has")
        flag = options.text.get("packed", "false").lower()
        if flag not in ("true", "false"):
            raise InvalidInput(f"nexmark's option packed is {flag!r}: it must be true or false")
        kinds = tuple(kind.strip() for kind in options.text.get("kinds", ",".join(SCHEMAS)).split(","))
        for kind in kinds:
            if kind not in SCHEMAS:
                raise InvalidInput(f"nexmark's option kinds names {kind!r}; there are {', '.join(SCHEMAS)}")
        events = options.count("events")
        return cls(
            shape=_shape(options, rate, events),
            rate=rate,
            begin=options.number("begin", 0, 0) if "begin" in options.text else None,
            events=events,
            per_epoch=per_epoch,
            partitions=options.whole("partitions", 2, 1, MOST_PARTITIONS),
            packed=flag == "true",
            kinds=tuple(kind for kind in SCHEMAS if kind in kinds),
            until=options.text.get("until"),
            paced="rate" in options.text or "begin" in options.text,
        )

    @property
    def decided(self) -> dict[str, str]:
        """What decides what a reader gets, as offsets hold it; Spark allows no fractions there."""
        shape = {name: str(getattr(self.shape, field)) for name, field in DECIDED.items()}
        return {**shape, "packed": str(self.packed).lower(), "kinds": ",".join(self.kinds)}


def _shape(options: _Given, rate: float, events: int | None) -> Shape:
    """What the events look like; what can't be is named as the option that it is."""
    names = {field: name for name, field in DECIDED.items()}
    event_rate = rate or Shape.rate
    if "eventrate" in options.text:
        event_rate = options.number("eventRate", event_rate, 1e-9)
    else:
        names["rate"] = "rate"
    try:
        shape = Shape(
            rate=event_rate,
            seed=options.whole("seed", 0, 0),
            base=options.whole("base", Shape.base, 0),
            dilation=options.number("dilation", 1, 1e-9),
            in_flight=options.whole("inFlight", 100, 1),
            disorder=options.whole("disorder", 1, 1),
        )
        shape.check(events or 0)
    except UnfitShape as error:
        raise InvalidInput(f"nexmark's option {names.get(error.field, error.field)} {error.reason}") from None
    return shape


class _Given:
    """Options as they were given, by their names in small letters."""

    def __init__(self, text: dict[str, str]) -> None:
        self.text = text
        unknown = sorted(set(text) - {name.lower() for name in NAMES} - {"path"})
        if unknown:
            raise InvalidInput(f"nexmark has no option {unknown[0]!r}; there are {', '.join(NAMES)}")

    def number(self, name: str, usual: float, least: float) -> float:
        """A number, not less than the least."""
        text = self.text.get(name.lower())
        try:
            value = usual if text is None else float(text.replace("_", "no "))
        except ValueError:
            raise InvalidInput(f"nexmark's option {name} is {text!r}: it must be a number") from None
        if not least <= value < math.inf:
            raise InvalidInput(
                f"nexmark's option {name} is {text}: it must be at least {least:g}, and a number"
            )
        return value

    def whole(self, name: str, usual: int, least: int, most: float = math.inf) -> int:
        """A whole number, not less than the least nor more than the most."""
        text = self.text.get(name.lower())
        if text is not None and not re.fullmatch(r"\s*[+-]?[0-9]+\s*", text):
            raise InvalidInput(f"nexmark's option {name} is {text!r}: it must be a whole number")
        value = usual if text is None else int(text)
        if value < least:
            raise InvalidInput(f"nexmark's option {name} is {text}: it must be at least {least}")
        if value > most:
            raise InvalidInput(f"nexmark's option {name} is {text}: it must be at most {most:,}")
        return value

    def count(self, name: str) -> int | None:
        """A whole number from 1 on, if there is one."""
        return self.whole(name, 1, 1) if name.lower() in self.text else None


class Nexmark(DataSource):
    """See the module's docstring."""

    @classmethod
    def name(cls) -> str:
        """What ``format`` takes."""
        return "nexmark"

    def schema(self) -> StructType:
        """Rows, or packed events."""
        return from_arrow_schema(PACKED if Options.parse(self.options).packed else ROWS)

    def reader(self, schema: StructType) -> NoReturn:  # noqa: ARG002 - Spark's name
        """Refuses to be read in batches."""
        raise InvalidInput(
            "nexmark is a stream: spark.readStream.format('nexmark'); `sterna nexmark write` makes files of "
            "its events for whoever reads them in batches"
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's name
        """The stream."""
        return Reader(Options.parse(self.options))


Offset = dict[str, Any]
"""See ``Reader``; as JSON it is in Spark's log of offsets."""


@dataclass(frozen=True)
class Range(InputPartition):
    """The events of one task."""

    start: int
    stop: int


class Reader(DataSourceStreamReader, AvailableNow):
    """The stream; offsets are ``{"event": n, "made": {option: value}}``, older ones only ``{"event": n}``."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._begin = options.begin
        self._seen = 0
        self._ends = False
        self._end: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """The first event."""
        return self._offset(0)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The events that are due next time are the last; without a rate all there are, or an epoch's."""
        self._ends, self._end = True, None

    def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:  # noqa: ARG002, N802
        """The events that are due; before Spark 4.2 it does not say where the stream is."""
        at = self._seen if start is None else max(self._seen, self._number(start))
        due = self._due(at)
        if self._ends:
            self._end = due if self._end is None else self._end
            due = min(due, self._end)
        if self._options.per_epoch is not None:
            due = min(due, at + self._options.per_epoch)
        if start is not None and due <= int(start["event"]) == at:
            return start  # as it is: Spark takes an offset that is written differently for new events
        return self._offset(max(at, due))

    def _offset(self, event: int) -> Offset:
        return {"event": event, "made": self._options.decided}

    def _number(self, offset: Offset) -> int:
        """The next event; ``InvalidInput`` if events were others when the offset was made."""
        for name, now in self._options.decided.items():
            then = offset.get("made", {}).get(name, now)
            if then != now:
                usual = ", which is rate unless it is given," if name == "eventRate" else ""
                raise InvalidInput(
                    f"the checkpoint's events were made with {name} {then}, and nexmark's option "
                    f"{name}{usual} is {now} now: the query would go on among other events than it has read. "
                    f"Set {name} to {then}, or begin with a new checkpoint"
                )
        return int(offset["event"])

    def _due(self, at: int) -> int:
        """How many events are due, of which the first ``at`` have been read."""
        options, known = self._options, self._known()
        if known is not None and (not options.rate or (self._ends and not options.paced)):
            return known
        if options.rate:
            if self._begin is None:
                self._begin = time.time() - at / options.rate
            due = int((time.time() - self._begin) * options.rate)
        else:
            due = at + (options.per_epoch or 0)
        return due if known is None else min(due, known)

    def _known(self) -> int | None:
        """How many events there are in all, once that is known."""
        options = self._options
        told = [] if options.events is None else [options.events]
        if options.until is not None and os.path.exists(options.until):
            told.append(_number_in(options.until))
        return min(told, default=None)

    def partitions(self, start: Offset, end: Offset) -> list[Range]:
        """Ranges of about the same size; ``InvalidInput`` if the stream would go back.

        Before Spark 4.2 a source is not told where it was when a query starts again.
        """
        first, last = self._number(start), self._number(end)
        if last < first:
            raise InvalidInput(
                f"nexmark's stream was at event {first} and would go back to {last}: before Spark 4.2 a "
                "source is not told where it was, so name begin with a rate, or perEpoch as large as events"
            )
        self._seen = max(self._seen, last)
        parts = min(self._options.partitions, last - first)
        cuts = [first + (last - first) * part // parts for part in range(parts + 1)] if parts else []
        return [Range(a, b) for a, b in itertools.pairwise(cuts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The events of a range."""
        assert isinstance(partition, Range)
        options = self._options
        for start in range(partition.start, partition.stop, CHUNK):
            stop = min(start + CHUNK, partition.stop)
            events = generate(options.shape, start, stop, options.kinds)
            if options.packed:
                yield packed(events)
                continue
            numbers = np.arange(start, stop)
            codes = [code for code, kind in enumerate(SCHEMAS) if kind in options.kinds]
            yield rows(numbers[np.isin(kind_of(numbers), codes)], events)

    def commit(self, end: Offset) -> None:
        """Nothing to let go of."""


def _number_in(file: str) -> int:
    text = Path(file).read_text(encoding="utf-8")
    if not re.fullmatch(r"\s*[0-9]+\s*", text):
        raise InvalidInput(
            f"{file}, which nexmark's option until names, holds {text[:40]!r} in place of a number of events"
        )
    return int(text)


def register(spark: SparkSession | None = None) -> None:
    """Makes ``format("nexmark")`` known to a session.

    If none is given, to the active one and to those that ``sterna.session`` makes. Doing so again does no
    harm.
    """
    if spark is None:
        on_session(register)
        spark = SparkSession.getActiveSession()
    if spark is not None:
        spark.dataSource.register(Nexmark)
