"""What users wish: ``rescale(8)``, ``bins(4096)``, ``balance()``, or an explicit map of bins to workers.

``Target.resolve`` turns a wish into the configuration that it asks for, or raises ``UpdateRefused`` naming
the bin, worker or count that is wrong. A target has a form that people can read in the control stream.
Everything here is pure.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np

from sterna.configuration import Configuration, bits_of, check_workers
from sterna.errors import UpdateRefused, short
from sterna.levelling import balanced, rescaled
from sterna.planned import check_planner, planned
from sterna.statistics import Statistics

FIELDS = {
    "rescale": ("workers", "planner", "tau"),
    "bins": ("bins",),
    "balance": ("planner", "tau"),
    "explicit": ("assignment", "bins", "workers"),
}
"""What a target of each kind may have."""


@dataclass(frozen=True)
class Target:
    """The wanted configuration.

    Attributes:
        kind: ``rescale``, ``bins``, ``balance`` or ``explicit``.
        workers: the wanted number of workers (``rescale``, and ``explicit`` where it is another one).
        bits: the wanted number of bins (``bins``), or the number that ``assignment`` speaks of (``explicit``;
            ``None`` until the query has been asked).
        assignment: (bin, worker) pairs (``explicit``).
        planner: who decides which bins move (``rescale`` and ``balance``); see ``planned``.
        tau: how much more than the mean a worker's load may be, for the planner.
    """

    kind: str
    workers: int | None = None
    bits: int | None = None
    assignment: tuple[tuple[int, int], ...] = ()
    planner: str | None = None
    tau: float | str | None = None

    def resolve(self, current: Configuration, statistics: Statistics | None = None) -> Configuration:
        """The configuration that this target asks for, seen from the current one."""
        if self.kind == "rescale" and self.workers is not None:
            _check_bins(self.workers, current)
        if self.planner is not None and self.tau is not None:
            known, workers = statistics or Statistics.unknown(current.bins), self.workers or current.workers
            return planned(current, known, workers, self.planner, self.tau)
        if self.kind == "rescale":
            assert self.workers is not None
            return rescaled(current, self.workers)
        if self.kind == "bins":
            assert self.bits is not None
            return current.at_bits(self.bits)
        if self.kind == "balance":
            return balanced(current, statistics or Statistics.unknown(current.bins))
        self.check(current)
        owners = current.owners.copy()
        pairs = np.asarray(self.rewritten(current.bits).assignment, np.int64).reshape(-1, 2)
        owners[pairs[:, 0]] = pairs[:, 1]
        return Configuration(current.bits, self.workers or current.workers, owners)

    def check(self, current: Configuration) -> None:
        """Raises ``UpdateRefused`` if a bin or worker does not exist."""
        count = current.bins if self.bits is None else 1 << self.bits
        workers = self.workers or current.workers
        for bin_, worker in self.assignment:
            if not 0 <= bin_ < count:
                raise UpdateRefused(f"bin {bin_} does not exist: there are {count} bins, numbered from 0")
            if not 0 <= worker < workers:
                raise UpdateRefused(
                    f"worker {worker} does not exist: there are {workers} workers, numbered from 0; "
                    f"rescale first to have more"
                )
        if workers < current.workers:
            self._check_leavers(current, workers)

    def _check_leavers(self, current: Configuration, workers: int) -> None:
        """Raises ``UpdateRefused`` if a bin would stay at a worker that leaves."""
        stays = current.owners >= workers
        stays[[bin_ for bin_, _ in self.rewritten(current.bits).assignment]] = False
        if stays.any():
            bin_ = int(np.argmax(stays))
            raise UpdateRefused(
                f"bin {bin_} is at worker {current.owners[bin_]}, and there will be {workers} workers: name "
                "a worker for it"
            )

    def numbered(self, bits: int) -> Target:
        """The same wish, remembering that its bins are numbered as parts of 2^bits."""
        return replace(self, bits=bits) if self.kind == "explicit" and self.bits is None else self

    def rewritten(self, bits: int) -> Target:
        """The same wish in another number of bins: a bin becomes its parts.

        Merged bins follow the first of them.
        """
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
        return replace(self, bits=bits, assignment=tuple(pairs))

    def to_json(self) -> dict[str, Any]:
        """A form that people can read in the control stream."""
        data: dict[str, Any] = {"kind": self.kind}
        if self.workers is not None:
            data["workers"] = self.workers
        if self.bits is not None:
            data["bins"] = 1 << self.bits
        if self.assignment:
            data["assignment"] = [list(pair) for pair in self.assignment]
        if self.planner is not None:
            data.update(planner=self.planner, tau=self.tau)
        return data

    @classmethod
    def from_json(cls, data: Any) -> Target:
        """The inverse of ``to_json``; raises ``UpdateRefused`` for anything that is not a target."""
        if not isinstance(data, Mapping) or "kind" not in data:
            raise UpdateRefused(
                f'a target must be like {{"kind": "rescale", "workers": 8}}, not {short(data)}'
            )
        try:
            kind = data["kind"]
            if isinstance(kind, str) and kind in FIELDS:
                check_keys(f"a target of kind {kind}", data, ("kind", *FIELDS[kind]))
            if kind == "rescale":
                return rescale(data["workers"], data.get("planner"), data.get("tau"))
            if kind == "bins":
                return bins(data["bins"])
            if kind == "balance":
                return balance(data.get("planner"), data.get("tau"))
            if kind == "explicit":
                target = explicit([(b, w) for b, w in data["assignment"]])
                bits = bits_of(data["bins"]) if "bins" in data else None
                workers = check_workers(data["workers"]) if "workers" in data else None
                return replace(target, bits=bits, workers=workers)
        except (KeyError, TypeError, ValueError) as error:
            raise UpdateRefused(f"this is not a target: {short(data)} ({error})") from error
        raise UpdateRefused(
            f"unknown kind of target {short(kind)}; known are rescale, bins, balance and explicit"
        )


def check_keys(what: str, data: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raises ``UpdateRefused`` for what is not known: a word that is misspelt is not to be passed over."""
    unknown = sorted(str(key) for key in set(data) - set(known))
    if unknown:
        raise UpdateRefused(
            f"{what} has {', '.join(map(short, unknown))}, which is unknown; it may have {', '.join(known)}"
        )


def _check_bins(workers: int, current: Configuration) -> None:
    """Raises ``UpdateRefused`` if some of so many workers would have no bin."""
    if workers > max(current.bins, current.workers):
        raise UpdateRefused(
            f"{workers} workers are more than the {current.bins} bins, and some would have none; get more "
            f"bins first, with sterna.bins({1 << (workers - 1).bit_length()})"
        )


def rescale(workers: int, planner: str | None = None, tau: float | str | None = None) -> Target:
    """As many workers as this, with about as many bins each, moving as few bins as possible.

    There must be a bin for each.

    With a planner, ``"ssm"`` or ``"general"``, the least state moves for which no worker has more than 1 +
    tau times the mean load; see ``sterna.planning``.
    """
    count = check_workers(workers)
    planner, tau = check_planner(planner, tau)
    return Target("rescale", workers=count, planner=planner, tau=tau)


def bins(count: int) -> Target:
    """As many bins as this (a power of two), each staying where it is."""
    return Target("bins", bits=bits_of(count))


def balance(planner: str | None = None, tau: float | str | None = None) -> Target:
    """About as much work for every worker, with few bins moved.

    Work goes by the rows that bins get, or their bytes, or their number, whatever is known. With a planner,
    the least state moves, as for ``rescale``.
    """
    planner, tau = check_planner(planner, tau)
    return Target("balance", planner=planner, tau=tau)


def explicit(assignment: Mapping[int, int] | Iterable[tuple[int, int]]) -> Target:
    """These bins at these workers, the others where they are."""
    pairs = assignment.items() if isinstance(assignment, Mapping) else assignment
    if not isinstance(pairs, Iterable):
        raise UpdateRefused(
            f"{short(pairs)} is not a target: use rescale(n), bins(n), balance(), or a map of bins to workers"
        )
    seen: dict[int, int] = {}
    for pair in pairs:
        try:
            bin_, worker = (operator.index(part) for part in pair if not isinstance(part, bool))
        except (TypeError, ValueError) as error:
            raise UpdateRefused(f"{short(pair)} is not a pair (bin, worker) of whole numbers") from error
        if seen.setdefault(bin_, worker) != worker:
            raise UpdateRefused(f"bin {bin_} is given to two workers, {seen[bin_]} and {worker}")
    if not seen:
        raise UpdateRefused("the target names no bin")
    return Target("explicit", assignment=tuple(sorted(seen.items())))


class Assigned(Protocol):
    """A plan, as ``sterna.planning`` makes them: for each bin its worker."""

    @property
    def assignment(self) -> Any:
        """The workers, as an array."""


Wish = Target | Mapping[int, int] | Iterable[tuple[int, int]] | Assigned
"""What can be asked for."""


def as_target(wish: Wish) -> Target:
    """A target; or a map or set of (bin, worker), or a plan for all bins, taken as one.

    A plan is taken with as many workers as it says, or more if its highest number needs them.
    """
    if isinstance(wish, Target):
        return wish
    planned_workers = getattr(wish, "assignment", None)
    if planned_workers is None:
        return explicit(cast("Mapping[int, int] | Iterable[tuple[int, int]]", wish))
    owners = np.asarray(planned_workers)
    target = explicit(enumerate(owners.tolist()))
    workers = max(int(owners.max()) + 1, getattr(wish, "workers", 0))
    return replace(target, bits=bits_of(len(owners)), workers=check_workers(workers))
