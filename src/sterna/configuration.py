"""Which worker owns which bin, and how that changes: (time, bin) -> worker.

A ``Configuration`` is the function at one epoch: an immutable array with the owner of each of 2^k bins, and
the number of workers. Differences between two configurations are expressed as moves of *hash ranges*, so that
nothing below this module needs to know how many bins there are, and the number of bins may change while a
query runs. Everything here is pure and knows nothing of Spark.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sterna.errors import InvalidInput

MIN_BITS, MAX_BITS = 0, 20
MAX_WORKERS = 4096
HASHES = 1 << 64

Range = tuple[int, int]


def bits_of(bins: int) -> int:
    """The k of 2^k bins.

    >>> bits_of(4096)
    12
    """
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer):
        raise InvalidInput(f"the number of bins must be an integer, not {bins!r}")
    if bins < 1 or bins & (bins - 1):
        raise InvalidInput(f"the number of bins must be a power of two, not {bins}")
    bits = int(bins).bit_length() - 1
    if not MIN_BITS <= bits <= MAX_BITS:
        raise InvalidInput(f"the number of bins must be between 2^{MIN_BITS} and 2^{MAX_BITS}, not {bins}")
    return bits


def check_workers(workers: int) -> int:
    """The number of workers, or an error that names it."""
    if isinstance(workers, bool) or not isinstance(workers, int | np.integer):
        raise InvalidInput(f"the number of workers must be an integer, not {workers!r}")
    if not 1 <= workers <= MAX_WORKERS:
        raise InvalidInput(f"the number of workers must be between 1 and {MAX_WORKERS}, not {workers}")
    return int(workers)


@dataclass(frozen=True)
class Move:
    """The hashes ``lo <= hash < hi`` go from worker ``source`` to worker ``target``."""

    lo: int
    hi: int
    source: int
    target: int


@dataclass(frozen=True, eq=False)
class Configuration:
    """The owner of each bin at one epoch.

    Attributes:
        bits: k, for 2^k bins.
        workers: how many workers there are, numbered from 0; a worker may own no bin.
        owners: for each bin its worker, read-only.
    """

    bits: int
    workers: int
    owners: npt.NDArray[np.int32]

    def __post_init__(self) -> None:
        self.owners.setflags(write=False)

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return 1 << self.bits

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Configuration)
            and (self.bits, self.workers) == (other.bits, other.workers)
            and bool(np.array_equal(self.owners, other.owners))
        )

    def __hash__(self) -> int:
        return hash((self.bits, self.workers, self.owners.tobytes()))

    @classmethod
    def initial(cls, bins: int, workers: int) -> Configuration:
        """Contiguous intervals of (almost) equal length.

        >>> Configuration.initial(8, 3).owners.tolist()
        [0, 0, 0, 1, 1, 1, 2, 2]
        """
        bits = bits_of(bins)
        check_workers(workers)
        owners = (np.arange(bins, dtype=np.int64) * workers // bins).astype(np.int32)
        return cls(bits, workers, owners)

    def route(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
        """The worker of each hash."""
        if self.bits == 0:
            return np.full(len(hashes), self.owners[0], np.int32)
        return np.asarray(self.owners[hashes >> np.uint64(64 - self.bits)])

    def at_bits(self, bits: int) -> Configuration:
        """The same function with another number of bins; merged bins go to the owner of the first of them."""
        if bits >= self.bits:
            owners = np.repeat(self.owners, 1 << (bits - self.bits))
        else:
            owners = self.owners[:: 1 << (self.bits - bits)].copy()
        return Configuration(bits, self.workers, owners)

    def ranges(self, worker: int) -> list[Range]:
        """The hash ranges that a worker owns, in order, adjacent ones joined."""
        return _as_ranges(np.flatnonzero(self.owners == worker), self.bits)

    def owned(self) -> npt.NDArray[np.int64]:
        """How many bins each worker owns."""
        return np.bincount(self.owners, minlength=self.workers)

    def _runs(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        starts = np.flatnonzero(np.diff(self.owners, prepend=-1))
        return self.owners[starts], np.diff(starts, append=len(self.owners))

    def __reduce__(self) -> tuple[Any, ...]:
        # A configuration travels with every task of every epoch: packed once, and unpacked once in each
        # process.
        packed = self.__dict__.get("_packed")
        if packed is None:
            values, lengths = self._runs()
            packed = zlib.compress(
                values.astype(np.uint16).tobytes() + lengths.astype(np.uint32).tobytes(), 1
            )
            object.__setattr__(self, "_packed", packed)
        return _unpacked, (self.bits, self.workers, packed)

    def to_json(self) -> dict[str, Any]:
        """Run lengths of owners: a plain configuration takes a line, whatever the number of bins."""
        values, lengths = self._runs()
        return {"bits": self.bits, "workers": self.workers, "owners": [values.tolist(), lengths.tolist()]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Configuration:
        """The inverse of ``to_json``."""
        values, lengths = data["owners"]
        owners = np.repeat(np.asarray(values, np.int32), np.asarray(lengths, np.int64))
        return cls(int(data["bits"]), int(data["workers"]), owners)


@lru_cache(maxsize=32)
def _unpacked(bits: int, workers: int, packed: bytes) -> Configuration:
    data = zlib.decompress(packed)
    count = len(data) // 6
    values = np.frombuffer(data, np.uint16, count)
    lengths = np.frombuffer(data, np.uint32, count, 2 * count)
    return Configuration(bits, workers, np.repeat(values.astype(np.int32), lengths))


def moves(old: Configuration, new: Configuration) -> list[Move]:
    """What must travel to get from one configuration to the other, in hash order, adjacent moves joined.

    >>> moves(Configuration.initial(4, 1), Configuration.initial(4, 2))
    [Move(lo=9223372036854775808, hi=18446744073709551616, source=0, target=1)]
    """
    bits = max(old.bits, new.bits)
    before, after = old.at_bits(bits).owners, new.at_bits(bits).owners
    moved = np.flatnonzero(before != after)
    if not len(moved):
        return []
    same = (np.diff(moved) == 1) & (np.diff(before[moved]) == 0) & (np.diff(after[moved]) == 0)
    starts = np.concatenate([[0], np.flatnonzero(~same) + 1])
    stops = np.concatenate([starts[1:], [len(moved)]])
    width = HASHES >> bits
    return [
        Move(
            int(moved[a]) * width,
            (int(moved[b - 1]) + 1) * width,
            int(before[moved[a]]),
            int(after[moved[a]]),
        )
        for a, b in zip(starts, stops, strict=True)
    ]


def _as_ranges(bins: npt.NDArray[np.int64], bits: int) -> list[Range]:
    if not len(bins):
        return []
    width = HASHES >> bits
    breaks = np.flatnonzero(np.diff(bins) != 1) + 1
    starts = np.concatenate([[0], breaks])
    stops = np.concatenate([breaks, [len(bins)]])
    return [
        (int(bins[a]) * width, (int(bins[b - 1]) + 1) * width) for a, b in zip(starts, stops, strict=True)
    ]
