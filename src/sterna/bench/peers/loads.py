"""What each NEXMark query reads when Sterna and Spark's own operators are compared, and how much of it.

A row is an event of a kind that the query reads; events of other kinds are not made, and nobody counts them.
An epoch holds the same number of rows every time, and its event time is as long every time, so it follows
from numbers when windows end. Where the goal is about many keys, the state holds many, and rows leave it as
well as enter it while epochs count:

- Query 3 keeps half of the persons and a fifth of the auctions for ever. Its epochs are the shortest, so they
  have the most rows, and it takes many of them until the JVM has compiled what they need, and to measure some
  seconds. What an epoch costs however few rows it has is more of a shorter one: it is measured with half of
  the rows, too.
- Queries 8 and NBQ8 keep all persons and auctions of twelve hours, which are somewhat more than thirteen
  epochs: a window ends in the fourteenth.
- Queries 4 and 6 keep the open auctions, of which some close in every epoch that counts, on both sides:
  Spark tells of an auction once twice the time has passed for which one is open at the most, because it keeps
  bids for that long. The warm-up is longer than that (``closing_since``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sterna.bench.peers.events import Files
from sterna.errors import InvalidInput
from sterna.nexmark.generator import SCHEMAS
from sterna.nexmark.shape import AUCTIONS, GROUP, PERSONS, Shape

IN_GROUP = dict(zip(SCHEMAS, (PERSONS, AUCTIONS, GROUP - PERSONS - AUCTIONS), strict=True))
"""Of every fifty events."""
WHOLE = {kind: tuple(schema.names) for kind, schema in SCHEMAS.items()}
MINUTE, HOUR = 60.0, 3600.0
LEAST_IN_FLIGHT = 100


@dataclass(frozen=True)
class Load:
    """What a query reads, from an empty state on.

    Attributes:
        reads: which columns of which kinds of events.
        each: rows an epoch, about; ``rows`` has the number.
        also: rows of the epochs with which it is measured once more, all else being the same.
        epochs: how many there are.
        warm: how many of them do not count, while code is compiled and the state is built up; at least one.
        span: seconds of event time an epoch.
        ends: seconds of event time from the end of a window to the end of the next; ``None`` if there are no
            windows.
        in_flight: how many auctions are open at a time, about, once that many have begun.
    """

    reads: Mapping[str, tuple[str, ...]]
    each: int = 300_000
    also: tuple[int, ...] = ()
    epochs: int = 12
    warm: int = 5
    span: float = 20.0
    ends: float | None = None
    in_flight: int = LEAST_IN_FLIGHT

    def __post_init__(self) -> None:
        if not 1 <= self.warm < self.epochs:
            raise InvalidInput(
                f"{self.warm} of {self.epochs} epochs are warm-up: at least one must be, and one must be left"
            )
        if self.each < self._in_group:
            raise InvalidInput(f"each is {self.each}: an epoch has at least {self._in_group} rows")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of events that it reads."""
        return tuple(self.reads)

    @property
    def _in_group(self) -> int:
        return sum(IN_GROUP[kind] for kind in self.kinds)

    @property
    def rows(self) -> int:
        """Rows an epoch.

        Example:
            >>> Load({"bid": ("price",)}, each=1_000).rows, Load({"bid": ("price",)}, each=1_000).events
            (966, 1050)
        """
        return self.each // self._in_group * self._in_group

    @property
    def events(self) -> int:
        """Events that happen in an epoch, of all kinds."""
        return self.each // self._in_group * GROUP

    @property
    def shape(self) -> Shape:
        """What the events look like."""
        return Shape(rate=self.events / self.span, in_flight=self.in_flight)

    @property
    def longest(self) -> str:
        """How long an auction is open at the most, to the millisecond: Spark keeps bids for that long."""
        horizon = self.in_flight * GROUP / AUCTIONS / self.shape.rate
        return f"{math.ceil(2e3 * horizon) + 1} milliseconds"

    @property
    def closing_since(self) -> float:
        """From which epoch on auctions close on Spark's side too: twice as long as one is open at the most.

        Example:
            >>> round(Load({"bid": ("price",)}, each=48_300, in_flight=10_000).closing_since, 1)
            12.7
        """
        return 4 * self.in_flight * GROUP / AUCTIONS / self.events

    @property
    def windows_ended(self) -> int | None:
        """How many windows leave the state in epochs that count.

        Each leaves it in the epoch after the one whose events pass its end.

        Example:
            >>> Load({"bid": ("price",)}, epochs=12, warm=5, span=20.0, ends=60.0).windows_ended
            2
        """
        if self.ends is None:
            return None
        most = int(self.epochs * self.span / self.ends)
        leaving = (int(number * self.ends / self.span) + 2 for number in range(1, most + 1))
        return sum(self.warm < epoch <= self.epochs for epoch in leaving)

    def files(self, folder: Path, cores: int) -> Files:
        """The events in files, as many of a kind in an epoch as there are cores."""
        name = f"{'-'.join(self.kinds)}-{self.events}-{self.epochs}-{self.span:g}-{self.in_flight}"
        return Files(folder / name, self.shape, self.epochs, self.events, self.reads, cores)


CLOSING = {
    "auction": ("id", "seller", "category", "reserve", "dateTime", "expires"),
    "bid": ("auction", "price", "dateTime"),
}
AUCTION_HOUSE = Load(CLOSING, each=200_000, epochs=21, warm=14, in_flight=40_000)
COUNTED = {"bid": ("auction", "dateTime")}
OFFERS = {"bid": ("auction", "bidder", "price", "dateTime")}
REGISTRATIONS = Load(
    {"person": ("id", "name", "dateTime"), "auction": ("seller", "reserve", "dateTime")},
    epochs=20,
    warm=10,
    span=3_300.0,
    ends=12 * HOUR,
)
LOADS = {
    "q1": Load(OFFERS, each=500_000),
    "q2": Load({"bid": ("auction", "price")}, each=500_000),
    "q3": Load(
        {"person": ("id", "name", "city", "state"), "auction": ("id", "seller", "category")},
        each=1_000_000,
        also=(500_000,),
        epochs=30,
        warm=15,
    ),
    "q4": AUCTION_HOUSE,
    "q5": Load(COUNTED, each=200_000, epochs=10, warm=4, ends=1.0),
    "q6": AUCTION_HOUSE,
    "q7": Load(OFFERS, ends=MINUTE),
    "q8": REGISTRATIONS,
    "nbq5": Load(COUNTED, ends=10.0),
    "nbq8": replace(REGISTRATIONS, reads={kind: WHOLE[kind] for kind in REGISTRATIONS.kinds}),
    "nbqx": Load(
        {"auction": ("id", "seller", "dateTime"), **OFFERS},
        each=50_000,
        epochs=10,
        warm=4,
        span=2_400.0,
        ends=4 * HOUR,
    ),
}
"""By query.

Where windows slide, Spark keeps what it has counted in each of its windows, sixty in Query 5: its epochs are
smaller, and fewer.
"""


@dataclass(frozen=True)
class Size:
    """How much is measured: what ``LOADS`` says, or less.

    Attributes:
        each: rows an epoch at the most; fewer auctions are open then, in proportion.
        epochs: how many there are at the most.
        warm: how many of them do not count, at the most.
    """

    each: int | None = None
    epochs: int | None = None
    warm: int | None = None

    def load(self, name: str) -> Load:
        """What a query reads.

        Example:
            >>> Size(each=3_000, epochs=3, warm=1).load("q4").in_flight
            600
        """
        whole = LOADS[name]
        each, epochs, warm = (
            own if most is None else min(own, most)
            for own, most in ((whole.each, self.each), (whole.epochs, self.epochs), (whole.warm, self.warm))
        )
        in_flight = max(LEAST_IN_FLIGHT, whole.in_flight * each // whole.each)
        also = whole.also if each == whole.each else ()
        return replace(whole, each=each, also=also, epochs=epochs, warm=warm, in_flight=in_flight)


FULL = Size()
QUICK = Size(each=5_000, epochs=3, warm=1)
