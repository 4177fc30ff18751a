"""How much state do planners move while a load comes and goes?

This follows §6 of the paper on optimal operator-state migration.

Method. A trace of load becomes a number of workers for each hour (``planner_traces``). Whenever this changes,
each planner is asked for a plan, from where its own last plan led, and the state that it moves is added up.
The transition matrix of the plan that looks ahead is learnt from the first half of the trace, and values are
computed from it on Spark; all planners go through the whole trace, and what they move in the later half,
which nobody has seen, is reported too. Experiments on that: bins alike and bins by Zipf's law; the discount
gamma and the balance tau, for bins alike and skewed; the number of bins, skewed, where values are computed
for the fewer of them only; how long plans take.

The last experiment runs queries, and tells how long answers take while state moves as planners say
(``response``); it needs no trace. In all others nothing moves but numbers.

Honesty. Consistent hashing does not balance, so it is compared in two ways: with its bounded variant, which
does, and by giving Sterna's single-step plan the balance that consistent hashing happens to have. Its figures
are means over several rings. Redist and Storm's default are what ``baselines`` says they are. Where intervals
can't be as even as was asked for, the least tau that they can have is used, and reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from sterna.bench import machine, response
from sterna.bench.planner_experiments import EXPERIMENTS, Room, Sizes
from sterna.bench.planner_tables import tables
from sterna.bench.planner_traces import Trace, made_up, of_folder
from sterna.bench.rig import Say
from sterna.planning.history import changes
from sterna.planning.precompute import on_spark
from sterna.planning.search import Effort
from sterna.session import interruptible, workplace

__all__ = ["EVERY", "FULL", "QUICK", "run", "show"]

EVERY = (*EXPERIMENTS, "response")

REPLAYED = ("state", "gamma", "tau", "bins")
"""The experiments that go through traces."""
GOALS = {
    "ssm_to_storm": ("ssm", "storm"),
    "ssm_to_bounded_consistent": ("ssm", "consistent_bounded"),
    "ssm_to_consistent_as_even": ("ssm_as_even_as_consistent", "consistent"),
    "mtm_to_ssm": ("mtm", "ssm"),
}
"""Who should move less than whom."""

FULL = Sizes(
    bins=64,
    workers=(8, 16),
    days=56,
    tau=0.2,
    gamma=0.8,
    exponents=(0.5, 1.0),
    gammas=(0.2, 0.4, 0.6, 0.8, 0.9),
    taus=(0.2, 0.3, 0.4, 0.6, 0.8),
    sweep=(32, 64, 128, 256),
    ahead=128,
    timed=(64, 256, 1024, 4096),
    rings=10,
    effort=Effort(),
    response=response.FULL,
)
QUICK = Sizes(
    bins=16,
    workers=(2, 5),
    days=6,
    tau=0.4,
    gamma=0.8,
    exponents=(0.5,),
    gammas=(0.2, 0.8),
    taus=(0.4, 0.6),
    sweep=(16, 32),
    ahead=16,
    timed=(16, 64),
    rings=2,
    effort=Effort(),
    response=response.SMOKE,
)


def run(
    say: Say,
    *,
    experiments: Sequence[str] = EVERY,
    sizes: Sizes = FULL,
    traces: str | None = None,
    seed: int = 0,
    master: str = "local[2]",
    memory: str = "1g",
    folder: str | None = None,
) -> dict[str, Any]:
    """Plan, and return the figures; see the module's docstring.

    Args:
        say: takes a line about what is going on.
        experiments: which ones: of ``EVERY``.
        sizes: how large they are.
        traces: a folder of CSV files; a trace is made up unless given.
        seed: of the trace that is made up, and of skewed state.
        master: Spark's master, if no session runs yet.
        memory: the heap of a session started here.
        folder: where the temporary folder goes; the system's choice unless given.
    """
    loads = of_folder(traces, *sizes.workers) if traces else [made_up(sizes.days, *sizes.workers, seed)]
    with workplace(master, memory, folder) as (spark, root):
        started = machine.facts(spark)
        room = Room(say, sizes, seed, on_spark(spark))

        def work() -> dict[str, Any]:
            live = "response" in experiments
            measured = response.measure(spark, str(root), sizes.response, say) if live else []
            replayed = {
                # How long a plan takes does not depend on the trace, so one is enough.
                name: [
                    line
                    for trace in (loads[:1] if name == "time" else loads)
                    for line in EXPERIMENTS[name](room, trace)
                ]
                for name in experiments
                if name != "response"
            }
            return {**replayed, **({"response": measured} if live else {})}

        found = interruptible(work, spark.stop)
    return {
        "benchmark": "planner",
        "traces": [_described(trace) for trace in loads],
        "workers": list(sizes.workers),
        "seed": seed,
        "experiments": found,
        "goals": _goals(found),
        "machine": started,
    }


def show(result: dict[str, Any], console: Console) -> None:
    """Print the figures as tables."""
    for table in tables(result):
        console.print(table)


def _described(trace: Trace) -> dict[str, Any]:
    return {"name": trace.name, "hours": len(trace.counts), "migrations": len(changes(trace.counts))}


def _goals(found: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    """The ratios that matter most, the worst of all traces, states, balances and numbers of bins.

    None should be above 1, and the first not above a half.
    """
    lines = [line for name in REPLAYED for line in found.get(name, [])]
    out = {}
    for goal, (ours, theirs) in GOALS.items():
        pairs = [(line["planners"].get(ours), line["planners"].get(theirs)) for line in lines]
        ratios = [
            mine["moved_in_all"] / max(other["moved_in_all"], 1e-12)
            for mine, other in pairs
            if mine and other
        ]
        if ratios:
            out[goal] = round(max(ratios), 4)
    return out
