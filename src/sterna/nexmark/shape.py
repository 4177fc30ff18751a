"""What NEXMark's events look like: how many of each kind, how fast, how long auctions are open.

In: settings, and how many events there will be. Out: the event time of each; ``UnfitShape`` where a setting
leads beyond what a timestamp can say, naming the one that does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sterna.errors import InvalidInput

Ints = npt.NDArray[np.int64]

PERSONS, AUCTIONS, GROUP = 1, 3, 50
"""Of so many events in a group, the first are persons and the next are auctions; the rest are bids."""
MULTIPLIER = 953
"""Spreads the events of an out-of-order group over it; prime."""
MANY = 1_000_000
"""Events that any shape must have room for; who knows how many there will be checks that with ``check``."""
SHORTEST = 1000
"""Microseconds for which an auction is open at the least."""
EARLIEST, LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999, as SQL has them, in microseconds since 1970."""


class UnfitShape(InvalidInput):
    """Something about a shape can't be.

    Attributes:
        field: what it is, as ``Shape`` calls it; ``events`` for how many there are.
        reason: what is wrong with it, as the sentence goes on after its name.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}")
        self.field, self.reason = field, reason

    def __reduce__(self) -> tuple[type[UnfitShape], tuple[str, str]]:
        """Both parts, so that a process that is told of it can make it again."""
        return UnfitShape, (self.field, self.reason)


@dataclass(frozen=True)
class Shape:
    """What the events look like.

    Attributes:
        rate: events for each second of event time, before dilation.
        seed: another one gives other events.
        base: the event time of event 0, in microseconds since 1970.
        dilation: how many seconds of event time pass in a second.
        in_flight: how many auctions are open at a time, about.
        disorder: events in a group that come out of order; 1 for none.
        extra: bytes of padding of a person, an auction and a bid. As given, they are about as large as
            Rhino's: 206, 269 and 32 bytes.
    """

    rate: float = 10_000.0
    seed: int = 0
    base: int = 1_420_070_400_000_000
    dilation: float = 1.0
    in_flight: int = 100
    disorder: int = 1
    extra: tuple[int, int, int] = (120, 150, 0)

    def __post_init__(self) -> None:
        if not 0 < self.rate < math.inf or not 0 < self.dilation < math.inf:
            raise InvalidInput(
                f"rate and dilation are {self.rate} and {self.dilation}: both must be numbers above zero"
            )
        if not 0 <= self.seed < 2**63:
            raise InvalidInput(f"seed is {self.seed}: it must be between 0 and 2^63 - 1")
        if self.in_flight < 1 or self.disorder < 1 or min(self.extra) < 0:
            raise InvalidInput("in_flight and disorder are at least 1, and extra is not negative")
        if self.disorder % MULTIPLIER == 0:
            raise InvalidInput(f"disorder is {self.disorder}: a multiple of {MULTIPLIER} mixes nothing")
        for field, value in (("in_flight", self.in_flight), ("disorder", self.disorder)):
            if value >= 2**63:
                raise UnfitShape(field, f"is {value}: it must be less than 2^63")
        if not EARLIEST <= self.base <= LATEST:
            raise UnfitShape("base", f"is {self.base}: it must lie in the years 1 to 9999, in microseconds")
        self.check(MANY)

    def check(self, events: int) -> None:
        """Raises ``UnfitShape`` if one of so many events is, or an auction expires, after the year 9999.

        It names what is to blame. Timestamps that do not fit would silently be other, negative ones.

        Example:
            >>> Shape().check(10**12)
        """
        if events > 2**63 // MULTIPLIER or (events > MANY and self._last(events) > LATEST):
            raise UnfitShape("events", f"is {events}: the last of them would be later than the year 9999")
        if self._last(events) > LATEST:
            # Whichever makes it fit if it is nothing out of the ordinary; the rate, if none of them does.
            for field, ordinary, way in (
                ("disorder", self._last(events, disorder=1), "large"),
                ("dilation", self._last(events, dilation=min(self.dilation, 1.0)), "large"),
                ("base", self._last(events, base=Shape.base), "late"),
                ("rate", 0.0, "small"),
            ):
                if ordinary <= LATEST:
                    reason = f"too {way}: event {events:,} would be later than the year 9999"
                    raise UnfitShape(field, f"is {getattr(self, field)}, which is {reason}")
        if self._last(events) + SHORTEST + 2 * self.horizon > LATEST:
            reason = "too large: auctions would expire later than the year 9999"
            raise UnfitShape("in_flight", f"is {self.in_flight}, which is {reason}")

    @property
    def horizon(self) -> float:
        """Microseconds in which as many auctions as are in flight begin, on the average."""
        return self.in_flight * GROUP / AUCTIONS * 1e6 * self.dilation / self.rate

    def _last(
        self,
        events: int,
        disorder: int | None = None,
        dilation: float | None = None,
        base: int | None = None,
    ) -> float:
        """What no event time of the first events exceeds."""
        group = self.disorder if disorder is None else disorder
        place = min(-(-events // group) * group, MULTIPLIER * events)
        factor = self.dilation if dilation is None else dilation
        # As in ``times``, so that what overflows there is infinite here.
        return (self.base if base is None else base) + place * 1e6 * factor / self.rate

    def times(self, numbers: Ints) -> Ints:
        """The event time of each event, in microseconds."""
        place = numbers
        if self.disorder > 1:
            group = numbers // self.disorder * self.disorder
            place = group + numbers * MULTIPLIER % self.disorder
        # Divided last, so that a second's worth of events is a second, whatever the rate.
        return self.base + (place * 1e6 * self.dilation / self.rate).astype(np.int64)
