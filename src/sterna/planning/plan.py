"""What a plan is, and what it is made from.

It is made from each bin's worker now, its state's size and its load, all checked. Wrong input raises
``InvalidInput`` that names the entry; a balance that can't be had raises ``Unbalanceable``, which knows the
least tau that can.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sterna.configuration import check_workers
from sterna.errors import InvalidInput
from sterna.planning.checks import check_tau, numbers, workers_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Numbers = Sequence[float] | Floats
Workers = Sequence[int] | Ints

SLACK = 1e-12
"""Loads are sums of floats: what exceeds a limit by no more than this part of all load is within it."""
TIE = 2.0**-40
"""How near to each other plans are that count as keeping the same state, as a part of all.

Of these, that which moves fewer bins is the better one.
"""


class Unbalanceable(InvalidInput):
    """No plan is as even as was asked for.

    Attributes:
        least: the least tau that is possible, or known to be.
    """

    def __init__(self, message: str, least: float) -> None:
        super().__init__(message)
        self.least = least


@dataclass(frozen=True, eq=False)
class Plan:
    """Where the bins should be.

    Attributes:
        assignment: the worker of each bin, read-only.
        moved: how much state moves.
        kept: how much stays.
        tau: how much more than the mean a worker's load may be, as asked for or as found.
        workers: how many workers there will be; some may have no bins, and where any may leave, the numbers
            of those that stay may be higher.
    """

    assignment: Ints
    moved: float
    kept: float
    tau: float
    workers: int

    def __post_init__(self) -> None:
        self.assignment.setflags(write=False)

    @classmethod
    def of(cls, before: Ints, after: Ints, sizes: Floats, tau: float, workers: int) -> Plan:
        """The plan that leads from one assignment to another."""
        stays = before == after
        return Plan(after, float(sizes[~stays].sum()), float(sizes[stays].sum()), tau, workers)


@dataclass(frozen=True, eq=False)
class BoundedPlan(Plan):
    """A plan that need not be the best, and how far from it it can be.

    Attributes:
        bound: no plan with this balance moves less.
    """

    bound: float

    @property
    def gap(self) -> float:
        """By how much of what it moves the plan may exceed the best one: 0 if it is the best."""
        return 0.0 if self.moved <= self.bound else 1 - self.bound / self.moved

    @property
    def optimal(self) -> bool:
        """Whether no plan moves less, to within one part in a million."""
        return self.gap <= 1e-6


@dataclass(frozen=True, eq=False)
class Problem:
    """Bins as they are: whose they are, how large and how busy, and how many workers there will be."""

    owners: Ints
    sizes: Floats
    loads: Floats
    workers: int

    @classmethod
    def of(cls, assignment: Workers, sizes: Numbers, loads: Numbers, workers: int) -> Problem:
        """Checked; see the module's docstring."""
        owners = workers_of(assignment)
        return cls(
            owners,
            numbers("size", sizes, len(owners)),
            numbers("load", loads, len(owners)),
            check_workers(workers),
        )

    @cached_property
    def size_before(self) -> Floats:
        """The state in the bins before each, and at the end that of all."""
        return before(self.sizes)

    @cached_property
    def weights(self) -> Floats:
        """What it costs to move each bin, as plans see it."""
        return weighed(self.sizes)

    @cached_property
    def load_before(self) -> Floats:
        """The load of the bins before each, and at the end that of all."""
        return before(self.loads)

    @cached_property
    def cuts(self) -> Ints:
        """Where one worker's interval ends and the next begins, from 0 to the number of bins.

        Every worker must have one interval.
        """
        inner = np.flatnonzero(self.owners[1:] != self.owners[:-1]) + 1
        cuts = np.concatenate([[0], inner, [len(self.owners)]])
        twice = np.flatnonzero(np.bincount(self.owners[cuts[:-1]]) > 1)
        if len(twice):
            raise InvalidInput(
                f"the bins of worker {twice[0]} are no interval; general() plans where they need not be"
            )
        return cuts

    def limit(self, tau: float) -> float:
        """The most load that a worker may have."""
        return limit_of(float(self.load_before[-1]), self.workers, tau)

    def reach(self, limit: float) -> Ints:
        """For each end of an interval the first bin that it may begin with."""
        return reach(self.load_before, limit)

    def fewest(self, limit: float) -> float:
        """In how few intervals no heavier than this all bins fit.

        The number is infinite if that takes more than there will be workers.
        """
        first = self.reach(limit)
        end = len(self.owners)
        for pieces in range(1, self.workers + 1):
            end = int(first[end])
            if end == 0:
                return pieces
        return math.inf

    def least_tau(self) -> float:
        """The least tau for which there is a partitioning into intervals, to within ``SLACK`` of all load."""
        total = float(self.load_before[-1])
        if total == 0:
            return 0.0
        low, high = max(float(self.loads.max()), total / self.workers), total
        if self.fewest(low + SLACK * total) <= self.workers:
            high = low
        while high - low > SLACK * total:
            middle = low + (high - low) / 2
            if middle in (low, high):  # there is no number between them
                break
            low, high = (low, middle) if self.fewest(middle) <= self.workers else (middle, high)
        return self.tau_of(high)

    def tau_of(self, limit: float) -> float:
        """The tau with which a worker may have this much load."""
        total = float(self.load_before[-1])
        return max(0.0, limit * self.workers / total - 1) if total > 0 else 0.0

    def resolved(self, tau: float | str) -> float:
        """The tau that is meant, ``"least"`` being the least that is possible.

        ``Unbalanceable`` if this one is not.
        """
        if isinstance(tau, str) and tau == "least":
            return self.least_tau()
        self.check_feasible(tau)
        return float(tau)

    def check_feasible(self, tau: float | str) -> None:
        """Raises ``Unbalanceable`` that names the least tau, if this one is too small for intervals."""
        limit = self.limit(check_tau(tau))
        if self.fewest(limit) > self.workers:
            least = self.least_tau()
            raise Unbalanceable(
                f"no partitioning into {self.workers} intervals keeps every load within {1 + float(tau):g} "
                f"times the mean{self.too_heavy(limit)}; the least tau is {rounded_up(least)}",
                least,
            )

    def too_heavy(self, limit: float) -> str:
        """Names the bin that alone is heavier than this, if there is one."""
        at = int(np.argmax(self.loads))
        if self.loads[at] <= limit:
            return ""
        times = self.loads[at] * self.workers / self.load_before[-1]
        return f": bin {at} alone has {times:.4g} times the mean"


def check_feasible(problems: Sequence[Problem], tau: float | str) -> None:
    """Raises ``Unbalanceable`` if tau is too small for one of the problems.

    The least tau that it names is enough for all of them.
    """
    failures = []
    for problem in problems:
        try:
            problem.check_feasible(tau)
        except Unbalanceable as error:
            failures.append(error)
    if failures:
        raise max(failures, key=lambda error: error.least)


def rounded_up(tau: float) -> float:
    """A tau for people to read, who may then ask for it: never less than it is."""
    return math.ceil(tau * 1e6) / 1e6


def limit_of(total: float, workers: int, tau: float) -> float:
    """The most load that one of so many workers may have.

    That is (1 + tau) times the mean, and what rounding may add.
    """
    return (1 + tau) * total / workers + SLACK * total


def before(values: Floats) -> Floats:
    """The sum of the values before each, and at the end that of all."""
    return np.concatenate([[0.0], np.cumsum(values)])


def weighed(sizes: Floats) -> Floats:
    """What it costs to move each bin: its size, and a little for the move itself.

    The latter decides between plans that are as good otherwise.
    """
    total = float(sizes.sum())
    return sizes + total * TIE / len(sizes) if total > 0 else np.ones(len(sizes))


def reach(load_before: Floats, limit: float) -> Ints:
    """For each end of an interval the first bin that it may begin with, given the load before each bin."""
    first = np.searchsorted(load_before, load_before - limit, "left")
    return np.minimum(first, np.arange(len(load_before)))
