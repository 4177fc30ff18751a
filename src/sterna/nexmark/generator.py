"""NEXMark's events: persons, auctions and bids, each a function of its number and a seed.

In: event numbers [start, stop). Out: three record batches, in the order of event numbers. Nothing is
remembered between calls: any range can be made again, in any process, in any order, and is the same. Of every
50 events the first is a person, the next three are auctions, the rest are bids; what they refer to follows
from how many of each there are by then, as in the original benchmark.

A draw is a hash of (seed, event number, what is drawn): vectorised, and without a generator whose state would
have to be carried along.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sterna.errors import InvalidInput
from sterna.nexmark.shape import AUCTIONS, GROUP, PERSONS, SHORTEST, Ints, Shape

Draws = npt.NDArray[np.uint64]

FIRST_PERSON = FIRST_AUCTION = 1000
FIRST_CATEGORY, CATEGORIES = 10, 5
ACTIVE_PERSONS, HOT = 1000, 100
PERSONS_AHEAD, AUCTIONS_AHEAD = 10, 10
FIRST_NAMES = [
    "Ada",
    "Bruno",
    "Clara",
    "Davor",
    "Emil",
    "Fatou",
    "Greta",
    "Hideo",
    "Ines",
    "Jonas",
    "Kofi",
    "Lena",
    "Mirko",
    "Nadia",
    "Oskar",
    "Priya",
]
LAST_NAMES = [
    "Abel",
    "Brandt",
    "Castro",
    "Dunn",
    "Ekman",
    "Fischer",
    "Gallo",
    "Hansen",
    "Ito",
    "Jansen",
    "Kovac",
    "Lopez",
    "Meyer",
    "Novak",
    "Okoro",
    "Peters",
]
CITIES = [
    "Bend",
    "Boise",
    "Cheyenne",
    "Eugene",
    "Fresno",
    "Laramie",
    "Mesa",
    "Oakland",
    "Phoenix",
    "Seattle",
    "Spokane",
    "Tucson",
]
STATES = ["AZ", "CA", "ID", "OR", "WA", "WY"]
TIME = pa.timestamp("us", tz="UTC")

PERSON = pa.schema(
    {
        "id": pa.int64(),
        "name": pa.string(),
        "emailAddress": pa.string(),
        "creditCard": pa.string(),
        "city": pa.string(),
        "state": pa.string(),
        "dateTime": TIME,
        "extra": pa.string(),
    }
)
AUCTION = pa.schema(
    {
        "id": pa.int64(),
        "itemName": pa.string(),
        "description": pa.string(),
        "initialBid": pa.int64(),
        "reserve": pa.int64(),
        "dateTime": TIME,
        "expires": TIME,
        "seller": pa.int64(),
        "category": pa.int64(),
        "extra": pa.string(),
    }
)
BID = pa.schema(
    {
        "auction": pa.int64(),
        "bidder": pa.int64(),
        "price": pa.int64(),
        "dateTime": TIME,
        "extra": pa.string(),
    }
)
SCHEMAS = {"person": PERSON, "auction": AUCTION, "bid": BID}
"""The kinds of events, and what each looks like."""


@dataclass(frozen=True)
class Events:
    """Some events by kind, each in the order of event numbers."""

    persons: pa.RecordBatch
    auctions: pa.RecordBatch
    bids: pa.RecordBatch

    @property
    def batches(self) -> tuple[pa.RecordBatch, pa.RecordBatch, pa.RecordBatch]:
        """In the order of ``SCHEMAS``."""
        return self.persons, self.auctions, self.bids


def generate(shape: Shape, start: int, stop: int, kinds: Collection[str] = tuple(SCHEMAS)) -> Events:
    """The events [start, stop); of kinds that are not asked for, none.

    Example:
        >>> events = generate(Shape(), 0, 100)
        >>> events.persons.num_rows, events.auctions.num_rows, events.bids.num_rows
        (2, 6, 92)
        >>> generate(Shape(), 50, 100).bids.equals(events.bids.slice(46))
        True
    """
    if start < 0:
        raise InvalidInput(f"there is no event {start}: they are numbered from 0 on")
    shape.check(max(start, stop))
    numbers = np.arange(start, max(start, stop), dtype=np.int64)
    kind = kind_of(numbers)
    chosen = [numbers[kind == code] if name in kinds else numbers[:0] for code, name in enumerate(SCHEMAS)]
    return Events(persons(shape, chosen[0]), auctions(shape, chosen[1]), bids(shape, chosen[2]))


def kind_of(numbers: Ints) -> Ints:
    """The kind of each event, as its place in ``SCHEMAS``."""
    place = numbers % GROUP
    return (place >= PERSONS).astype(np.int64) + (place >= PERSONS + AUCTIONS)


def persons(shape: Shape, numbers: Ints) -> pa.RecordBatch:
    """The persons with these event numbers."""
    draw = _Draw(shape.seed, numbers)
    columns = [
        pa.array(numbers // GROUP + FIRST_PERSON),
        draw.one_of(1, [f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]),
        draw.letters(2, 12, {7: "@", 10: "."}),
        draw.digits(3, 19, {4: " ", 9: " ", 14: " "}),
        draw.one_of(4, CITIES),
        draw.one_of(5, STATES),
        _timestamps(shape.times(numbers)),
        draw.letters(6, shape.extra[0]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PERSON)


def auctions(shape: Shape, numbers: Ints) -> pa.RecordBatch:
    """The auctions with these event numbers."""
    draw, times = _Draw(shape.seed, numbers), shape.times(numbers)
    initial = draw.price(1)
    columns = [
        pa.array(last_auction(numbers) + FIRST_AUCTION),
        draw.letters(2, 20),
        draw.letters(3, 40),
        pa.array(initial),
        pa.array(initial + draw.price(4)),
        _timestamps(times),
        _timestamps(times + SHORTEST + draw.below(5, max(1, int(2 * shape.horizon)))),
        pa.array(_person(draw, numbers, hot=0, streams=(6, 7)) + FIRST_PERSON),
        pa.array(FIRST_CATEGORY + draw.below(8, CATEGORIES)),
        draw.letters(9, shape.extra[1]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=AUCTION)


def bids(shape: Shape, numbers: Ints) -> pa.RecordBatch:
    """The bids with these event numbers."""
    draw, last = _Draw(shape.seed, numbers), last_auction(numbers)
    least = np.maximum(last - shape.in_flight, 0)
    any_auction = least + draw.below(2, last - least + 1 + AUCTIONS_AHEAD)
    auction = np.where(draw.below(1, 2) == 0, last // HOT * HOT, any_auction)
    columns = [
        pa.array(auction + FIRST_AUCTION),
        pa.array(_person(draw, numbers, hot=1, streams=(3, 4)) + FIRST_PERSON),
        pa.array(draw.price(5)),
        _timestamps(shape.times(numbers)),
        draw.letters(6, shape.extra[2]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=BID)


def last_auction(numbers: Ints) -> Ints:
    """The newest auction at each event, counted from 0; at the very first event it is none, -1.

    Example:
        >>> last_auction(np.array([0, 1, 3, 4, 49, 50, 51])).tolist()
        [-1, 0, 2, 2, 2, 2, 3]
    """
    group, place = numbers // GROUP, numbers % GROUP
    return group * AUCTIONS + np.minimum(place - PERSONS, AUCTIONS - 1)


def _person(draw: _Draw, numbers: Ints, hot: int, streams: tuple[int, int]) -> Ints:
    """A person: three times out of four one of the hot ones.

    Else it is one of the active ones or of those to come.
    """
    last = numbers // GROUP
    active = np.minimum(last + 1, ACTIVE_PERSONS)
    anyone = last + 1 - active + draw.below(streams[1], active + PERSONS_AHEAD)
    return np.where(draw.below(streams[0], 4) > 0, last // HOT * HOT + hot, anyone)


class _Draw:
    """Draws for some events; ``stream`` tells apart what is drawn for one event."""

    def __init__(self, seed: int, numbers: Ints) -> None:
        self._numbers = numbers.astype(np.uint64)
        self._seed = _mixed(np.array([seed], np.int64).view(np.uint64))[0]

    def __call__(self, stream: int) -> Draws:
        step = np.uint64(0x9E3779B97F4A7C15)
        offset = np.array([stream], np.uint64) * np.uint64(0xD1B54A32D192ED03)
        return _mixed((self._numbers + self._seed) * step + offset)

    def unit(self, stream: int) -> npt.NDArray[np.float64]:
        """Between 0 and 1."""
        return np.asarray((self(stream) >> np.uint64(11)) * 2.0**-53, np.float64)

    def below(self, stream: int, limit: int | Ints) -> Ints:
        """Between 0 and a limit, which it never is."""
        return (self.unit(stream) * limit).astype(np.int64)

    def price(self, stream: int) -> Ints:
        """In cents, from a dollar to a million, small ones as likely as large ones by their logarithm."""
        return np.rint(10.0 ** (6 * self.unit(stream)) * 100).astype(np.int64)

    def one_of(self, stream: int, words: Sequence[str]) -> pa.Array:
        """One of some words."""
        return pa.array(words).take(pa.array(self.below(stream, len(words))))

    def letters(self, stream: int, length: int, fixed: dict[int, str] | None = None) -> pa.Array:
        """Small letters, with fixed characters at some places."""
        return self._text(stream, length, 26, ord("a"), fixed or {})

    def digits(self, stream: int, length: int, fixed: dict[int, str]) -> pa.Array:
        """Digits, with fixed characters at some places."""
        return self._text(stream, length, 10, ord("0"), fixed)

    def _text(self, stream: int, length: int, alphabet: int, first: int, fixed: dict[int, str]) -> pa.Array:
        count = len(self._numbers)
        words = [self((stream << 16) + i) for i in range((length + 7) // 8)]
        raw = np.stack(words, axis=1).view(np.uint8) if words else np.zeros((count, 0), np.uint8)
        text = np.ascontiguousarray(raw.reshape(count, 8 * len(words))[:, :length] % alphabet + first)
        for at, character in fixed.items():
            text[:, at] = ord(character)
        offsets = np.arange(count + 1, dtype=np.int32) * length
        return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))


def _mixed(values: Draws) -> Draws:
    """A bijection of 64 bits that leaves no pattern (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _timestamps(microseconds: Ints) -> pa.Array:
    return pa.array(microseconds).view(TIME) if len(microseconds) else pa.array([], TIME)
