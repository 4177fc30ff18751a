"""The experiments of the planner benchmark; see ``planner``."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sterna.bench import response
from sterna.bench.planner_replay import (
    Replay,
    State,
    as_even_as_consistent,
    balanced,
    looking_ahead,
    planners,
    replay,
)
from sterna.bench.planner_traces import Trace
from sterna.bench.rig import Say
from sterna.planning import ssm
from sterna.planning.history import changes
from sterna.planning.inputs import Inputs
from sterna.planning.matrix import Matrix
from sterna.planning.search import Effort, search
from sterna.planning.tasks import Each
from sterna.planning.values import Values


@dataclass(frozen=True)
class Sizes:
    """How large the experiments are.

    Attributes:
        bins: how many, in all experiments that don't vary them.
        workers: the fewest and the most.
        days: how long the trace is that is made up.
        tau: the balance, in all experiments that don't vary it.
        gamma: the discount, likewise.
        exponents: of Zipf's law, for the experiment on state.
        gammas: for that on the discount.
        taus: for that on the balance, and the times of plans.
        sweep: numbers of bins, for that on them.
        ahead: values are computed for no more bins than this, where bins are varied; for twice as many they
            take two to three times as long.
        timed: numbers of bins, for the times of plans.
        rings: so many of consistent hashing, of which the mean is taken.
        effort: of computing values.
        response: the experiment with queries.
    """

    bins: int
    workers: tuple[int, int]
    days: int
    tau: float
    gamma: float
    exponents: tuple[float, ...]
    gammas: tuple[float, ...]
    taus: tuple[float, ...]
    sweep: tuple[int, ...]
    ahead: int
    timed: tuple[int, ...]
    rings: int
    effort: Effort
    response: response.Size

    @property
    def counts(self) -> range:
        """All numbers of workers there may be."""
        return range(self.workers[0], self.workers[1] + 1)


class Room:
    """What all experiments share."""

    def __init__(self, say: Say, sizes: Sizes, seed: int, each: Each) -> None:
        self.say, self.sizes, self.seed, self._each = say, sizes, seed, each
        self._values: dict[tuple[Any, ...], tuple[Values, float]] = {}

    def values(self, trace: Trace, state: State, tau: float, gamma: float) -> tuple[Values, float]:
        """Values from the first half of a trace, and how many seconds they took."""
        key = (trace.name, state.name, len(state.sizes), tau, gamma)
        if key not in self._values:
            matrix = Matrix.learnt(changes(trace.counts[: trace.half]), self.sizes.counts)
            inputs = Inputs.of(state.sizes, state.loads, matrix, tau, gamma)
            begin = time.monotonic()
            values = Values(inputs, search(inputs, self.sizes.effort, self._each))
            seconds = time.monotonic() - begin
            self.say(
                f"{trace.name}: values for {len(state.sizes)} bins, {state.name}, tau {tau:g}, gamma "
                f"{gamma:g} in {seconds:.1f} s"
            )
            self._values[key] = values, seconds
        return self._values[key]

    def extremes(self) -> list[State]:
        """Bins alike, and the most skewed."""
        return [
            State.alike(self.sizes.bins),
            State.skewed(self.sizes.bins, self.sizes.exponents[-1], self.seed),
        ]

    def ahead(self, trace: Trace, state: State, tau: float, gamma: float) -> dict[str, Any]:
        """What the plan that looks ahead moves."""
        values, seconds = self.values(trace, state, tau, gamma)
        return {
            **replay(looking_ahead(state, values), trace, state).figures(),
            "gamma": gamma,
            "precompute_seconds": round(seconds, 1),
            "exact": values.found.exact,
        }

    def line(self, trace: Trace, state: State, tau: float, *, ahead: bool = True) -> dict[str, Any]:
        """All planners, or all but the one that looks ahead."""
        self.say(f"{trace.name}: {state.name}, {len(state.sizes)} bins, tau {tau:g}")
        found = {name: replay(one, trace, state).figures() for name, one in planners(state, tau, 0).items()}
        for name in ("consistent", "consistent_bounded"):
            found[name] = _mean(
                [replay(planners(state, tau, ring)[name], trace, state) for ring in range(self.sizes.rings)]
            )
        found["ssm_as_even_as_consistent"] = _mean(
            [replay(as_even_as_consistent(state, ring), trace, state) for ring in range(self.sizes.rings)]
        )
        if ahead:
            found["mtm"] = self.ahead(trace, state, tau, self.sizes.gamma)
        return {**_setting(trace, state, tau), "planners": found}


def _state(room: Room, trace: Trace) -> list[dict[str, Any]]:
    """Bins alike, and bins by Zipf's law."""
    sizes = room.sizes
    states = [State.alike(sizes.bins), *(State.skewed(sizes.bins, one, room.seed) for one in sizes.exponents)]
    return [room.line(trace, state, state.tau(sizes.tau, sizes.counts)) for state in states]


def _gamma(room: Room, trace: Trace) -> list[dict[str, Any]]:
    """The plan that looks ahead, for several discounts, against the single-step plan.

    For the usual balance all of them, the least and the greatest for one that leaves twice the room.
    """
    gammas = room.sizes.gammas
    out = []
    for state, (left, some) in itertools.product(
        room.extremes(), ((1, gammas), (2, (gammas[0], gammas[-1])))
    ):
        tau = state.tau(left * room.sizes.tau, room.sizes.counts)
        single = replay(planners(state, tau, 0)["ssm"], trace, state).figures()
        for gamma in some:
            found = {"ssm": single, "mtm": room.ahead(trace, state, tau, gamma)}
            out.append({**_setting(trace, state, tau), "gamma": gamma, "planners": found})
    return out


def _tau(room: Room, trace: Trace) -> list[dict[str, Any]]:
    """All planners, for several balances: bins alike, and the most skewed."""
    out = []
    for state in room.extremes():
        taus = dict.fromkeys(state.tau(tau, room.sizes.counts) for tau in room.sizes.taus)
        out += [room.line(trace, state, tau) for tau in taus]
    return out


def _bins(room: Room, trace: Trace) -> list[dict[str, Any]]:
    """All planners, for several numbers of bins; the one that looks ahead only for the fewer of them."""
    out = []
    for bins in room.sizes.sweep:
        state = State.skewed(bins, room.sizes.exponents[0], room.seed)
        tau = state.tau(room.sizes.tau, room.sizes.counts)
        out.append(room.line(trace, state, tau, ahead=bins <= room.sizes.ahead))
    return out


def _time(room: Room, trace: Trace) -> list[dict[str, Any]]:
    """How long a single-step plan takes, for several numbers of bins and balances.

    Of the trace only the name matters.
    """
    low, high = room.sizes.workers
    out = []
    for bins in room.sizes.timed:
        state = State.skewed(bins, room.sizes.exponents[0], room.seed)
        for wanted in room.sizes.taus:
            tau = state.tau(wanted, room.sizes.counts)
            seconds = []
            for _ in range(5):
                owners = balanced(state, low)
                for count in (high, (low + high) // 2, low):
                    begin = time.perf_counter()
                    owners = ssm(owners, state.sizes, state.loads, count, tau).assignment
                    seconds.append(time.perf_counter() - begin)
            out.append(
                {**_setting(trace, state, tau), "ssm_ms_p50": round(1000 * statistics.median(seconds), 2)}
            )
    return out


EXPERIMENTS: dict[str, Callable[[Room, Trace], list[dict[str, Any]]]] = {
    "state": _state,
    "gamma": _gamma,
    "tau": _tau,
    "bins": _bins,
    "time": _time,
}


def _setting(trace: Trace, state: State, tau: float) -> dict[str, Any]:
    return {"trace": trace.name, "state": state.name, "bins": len(state.sizes), "tau": round(tau, 6)}


def _mean(found: list[Replay]) -> dict[str, Any]:
    """Figures of several runs, each as their mean."""
    figures = [one.figures() for one in found]
    return {name: round(statistics.fmean(one[name] for one in figures), 4) for name in figures[0]}
