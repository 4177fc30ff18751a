"""What users wish: ``rescale(8)``, ``bins(4096)``, ``balance()``, or an explicit map of bins to workers.

``Target.resolve`` turns a wish into the configuration that it asks for, or raises ``UpdateRefused`` naming the bin, worker or count that is
wrong. A target has a form that people can read in the control stream. Everything here is pure.
"""

from __future__ import annotations

import heapq
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sterna.configuration import Configuration, bits_of, check_workers
from sterna.errors import UpdateRefused
from sterna.statistics import Statistics

TOLERANCE = 0.05
"""How much more than its share a worker may have before ``balance`` takes something from it."""


@dataclass(frozen=True)
class Target:
    """The wanted configuration.

    Attributes:
        kind: ``rescale``, ``bins``, ``balance`` or ``explicit``.
        workers: the wanted number of workers (``rescale``).
        bits: the wanted number of bins (``bins``), or the number that ``assignment`` speaks of (``explicit``; ``None``
            until the query has been asked).
        assignment: (bin, worker) pairs (``explicit``).
    """

    kind: str
    workers: int | None = None
    bits: int | None = None
    assignment: tuple[tuple[int, int], ...] = ()

    def resolve(self, current: Configuration, statistics: Statistics | None = None) -> Configuration:
        """The configuration that this target asks for, seen from the current one."""
        if self.kind == "rescale":
            assert self.workers is not None
            return _rescaled(current, self.workers)
        if self.kind == "bins":
            assert self.bits is not None
            return current.at_bits(self.bits)
        if self.kind == "balance":
            return _balanced(current, statistics or Statistics.unknown(current.bins))
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
            if kind == "balance":
                return balance()
            if kind == "explicit":
                target = explicit([(b, w) for b, w in data["assignment"]])
                bits = bits_of(data["bins"]) if "bins" in data else None
                return Target("explicit", bits=bits, assignment=target.assignment)
        except (KeyError, TypeError, ValueError) as error:
            raise UpdateRefused(f"this is not a target: {data!r} ({error})") from error
        raise UpdateRefused(f"unknown kind of target {kind!r}; known are rescale, bins, balance and explicit")


def rescale(workers: int) -> Target:
    """As many workers as this, with about as many bins each, moving as few bins as possible."""
    return Target("rescale", workers=check_workers(workers))


def bins(count: int) -> Target:
    """As many bins as this (a power of two), each staying where it is."""
    return Target("bins", bits=bits_of(count))


def balance() -> Target:
    """About as much work for every worker: by the rows that bins get, or their bytes, or their number, whatever is known; few bins move."""
    return Target("balance")


def explicit(assignment: Mapping[int, int] | Iterable[tuple[int, int]]) -> Target:
    """These bins at these workers, the others where they are."""
    pairs = assignment.items() if isinstance(assignment, Mapping) else assignment
    if not isinstance(pairs, Iterable):
        raise UpdateRefused(
            f"{pairs!r} is not a target: use rescale(n), bins(n), balance(), or a map of bins to workers"
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


def _balanced(current: Configuration, statistics: Statistics) -> Configuration:
    """From the worker with most to the one with least, the largest bin that does not turn the two around, until all have their share."""
    load = statistics.at(current.bins).load()
    totals = np.bincount(current.owners, load, current.workers)
    limit = totals.sum() / current.workers * (1 + TOLERANCE)
    owners = current.owners.copy()
    # Bins without load never move; those of a worker are tried from the largest on.
    bins = [
        sorted(np.flatnonzero((owners == w) & (load > 0)).tolist(), key=lambda b: -load[b])
        for w in range(current.workers)
    ]
    full = [(-total, worker) for worker, total in enumerate(totals.tolist())]
    heapq.heapify(full)
    while full:
        negative, source = heapq.heappop(full)
        if -negative != totals[source]:
            continue
        target = int(np.argmin(totals))
        room = totals[source] - totals[target]
        # Halving the difference at most: the one that gives never ends up with less than the one that takes.
        best = next((b for b in bins[source] if load[b] <= room / 2), None)
        if totals[source] <= limit or best is None:
            continue
        bins[source].remove(best)
        owners[best] = target
        totals[source] -= load[best]
        totals[target] += load[best]
        bins[target].append(best)
        bins[target].sort(key=lambda b: -load[b])
        for changed in (source, target):
            heapq.heappush(full, (-totals[changed], changed))
    return Configuration(current.bits, current.workers, owners)
