"""Texts of made-up words, drawn by Zipf's law: each a function of its number and a seed.

Nothing is remembered between calls: any text can be made again, in any process, in any order, and is the
same. A draw is a hash of (number of the text, place in it, seed).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

import sterna
from sterna.errors import InvalidInput, check_whole
from sterna.examples.items import SPACE, expanded
from sterna.folds import Ints, ints, times
from sterna.hashing import hash_keys
from sterna.stream import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLACES = 1 << 16
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


@dataclass(frozen=True)
class Shape:
    """What the texts look like.

    Attributes:
        rate: texts for each second of event time.
        seed: another one gives other texts.
        base: the event time of text 0, in microseconds since 1970.
        vocabulary: how many words there are.
        exponent: the word of rank r comes as often as 1 / r to this power; 0 for all alike.
        least: how many words a text has at least.
        most: how many words a text has at most.
        drift: after so many texts the first word of all becomes the last, and every other one moves up a
            rank; 0 for never.
    """

    rate: float = 1_000.0
    seed: int = 0
    base: int = 1_420_070_400_000_000
    vocabulary: int = 10_000
    exponent: float = 1.0
    least: int = 4
    most: int = 12
    drift: int = 0

    def __post_init__(self) -> None:
        if not self.rate > 0 or not self.exponent >= 0:
            raise InvalidInput(
                f"rate is {self.rate} and exponent is {self.exponent}: a rate is above zero, "
                "an exponent not below"
            )
        check_whole("vocabulary", self.vocabulary, 1)
        check_whole("drift", self.drift, 0)
        check_whole("least", self.least, 1)
        check_whole("most", self.most, self.least)
        if self.most >= PLACES:
            raise InvalidInput(f"most is {self.most}: a text has less than {PLACES:,} words")

    def times(self, numbers: Ints) -> Ints:
        """The event time of each text, in microseconds."""
        return self.base + (numbers * 1e6 / self.rate).astype(np.int64)


def texts(numbers: DataFrame, shape: Shape | None = None, *, number: str = "value") -> Stream:
    """(text, time) of the texts with these numbers, made in the router: no text passes through Spark.

    Args:
        numbers: a streaming DataFrame with a column of numbers, such as Spark's ``rate`` source makes.
        shape: what the texts look like.
        number: the column with the numbers.
    """
    shaped = shape or Shape()
    passed = (numbers[number] * F.lit(1e6) / F.lit(shaped.rate)).cast("long")
    # The time is there before the text, so that late rows are known by it, and not by what a later function
    # makes of it.
    timed = numbers.select(
        numbers[number].cast("long").alias("number"),
        F.timestamp_micros(F.lit(shaped.base) + passed).alias("time"),
    )
    return sterna.read(timed).map(
        lambda rows: pa.table({"text": text_of(shaped, ints(rows, "number")), "time": rows.column("time")})
    )


def generate(shape: Shape, numbers: Ints) -> pa.Table:
    """(text, time) of the texts with these numbers.

    Example:
        >>> generate(Shape(vocabulary=30, most=5), np.arange(3))["text"].to_pylist()
        ['biba beba goba beba beba', 'doba buba biba biba guba', 'baba deba beba baba baba']
    """
    return pa.table({"text": text_of(shape, numbers), "time": times(shape.times(numbers))})


def text_of(shape: Shape, numbers: Ints) -> pa.Array:
    """The texts with these numbers."""
    start = np.zeros(len(numbers), np.int64)
    length = shape.least + (_draw(shape, numbers, start) * (shape.most - shape.least + 1)).astype(np.int64)
    row, place = expanded(length)
    weights = _weights(shape.vocabulary, shape.exponent)
    rank = np.searchsorted(weights, _draw(shape, numbers[row], place + 1), "right")
    if shape.drift:
        rank = (rank + numbers[row] // shape.drift) % shape.vocabulary
    offsets = pa.array(np.append(0, np.cumsum(length)), pa.int32())
    words = vocabulary(shape.vocabulary).take(pa.array(rank))
    return pc.binary_join(pa.ListArray.from_arrays(offsets, words), SPACE)


@lru_cache(4)
def vocabulary(count: int) -> pa.Array:
    """So many words, all different; the first are the shortest.

    Example:
        >>> vocabulary(72).take([0, 1, 70, 71]).to_pylist()
        ['baba', 'beba', 'babe', 'bebe']
    """
    lengths = (itertools.product(SYLLABLES, repeat=length) for length in itertools.count(2))
    endless = itertools.chain.from_iterable(lengths)
    return pa.array(["".join(reversed(word)) for word in itertools.islice(endless, count)])


@lru_cache(4)
def _weights(count: int, exponent: float) -> npt.NDArray[np.float64]:
    """How likely the first words are together, for each number of words but all."""
    total = np.cumsum(np.arange(1, count + 1) ** -float(exponent))
    return np.asarray(total[:-1] / total[-1], np.float64)


def _draw(shape: Shape, numbers: Ints, places: Ints) -> npt.NDArray[np.float64]:
    """Between 0 and 1, which it never is."""
    hashes = hash_keys([pa.array(numbers), pa.array(places + shape.seed * PLACES)])
    return np.asarray((hashes >> np.uint64(11)) * 2.0**-53, np.float64)
