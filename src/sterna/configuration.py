"""Which worker owns which bin, and how that changes: (time, bin) -> worker.

A ``Configuration`` is the function at one epoch: an immutable array with the owner of each of 2^k bins, and the
number of workers. Differences between two configurations are expressed as moves of *hash ranges*, so that nothing
below this module needs to know how many bins there are, and the number of bins may change while a query runs.

A ``Target`` is a wish (``rescale(8)``, ``bins(4096)``, or an explicit map of bins to workers); ``Target.resolve`` turns it
into the configuration it asks for, or raises ``UpdateRefused`` naming the bin, worker or count that is wrong. Everything here
is pure and knows nothing of Spark.
"""

from __future__ import annotations

import operator
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sterna.errors import InvalidInput, UpdateRefused

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
        # A configuration travels with every task of every epoch: packed once, and unpacked once in each process.
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


@dataclass(frozen=True)
class Target:
    """The wanted configuration.

    Attributes:
        kind: ``rescale``, ``bins`` or ``explicit``.
        workers: the wanted number of workers (``rescale``).
        bits: the wanted number of bins (``bins``), or the number that ``assignment`` speaks of (``explicit``; ``None``
            until the query has been asked).
        assignment: (bin, worker) pairs (``explicit``).
    """

    kind: str
    workers: int | None = None
    bits: int | None = None
    assignment: tuple[tuple[int, int], ...] = ()

    def resolve(self, current: Configuration) -> Configuration:
        """The configuration that this target asks for, seen from the current one."""
        if self.kind == "rescale":
            assert self.workers is not None
            return _rescaled(current, self.workers)
        if self.kind == "bins":
            assert self.bits is not None
            return current.at_bits(self.bits)
        self.check(current)
        owners = current.owners.copy()
        pairs = np.asarray(self.rewritten(current.bits).assignment, np.int64).reshape(-1, 2)
        owners[pairs[:, 0]] = pairs[:, 1]
        return Configuration(current.bits, current.workers, owners)

    def check(self, current: Configuration) -> None:
        """Raises ``UpdateRefused`` if a bin or worker does not exist."""
        count = current.bins if self.bits is None else 1 << self.bits
        for bin_, worker in self.assignment:
            if not 0 <= bin_ < count:
                raise UpdateRefused(f"bin {bin_} does not exist: there are {count} bins, numbered from 0")
            if not 0 <= worker < current.workers:
                raise UpdateRefused(
                    f"worker {worker} does not exist: there are {current.workers} workers, numbered from 0; "
                    f"rescale first to have more"
                )

    def numbered(self, bits: int) -> Target:
        """The same wish, remembering that its bins are numbered as parts of 2^bits."""
        return replace(self, bits=bits) if self.kind == "explicit" and self.bits is None else self

    def rewritten(self, bits: int) -> Target:
        """The same wish in another number of bins: a bin becomes its parts; merged bins follow the first of them."""
        if self.kind != "explicit" or self.bits in (None, bits):
            return self
        assert self.bits is not None
        if bits > self.bits:
            factor = 1 << (bits - self.bits)
            pairs = [(b * factor + i, w) for b, w in self.assignment for i in range(factor)]
        else:
            merged: dict[int, int] = {}
            for b, w in sorted(self.assignment):
                merged.setdefault(b >> (self.bits - bits), w)
            pairs = sorted(merged.items())
        return Target("explicit", bits=bits, assignment=tuple(pairs))

    def to_json(self) -> dict[str, Any]:
        """A form that people can read in the control stream."""
        data: dict[str, Any] = {"kind": self.kind}
        if self.workers is not None:
            data["workers"] = self.workers
        if self.bits is not None:
            data["bins"] = 1 << self.bits
        if self.assignment:
            data["assignment"] = [list(pair) for pair in self.assignment]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Target:
        """The inverse of ``to_json``; raises ``UpdateRefused`` for anything that is not a target."""
        try:
            kind = data["kind"]
            if kind == "rescale":
                return rescale(data["workers"])
            if kind == "bins":
                return bins(data["bins"])
            if kind == "explicit":
                target = explicit([(b, w) for b, w in data["assignment"]])
                bits = bits_of(data["bins"]) if "bins" in data else None
                return Target("explicit", bits=bits, assignment=target.assignment)
        except (KeyError, TypeError, ValueError) as error:
            raise UpdateRefused(f"this is not a target: {data!r} ({error})") from error
        raise UpdateRefused(f"unknown kind of target {kind!r}; known are rescale, bins and explicit")


def rescale(workers: int) -> Target:
    """As many workers as this, with about as many bins each, moving as few bins as possible."""
    return Target("rescale", workers=check_workers(workers))


def bins(count: int) -> Target:
    """As many bins as this (a power of two), each staying where it is."""
    return Target("bins", bits=bits_of(count))


def explicit(assignment: Mapping[int, int] | Iterable[tuple[int, int]]) -> Target:
    """These bins at these workers, the others where they are."""
    pairs = assignment.items() if isinstance(assignment, Mapping) else assignment
    if not isinstance(pairs, Iterable):
        raise UpdateRefused(
            f"{pairs!r} is not a target: use rescale(n), bins(n), or a map of bins to workers"
        )
    seen: dict[int, int] = {}
    for pair in pairs:
        try:
            bin_, worker = (operator.index(part) for part in pair)
        except (TypeError, ValueError) as error:
            raise UpdateRefused(f"{pair!r} is not a pair (bin, worker) of whole numbers") from error
        if seen.setdefault(bin_, worker) != worker:
            raise UpdateRefused(f"bin {bin_} is given to two workers, {seen[bin_]} and {worker}")
    if not seen:
        raise UpdateRefused("the target names no bin")
    return Target("explicit", assignment=tuple(sorted(seen.items())))


def as_target(wish: Target | Mapping[int, int] | Iterable[tuple[int, int]]) -> Target:
    """A target, or a map or set of (bin, worker) taken as one."""
    return wish if isinstance(wish, Target) else explicit(wish)


def _rescaled(current: Configuration, workers: int) -> Configuration:
    """Every worker gets its fair number of bins; only the surplus moves, the highest bins of a worker first."""
    held = np.zeros(max(workers, current.workers), np.int64)
    held[: current.workers] = current.owned()
    quota = np.full(workers, current.bins // workers, np.int64)
    # Where bins do not divide evenly, those who hold most keep one more, so that nothing moves for its sake.
    quota[np.argsort(-held[:workers], kind="stable")[: current.bins % workers]] += 1
    owners = current.owners.copy()
    homeless = []
    for worker in range(current.workers):
        mine = np.flatnonzero(owners == worker)
        homeless.append(mine[int(quota[worker]) if worker < workers else 0 :])
    loose = np.sort(np.concatenate(homeless))
    owners[loose] = np.repeat(np.arange(workers, dtype=np.int32), np.maximum(quota - held[:workers], 0))
    return Configuration(current.bits, workers, owners)
