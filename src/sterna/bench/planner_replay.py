"""What planners move over a trace: one plan after the other, each from where the last one led."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from sterna.bench.planner_traces import Trace
from sterna.planning import baselines, ssm
from sterna.planning.mtm import mtm
from sterna.planning.plan import Plan, Problem, rounded_up
from sterna.planning.pools import even
from sterna.planning.priced import Pieces
from sterna.planning.values import Values

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Planner = Callable[[Ints, int], Plan]
"""From the worker of each bin and the number of workers to come, a plan."""


@dataclass(frozen=True, eq=False)
class State:
    """Bins: how large, and how busy.

    Attributes:
        name: what is special about them.
    """

    name: str
    sizes: Floats
    loads: Floats

    @classmethod
    def alike(cls, bins: int) -> State:
        """All bins are."""
        return cls("alike", np.ones(bins), np.ones(bins))

    @classmethod
    def skewed(cls, bins: int, exponent: float, seed: int) -> State:
        """Zipf's law for sizes, in random order.

        A bin's load is the fourth root of its size, because a bin much heavier than others can't be balanced.
        """
        sizes = np.random.default_rng(seed).permutation(np.arange(1.0, bins + 1) ** -exponent)
        return cls(f"Zipf {exponent:g}", sizes, sizes**0.25)

    def tau(self, wanted: float, counts: range) -> float:
        """The balance wanted, or the least that all worker counts can have."""
        nobody = np.zeros(len(self.sizes), np.int64)
        return max(
            wanted,
            *(rounded_up(Problem.of(nobody, self.sizes, self.loads, count).least_tau()) for count in counts),
        )


@dataclass
class Replay:
    """What one planner did.

    Attributes:
        moved: the part of all state that each migration moved.
        known: so many of these lie in the half of the trace that was learnt from.
        taus: how much more than the mean load the heaviest worker had after each.
        seconds: how long each plan took that was not made before.
    """

    moved: list[float] = field(default_factory=list)
    known: int = 0
    taus: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        """What is reported."""
        return {
            "moved_percent": round(100 * statistics.fmean(self.moved), 3),
            "moved_percent_unseen": round(100 * statistics.fmean(self.moved[self.known :] or [0.0]), 3),
            "moved_in_all": round(sum(self.moved), 4),
            "tau_mean": round(statistics.fmean(self.taus), 3),
            "tau_max": round(max(self.taus), 3),
            "plan_ms_p50": round(1000 * statistics.median(self.seconds), 2),
        }


def replay(planner: Planner, trace: Trace, state: State) -> Replay:
    """Goes through a trace, from a balanced beginning. A plan that was made before is not made again."""
    done, made = Replay(), dict[tuple[bytes, int], Plan]()
    first = trace.counts[0]
    owners = planner(balanced(state, first), first).assignment
    total = state.sizes.sum()
    for hour, (before, count) in enumerate(itertools.pairwise(trace.counts), start=1):
        if count == before:
            continue
        key = (owners.tobytes(), count)
        if key not in made:
            begin = time.perf_counter()
            made[key] = planner(owners, count)
            done.seconds.append(time.perf_counter() - begin)
        plan = made[key]
        owners = plan.assignment
        done.moved.append(plan.moved / total)
        done.known += hour < trace.half
        done.taus.append(np.bincount(owners, state.loads).max() * count / state.loads.sum() - 1)
    return done


def balanced(state: State, workers: int) -> Ints:
    """Intervals with about as much load for everybody."""
    generous = Pieces.of(state.sizes / state.sizes.sum(), state.loads, workers, float(workers))
    (cuts,) = even(state.loads / state.loads.sum(), generous)
    return np.repeat(np.arange(workers), np.diff(cuts))


def planners(state: State, tau: float, seed: int) -> dict[str, Planner]:
    """Those that need no values: Sterna's for a single step, and what others do."""
    sizes, loads = state.sizes, state.loads
    return {
        "storm": lambda owners, count: baselines.storm(owners, sizes, loads, count),
        "consistent": lambda owners, count: baselines.consistent(owners, sizes, loads, count, seed=seed),
        "consistent_bounded": lambda owners, count: baselines.consistent(
            owners, sizes, loads, count, tau, bounded=True, seed=seed
        ),
        "redist": lambda owners, count: baselines.redist(owners, sizes, loads, count, tau),
        "ssm": lambda owners, count: ssm(owners, sizes, loads, count, tau),
    }


def as_even_as_consistent(state: State, seed: int) -> Planner:
    """The single-step plan with the balance that consistent hashing happens to have for as many workers."""
    nobody = np.zeros(len(state.sizes), np.int64)

    def planner(owners: Ints, count: int) -> Plan:
        theirs = baselines.consistent(nobody, state.sizes, state.loads, count, seed=seed).tau
        return ssm(owners, state.sizes, state.loads, count, theirs)

    return planner


def looking_ahead(state: State, values: Values) -> Planner:
    """Sterna's plan with values."""
    return lambda owners, count: mtm(owners, state.sizes, state.loads, count, values)
