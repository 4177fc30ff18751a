"""What users do with a query that runs: migrate, drain, look at its status, its history, its state.

``start`` opens the checkpoint (which may belong to another dataflow or another running query: it says so) and
makes a ``Query``, the handle. How it runs and ends is in ``lifetime``; a new start on the same checkpoint
goes on from the last committed epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from py4j.protocol import Py4JError

from sterna import strategies
from sterna.configuration import Configuration
from sterna.control import IF_BUSY, Entry, EventTime, new_name, parse_when
from sterna.controllers.backlog import backlog_of
from sterna.controllers.running import Controllers
from sterna.controllers.thread import Asking
from sterna.controllers.verdict import Controller
from sterna.engine.draining import emptied
from sterna.engine.reading import state_frame
from sterna.errors import InvalidInput, SternaError
from sterna.handle import MigrationHandle
from sterna.lifetime import Lifetime
from sterna.statistics import Statistics
from sterna.strategies import Strategy
from sterna.targets import Wish, as_target


class Query(Lifetime):
    """A running query."""

    def begin(self, initial: dict[str, Any], controllers: Iterable[Controller] = ()) -> None:
        """Called once by ``start``."""
        self.begin_with(initial, self._asked(controllers))

    # Migration

    def migrate(
        self,
        target: Wish,
        strategy: Strategy | None = None,
        at: int | str | datetime | EventTime | None = None,
        *,
        operator: str | None = None,
        if_busy: str = "refuse",
        cause: str = "user",
    ) -> MigrationHandle:
        """Moves state.

        Args:
            target: ``sterna.rescale(n)``, ``sterna.balance()``, ``sterna.bins(n)``, a map (or pairs) of bins
                to workers, or a plan of ``sterna.planning``.
            strategy: how: ``sterna.all_at_once()`` (the default), ``fluid()``, ``batched(n)``, ``matched()``,
                ``paced(latency=...)``, or a function of your own, see ``sterna.strategies``.
            at: as soon as possible by default; an epoch; a wall-clock time such as
                ``"2026-12-01T03:00:00Z"``; or ``sterna.event_time(...)``.
            operator: the operator it is for; all by default.
            if_busy: if another migration of the same operator is under way when this one is due:
                ``"refuse"``, ``"queue"`` (begin when that one has ended) or ``"merge"`` (take over what it
                still has to do).
            cause: why, for the history.
        """
        if if_busy not in IF_BUSY:
            raise InvalidInput(f"if_busy must be one of {', '.join(IF_BUSY)}, not {if_busy!r}")
        if isinstance(strategy, str):
            raise InvalidInput(
                f"strategy={strategy!r} is text; write sterna.fluid(), sterna.batched(16) and so on"
            )
        written = strategies.to_json(strategy or strategies.all_at_once())
        entry = Entry(new_name(), as_target(target), parse_when(at), operator, cause, written, if_busy)
        self._submit(entry)
        return self.migration(entry.name)

    def drain(
        self, executor: str, strategy: Strategy | None = None, *, cause: str = "user"
    ) -> list[MigrationHandle]:
        """Empties an executor that is to go.

        The bins of the workers that sit there move to the others, and then the query has no slot there any
        more. Spark removes executors, Sterna does not; ``executors()`` tells when this one can go. A
        restarted query begins with slots on all executors.

        Args:
            executor: its name, as ``executors()`` tells it, or a host, for all executors there.
            strategy: how bins move; all at once by default.
            cause: why, for the history.

        Returns:
            The migrations, one for each operator that has bins there and workers elsewhere; an operator
            without workers elsewhere moves as it is.
        """
        seated = self._placer.to_be_emptied(executor)
        last = self._coordinator.last
        wishes = {
            name: emptied(last.configurations[name], workers, self._coordinator.statistics(name))
            for name, workers in seated.items()
        }
        handles = [
            self.migrate(wish, strategy, operator=name, if_busy="queue", cause=f"{cause}: drains {executor}")
            for name, wish in wishes.items()
            if wish
        ]
        self._placer.drain(executor, lambda: all(handle.done for handle in handles))
        self._ticker.nudge()
        return handles

    def executors(self) -> dict[str, dict[str, int | bool]]:
        """The executors that have slots; none if there is but one executor.

        For each it tells how many slots, how many workers ran there in the last epoch, and whether it is
        being drained or is drained.
        """
        return self._placer.executors()

    def migration(self, name: str) -> MigrationHandle:
        """The handle of a migration, by its name."""
        return MigrationHandle(name, self._coordinator, self._submit, self._wait_until)

    def migrations(self) -> list[dict[str, Any]]:
        """All migrations that the history remembers and those under way, the oldest first."""
        return self._coordinator.history.told(self._coordinator.last)

    def _asked(self, controllers: Iterable[Controller]) -> Asking:
        """The thread that asks the controllers."""
        members = Controllers(
            controllers,
            self._coordinator,
            lambda *wish, **options: self.migrate(*wish, **options).name,
            backlog=lambda: self._from_spark(lambda: backlog_of(self.streaming_query.lastProgress)),
            cores=lambda: self._from_spark(lambda: self._spark.sparkContext.defaultParallelism),
        )
        return Asking(members, self._idle)

    def _from_spark(self, ask: Callable[[], int | None]) -> int | None:
        try:
            return ask()
        except (Py4JError, OSError, AttributeError):  # Spark has been stopped, or has not begun
            return None

    def _submit(self, entry: Entry) -> None:
        if self._ended.is_set():
            raise SternaError(
                "the query has ended; start it again, or leave a wish for its next start with `sterna apply`"
            )
        self._coordinator.submit(entry)
        self._ticker.nudge()

    # Looking

    def configuration(self, operator: str | None = None) -> Configuration:
        """Where the bins are, as of the last committed epoch."""
        name = self._operator(operator)
        return self._coordinator.last.configurations[name]

    def status(self) -> dict[str, Any]:
        """What the query is doing: epoch, watermark, where bins are, what waits."""
        coordinator = self._coordinator
        with coordinator.lock:
            last, frozen = coordinator.last, coordinator.frozen
        return {
            "active": self.is_active,
            "frozen": frozen,
            "incarnation": coordinator.incarnation.number,
            **last.summary(),
        }

    def statistics(self, operator: str | None = None) -> Statistics:
        """What is known of an operator's bins, as of the last committed epoch.

        That is about how many bytes each has, and how many rows reach it; and what the last epochs took.
        """
        return self._coordinator.statistics(self._operator(operator))

    def history(self) -> list[dict[str, Any]]:
        """What happened to the configuration, oldest first."""
        return self._coordinator.history.events()

    def state(self, operator: str | None = None, epoch: int | None = None, table: str | None = None) -> Any:
        """The state of an operator as a batch DataFrame, as of a committed epoch (the last by default)."""
        name = self._operator(operator)
        coordinator = self._coordinator
        manifest = (
            coordinator.last
            if epoch in (None, coordinator.last.epoch)
            else coordinator.manifests.read(epoch or 0)
        )
        return state_frame(self._spark, self.flow, coordinator, manifest, name, table, self._local)

    def _operator(self, name: str | None) -> str:
        if name is None and len(self.flow.operators) == 1:
            return self.flow.operators[0].name
        if name is None:
            raise InvalidInput(f"which operator? There are {[o.name for o in self.flow.operators]}")
        return self.flow.operators[self.flow.index(name)].name
