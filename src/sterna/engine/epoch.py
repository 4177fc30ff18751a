"""One epoch from start to end, with the exchange and the processes left to a runner.

``run_epoch`` is the order of things: freeze, build the tasks, let the runner run them (Spark, or the
in-process twin), commit. A runner gets ``Tasks`` and returns the receipts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sterna.engine.apply import Applying
from sterna.engine.coordinator import Coordinator
from sterna.engine.decision import Decision
from sterna.engine.plans import Extraction, OperatorPlan
from sterna.engine.route import Routing
from sterna.sinks.base import TaskSink
from sterna.sinks.files import BETWEEN, Files
from sterna.state.manifest import Manifest

Seats = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Tasks:
    """The tasks of one epoch: routing for all sources; for each operator its extractions and its apply.

    ``sink`` is set where a DataFrame function stands before the sink: its rows are written by tasks of their
    own.
    """

    epoch: int
    routing: Routing
    extractions: tuple[tuple[Extraction, ...], ...]
    horizons: tuple[dict[str, int | None], ...]
    applying: tuple[Applying, ...]
    sink: TaskSink | None = None
    incarnation: int = 0

    @property
    def workers(self) -> tuple[int, ...]:
        """How many workers each operator has in this epoch."""
        return tuple(configuration.workers for configuration in self.routing.configurations)


@dataclass(frozen=True)
class Placement:
    """Where the workers of an epoch sit.

    Attributes:
        seats: for each operator, the slot of each worker.
        same_host: whether two workers of an operator share a host.
    """

    seats: Seats
    same_host: Callable[[str, int, int], bool]


@dataclass(frozen=True)
class Combining:
    """Which edges are combined before the exchange, and by whom."""

    router: frozenset[int] = frozenset()
    native: frozenset[int] = frozenset()


def plain_seats(workers: tuple[int, ...]) -> Seats:
    """Worker w sits in slot w."""
    return tuple(tuple(range(count)) for count in workers)


def build_tasks(
    coordinator: Coordinator,
    decision: Decision,
    plans: list[OperatorPlan],
    seats: Seats,
    combining: Combining,
) -> Tasks:
    """The tasks of an epoch from its decision and plans."""
    flow = coordinator.flow
    configurations = tuple(decision.configurations[operator.name] for operator in flow.operators)
    horizons = tuple(coordinator.horizons(coordinator.last, index) for index in range(len(flow.operators)))
    late = coordinator.late
    routing = Routing(
        decision.epoch,
        configurations,
        seats,
        decision.watermarks[0],
        combining.router,
        combining.native,
        keep_late=late is not None,
    )
    applying = tuple(
        Applying(
            operator=index,
            epoch=decision.epoch,
            incarnation=coordinator.incarnation.number,
            refs=plan.refs,
            changes=plan.changes,
            frontier=decision.frontier(flow.depth(index)),
            previous=coordinator.previous_frontier(index),
            configurations=configurations,
            seats=seats,
            horizons=horizons[index],
            fsync=coordinator.options.fsync,
            sink=coordinator.sink.task() if index == len(flow.operators) - 1 and flow.final is None else None,
            stage=Files(coordinator.store, BETWEEN) if flow.staged(index) else None,
            late=late.task() if late is not None and index == 0 else None,
        )
        for index, plan in enumerate(plans)
    )
    return Tasks(
        decision.epoch,
        routing,
        tuple(tuple(plan.extractions) for plan in plans),
        horizons,
        applying,
        coordinator.sink.task() if flow.final is not None else None,
        coordinator.incarnation.number,
    )


def run_epoch(
    coordinator: Coordinator,
    epoch: int,
    place: Callable[[tuple[int, ...]], Placement],
    run: Callable[[Tasks], list[dict[str, Any]]],
    combining: Callable[[], Combining] = Combining,
) -> Manifest | None:
    """Runs and commits an epoch; ``None`` if it had been run already."""
    began = time.perf_counter()
    if not coordinator.begin(epoch):
        return None
    decision = coordinator.freeze(epoch)
    workers = tuple(decision.configurations[operator.name].workers for operator in coordinator.flow.operators)
    placement = place(workers)
    plans = coordinator.plan(decision, placement.same_host)
    tasks = build_tasks(coordinator, decision, plans, placement.seats, combining())
    receipts = run(tasks)
    return coordinator.commit(decision, plans, receipts, time.perf_counter() - began)
