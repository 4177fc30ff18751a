"""The transition matrix: from so many workers, how likely is each other number of workers next.

A row tells what follows a number of workers once it changes: time in which nothing migrates is not in it. It
is learnt from changes that happened, or given; a matrix that is none raises ``InvalidInput`` that names the
entry.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sterna.errors import InvalidInput, short
from sterna.planning.checks import float_of, listed, whole

Floats = npt.NDArray[np.float64]
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Matrix:
    """Probabilities of the next number of workers.

    Attributes:
        counts: the numbers of workers there may be, ascending.
        rows: for each of them the probabilities of all of them.
    """

    counts: tuple[int, ...]
    rows: Floats

    @classmethod
    def of(cls, counts: Iterable[int], rows: Sequence[Sequence[float]] | Floats) -> Matrix:
        """A matrix that is given, checked.

        Example:
            >>> Matrix.of([2, 3], [[0.0, 1.0], [0.5, 0.6]])
            Traceback (most recent call last):
            sterna.errors.InvalidInput: the probabilities of what follows 3 workers add up to 1.1, not to 1
        """
        known = _checked_counts(counts)
        array = np.array(
            [[_chance(*place, one) for place, one in row] for row in _placed(known, rows)], np.float64
        )
        for count, total in zip(known, array.sum(axis=1).tolist(), strict=True):
            if abs(total - 1) > ROUNDING:
                raise InvalidInput(
                    f"the probabilities of what follows {count} workers add up to {total:.12g}, not to 1"
                )
        return cls(known, array)

    @classmethod
    def learnt(cls, changes: Iterable[tuple[int, int]], counts: Iterable[int] | None = None) -> Matrix:
        """How often each number of workers followed each, as probabilities.

        A number that nothing ever followed is taken to be followed by its neighbours, alike.

        Args:
            changes: from how many workers to how many, each time that this changed.
            counts: the numbers of workers there may be; those in the changes unless given.

        Example:
            >>> Matrix.learnt([(2, 3), (3, 2), (2, 3), (3, 4)]).rows.tolist()
            [[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]
        """
        pairs = [_change(at, pair) for at, pair in enumerate(listed("changes", changes))]
        if counts is None:
            if not pairs:
                raise InvalidInput("no change of the number of workers to learn from, and no counts given")
            counts = sorted({count for pair in pairs for count in pair})
        known = _checked_counts(counts)
        seen = np.zeros((len(known), len(known)))
        places = {count: place for place, count in enumerate(known)}
        for pair in pairs:
            for count in pair:
                if count not in places:
                    raise InvalidInput(
                        f"the history has {count} workers, which is none of the counts {_listed(known)}"
                    )
            seen[places[pair[0]], places[pair[1]]] += 1
        for row in np.flatnonzero(seen.sum(axis=1) == 0):
            seen[row, [place for place in (row - 1, row + 1) if 0 <= place < len(known)] or [row]] = 1
        return cls.of(known, seen / seen.sum(axis=1, keepdims=True))

    def place(self, count: int) -> int:
        """The row of a number of workers; ``InvalidInput`` if there is none."""
        try:
            return self.counts.index(count)
        except ValueError:
            raise InvalidInput(f"the matrix knows {_listed(self.counts)} workers, and not {count}") from None

    def following(self, count: int) -> dict[int, float]:
        """What may follow a number of workers, other than itself, and how likely each is."""
        row = self.rows[self.place(count)]
        return {
            after: float(chance)
            for after, chance in zip(self.counts, row, strict=True)
            if chance > 0 and after != count
        }

    def staying(self, count: int) -> float:
        """How likely a number of workers follows itself."""
        place = self.place(count)
        return float(self.rows[place, place])


def _placed(known: Sequence[int], rows: Any) -> Iterator[list[tuple[tuple[int, int], Any]]]:
    """The entries of each row, each with the count that it is of and the one that that follows."""
    must = f"{len(known)} worker counts need a matrix of {len(known)} rows and columns"
    if hasattr(rows, "__array__") and not isinstance(rows, np.ma.MaskedArray):
        rows = np.asarray(rows)
    given = listed("the matrix", rows)
    if len(given) != len(known):
        raise InvalidInput(f"{must}; this one has {len(given)} rows")
    for count, row in zip(known, given, strict=True):
        entries = listed(f"what follows {count} workers", row)
        if len(entries) != len(known):
            raise InvalidInput(f"{must}; the row of what follows {count} workers has {len(entries)} entries")
        yield [((after, count), one) for after, one in zip(known, entries, strict=True)]


def _chance(after: int, count: int, value: Any) -> float:
    chance = float_of(value)
    if not 0 <= chance < math.inf:
        told = (
            "masked"
            if value is np.ma.masked
            else short(value.item() if isinstance(value, np.generic) else value)
        )
        raise InvalidInput(
            f"the probability of {after} workers after {count} is {told}: it must be a number from 0 to 1"
        )
    return chance


def _change(at: int, pair: Any) -> tuple[int, int]:
    entries = listed(f"change {at}", pair)
    if len(entries) != 2:
        raise InvalidInput(
            f"change {at} is {pair!r}: it must be two worker counts, that before and that after"
        )
    before, after = (whole(f"a worker count of change {at}", one, 1) for one in entries)
    return before, after


def _checked_counts(counts: Iterable[int]) -> tuple[int, ...]:
    known = [whole("a worker count", count, 1) for count in listed("counts", counts)]
    if not known or known != sorted(set(known)):
        raise InvalidInput(f"worker counts must be ascending, each once: {_listed(known)}")
    return tuple(known)


def _listed(counts: Sequence[int]) -> str:
    return ", ".join(map(str, counts)) or "none"
