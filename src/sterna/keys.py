"""The heaviest keys of an operator: their hashes and the rows that reach them in an epoch.

They take little room, and the error has a bound. A worker names, in its receipt, the few keys of the epoch
that have most of its rows. The driver puts the receipts of an epoch together (a key is at one worker), adds
epochs up, and forgets old ones bit by bit. What finds no room is taken off all others, after Misra and Gries.
So at every time a key has at least the rows that are told here, and at most those plus the error, and a key
that is not named has at most the error. That is never more than a 17th of what the fullest worker gets (or
one row) and a 65th of what all get, together. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from sterna.hashing import Hashes

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NAMED = 16
"""How many keys a receipt names at the most."""

SHARE = 64
"""A key with less than one part in so many of a worker's rows is not named."""

KEPT = 64
"""How many keys the driver keeps."""

_SIEVE = 14
"""So many bits of a hash make a group; heavy keys are in groups that are full enough to hold one."""


@dataclass(frozen=True, eq=False)
class Keys:
    """The heaviest keys of some rows.

    Attributes:
        hashes: those keys, in order.
        rows: how many rows each of them has, at least.
        error: how many more it may have, and how many a key may have that is not named.
        total: the rows of all keys.
    """

    hashes: Hashes
    rows: Floats
    error: float = 0.0
    total: float = 0.0

    @classmethod
    def none(cls) -> Keys:
        """Of no rows."""
        return cls(np.empty(0, np.uint64), np.empty(0))

    @classmethod
    def from_json(cls, data: Any) -> Keys:
        """As a receipt or a manifest tells them; none if it does not, or can't be read."""
        try:
            hashes, rows, error, total = data
            found = cls(np.array(hashes, np.uint64), np.array(rows, np.float64), float(error), float(total))
        except (TypeError, ValueError, OverflowError):
            return cls.none()
        return found if found.hashes.ndim == 1 and found.hashes.shape == found.rows.shape else cls.none()

    def to_json(self) -> list[Any]:
        """A form for receipts and manifests: at most ``KEPT`` hashes, their rows, the error, the total."""
        return [self.hashes.tolist(), self.rows.tolist(), self.error, self.total]

    def scaled(self, factor: float) -> Keys:
        """Of so many times the rows."""
        return Keys(self.hashes, self.rows * factor, self.error * factor, self.total * factor)

    def beside(self, other: Keys) -> Keys:
        """Of the rows of both, where no key has rows in both: those of two workers in one epoch."""
        return self._with(other, max(self.error, other.error))

    def after(self, other: Keys) -> Keys:
        """Of the rows of both, whatever keys they have: those of two epochs."""
        return self._with(other, self.error + other.error)

    def _with(self, other: Keys, error: float) -> Keys:
        hashes, place = np.unique(np.concatenate([self.hashes, other.hashes]), return_inverse=True)
        rows = np.bincount(place.ravel(), np.concatenate([self.rows, other.rows]), len(hashes))
        less = float(np.sort(rows)[-KEPT - 1]) if len(rows) > KEPT else 0.0
        stays = rows > less
        kept = np.asarray(rows[stays] - less, np.float64)
        return Keys(hashes[stays], kept, error + less, self.total + other.total)


def heaviest(hashes: Hashes) -> Keys:
    """The keys with most rows, by the hash of each row: at most ``NAMED``, counted exactly.

    The error is for those that are not named.

    Rows are not sorted, which would take several times as long: those of light keys fall through two sieves,
    and what is left is counted.

    >>> found = heaviest(np.array([7] * 5 + [9] * 3 + [1, 2, 3], np.uint64))
    >>> found.hashes.tolist(), found.rows.tolist(), found.error
    ([7, 9], [5.0, 3.0], 1.0)
    """
    least = max(2, -(-len(hashes) // SHARE))
    some, lost = _sieved(hashes, 0, least)
    some, more = _sieved(some, _SIEVE, least)
    values, counts = _counted(some)
    by_rows = np.argsort(-counts, kind="stable")
    heavy = by_rows[:NAMED][counts[by_rows[:NAMED]] >= least]
    light = np.delete(counts, heavy)
    named = heavy[np.argsort(values[heavy])]
    return Keys(
        values[named],
        counts[named].astype(np.float64),
        float(max(lost, more, light.max(initial=0))),
        float(len(hashes)),
    )


def _group(hashes: Hashes, shift: int) -> Ints:
    return ((hashes >> np.uint64(shift)) & np.uint64((1 << _SIEVE) - 1)).view(np.int64)


def _sieved(hashes: Hashes, shift: int, least: int) -> tuple[Hashes, int]:
    """The hashes in groups with at least so many, and how many are in the largest of the other groups.

    Groups are by some of their bits.
    """
    group = _group(hashes, shift)
    sizes = np.bincount(group, minlength=1 << _SIEVE)
    full = sizes >= least
    return hashes[full[group]], int(sizes[~full].max(initial=0))


def _counted(hashes: Hashes) -> tuple[Hashes, Ints]:
    """How often each hash occurs: quickly, where a group of the second sieve has but one."""
    group = _group(hashes, _SIEVE)
    one = np.zeros(1 << _SIEVE, np.uint64)
    one[group] = hashes
    mixed = np.zeros(1 << _SIEVE, np.bool_)
    mixed[group[hashes != one[group]]] = True
    sizes = np.bincount(group[~mixed[group]], minlength=1 << _SIEVE)
    pure = np.flatnonzero(sizes)
    values, counts = np.unique(hashes[mixed[group]], return_counts=True)
    return np.concatenate([one[pure], values]), np.concatenate([sizes[pure], counts])


def heaviest_of(receipts: Iterable[Any]) -> Keys:
    """The heaviest keys of an epoch, by what the receipts of its workers tell of them."""
    return reduce(Keys.beside, map(Keys.from_json, receipts), Keys.none())
