"""What runs: start, stop, migrate, status, history, state.

``start`` opens the checkpoint (which may belong to another dataflow or another running query: it says so), loads the initial state if there is any,
and starts one Structured Streaming query whose ``foreachBatch`` is an epoch. ``Query`` is the handle. If an epoch fails, nothing of it is
kept, ``await_termination`` raises what went wrong, and a new start on the same checkpoint goes on from the last committed epoch.
"""

from __future__ import annotations

import contextlib
import threading
import time
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
from sterna.dataflow import Dataflow
from sterna.engine.combining import Combiner
from sterna.engine.coordinator import Coordinator
from sterna.engine.draining import emptied
from sterna.engine.epoch import Combining, Tasks, run_epoch
from sterna.engine.initial import load_initial_state
from sterna.engine.placement import Placer
from sterna.engine.reading import state_frame
from sterna.engine.spark import Functions, SparkRunner, unioned
from sterna.errors import InvalidInput, SternaError
from sterna.handle import MigrationHandle
from sterna.session import quick_local_logs
from sterna.sinks.files import BETWEEN, sweep
from sterna.sources.tick import Ticker, tick_frame
from sterna.statistics import Statistics
from sterna.strategies import Strategy
from sterna.targets import Wish, as_target

# Spark takes a failed epoch for a stop, and stays silent, if this is how the failure reads.
STOPPED = "py4j.protocol.Py4JJavaError: An error occurred while calling stop: java.lang.InterruptedException"
IDLE_SECONDS = 1.0


class Query:
    """A running query."""

    def __init__(
        self,
        flow: Dataflow,
        frames: list[Any],
        functions: Functions,
        coordinator: Coordinator,
        *,
        trigger: dict[str, Any],
        combine: str,
        at_end: str,
        local: str | None,
        spark_checkpoint: str,
        name: str | None,
    ) -> None:
        self.flow, self._frames, self._coordinator = flow, frames, coordinator
        self._trigger, self._at_end, self._name = trigger, at_end, name
        self._local, self._spark_checkpoint = local, spark_checkpoint
        self._spark = frames[0].sparkSession
        ansi = self._spark.conf.get("spark.sql.ansi.enabled", "true") == "true"
        self._combiner = Combiner(flow, combine, ansi)
        self._placer = Placer(self._spark, flow)
        self._runner = SparkRunner(flow, coordinator.store, local, self._placer, functions)
        self._ticker = Ticker(
            coordinator.store,
            lambda: coordinator.wants_epoch() or self._placer.wants_epoch(),
            self._idle,
            lambda: coordinator.frozen,
        )
        self._failure: BaseException | None = None
        self._ended = threading.Event()
        self._stopping = False
        self._running = threading.Lock()
        self._epoch_ended = time.monotonic()
        self._halted = threading.Event()
        self._progressed = threading.Condition()
        self._asking: Asking | None = None
        self.streaming_query: Any = None

    # Start and stop

    def begin(self, initial: dict[str, Any], controllers: Iterable[Controller] = ()) -> None:
        """Called once by ``start``."""
        coordinator = self._coordinator
        self._asking = self._asked(controllers)
        number = coordinator.incarnation.number
        sweep(coordinator.store, BETWEEN, number)
        coordinator.sink.open(coordinator.store, self.flow.output, self._spark, number)
        if coordinator.late is not None:
            coordinator.late.open(coordinator.store, self.flow.timed_edges()[0].schema, self._spark, number)
        if initial and coordinator.last.epoch < 0 and not coordinator.manifests.epochs():
            load_initial_state(coordinator, self._spark, self._local, initial)
        self._source = unioned(self._frames, self.flow, tick_frame(self._spark, coordinator.store))
        self._asking.start()
        self._launch()
        self._ticker.start()
        threading.Thread(target=self._watch, name="sterna-watch", daemon=True).start()

    def _launch(self) -> None:
        self._runner.relaunched()
        writer = self._source.writeStream.foreachBatch(self._epoch).option(
            "checkpointLocation", self._spark_checkpoint
        )
        if self._name is not None:
            writer = writer.queryName(self._name)
        writer = writer.trigger(**self._trigger)
        local = self._coordinator.store.is_local
        with quick_local_logs(self._spark) if local else contextlib.nullcontext():
            self.streaming_query = writer.start()

    def _epoch(self, batch: Any, epoch: int) -> None:
        """Spark calls this with every micro-batch."""
        with self._running:
            # Between two epochs is the time to stop: Spark has not committed this one, and will ask for it again.
            if self._stopping:
                self._halted.wait(timeout=10)
                raise SternaError(STOPPED) from None
            self._run_epoch(batch, epoch)

    def _run_epoch(self, batch: Any, epoch: int) -> None:
        used = Combining()

        def run(tasks: Tasks) -> list[dict[str, Any]]:
            return self._runner.run(batch, tasks)

        def combining() -> Combining:
            nonlocal used
            used = self._combiner.choice()
            return used

        try:
            manifest = run_epoch(
                self._coordinator,
                epoch,
                lambda workers: self._placer.place(workers, batch.sparkSession),
                run,
                combining,
            )
        except SystemExit as error:
            # Raised on into Spark's callback it would end that thread, and the query would hang.
            self._failure = SternaError(f"something that the query calls ended the program: {error!r}")
            raise self._failure from error
        except BaseException as error:
            if not self._stopping:
                self._failure = error
            raise
        if manifest is not None:
            self._combiner.learn(manifest, used)
            self._placer.learn(manifest)
            if self._asking is not None:
                self._asking.committed(manifest)
        self._epoch_ended = time.monotonic()
        with self._progressed:
            self._progressed.notify_all()
        self._ticker.nudge()

    def _idle(self) -> bool:
        """Whether Spark has looked for data since the last epoch and found none, or does not look for a while."""
        if self._running.locked() or self.streaming_query is None:
            return False
        if time.monotonic() - self._epoch_ended > IDLE_SECONDS:
            return True
        try:
            status = self.streaming_query.status
        except Py4JError:
            # Spark has been stopped: there will be no epoch, whatever we do.
            return False
        # While Spark looks, it does not know of any data either.
        return not status["isDataAvailable"] and not status["isTriggerActive"]

    def _watch(self) -> None:
        """Waits for Spark's query to end; under ``availableNow`` starts it again while there is something to do."""
        while True:
            try:
                self.streaming_query.awaitTermination()
            except Exception as error:  # noqa: BLE001 - kept, and raised to whoever waits
                # A stop that does not wait for the running epoch makes Spark's query fail; that is no failure of ours.
                self._failure = self._failure or (None if self._stopping else error)
            if self._stopping or self._failure is not None or not self._more():
                break
            self._ticker.tick()
            self._launch()
        self.release()

    def _more(self) -> bool:
        if "availableNow" not in self._trigger and "once" not in self._trigger:
            return False
        if self._coordinator.wants_epoch():
            return True
        if self._at_end == "flush" and not self._coordinator.flushing:
            self._coordinator.flushing = True
        return self._coordinator.wants_epoch()

    def release(self) -> None:
        """Gives back what the query held: its threads, its slots, its checkpoint."""
        if self._asking is not None:
            self._asking.stop()
        self._ticker.stop()
        self._placer.close()
        self._coordinator.close()
        with self._progressed:
            self._ended.set()
            self._progressed.notify_all()

    def stop(self, timeout: float = 60.0) -> None:
        """Stops the query: the epoch that is running ends first, unless it takes longer than ``timeout`` seconds."""
        self._stopping = True
        if self._running.acquire(timeout=timeout):
            self._running.release()
        if self.streaming_query is not None:
            # Spark marks the query as stopped first and then waits for the epoch that may just have been asked for.
            threading.Timer(0.2, self._halted.set).start()
            self.streaming_query.stop()
        self._ended.wait(timeout=60)

    def await_termination(self, timeout: float | None = None) -> bool:
        """Waits until the query has ended; whether it has. Raises what made it fail, if something did."""
        ended = self._ended.wait(timeout)
        if ended and self._failure is not None:
            raise self._failure
        return ended

    def exception(self) -> BaseException | None:
        """What made the query fail, or ``None``."""
        return self._failure

    @property
    def is_active(self) -> bool:
        """Whether the query runs."""
        return not self._ended.is_set()

    def process_all_available(self, timeout: float = 120.0) -> None:
        """Waits until the sources are exhausted and nothing waits to be done; for tests and notebooks."""
        deadline = time.monotonic() + timeout
        while True:
            self.streaming_query.processAllAvailable()
            if self._failure is not None:
                raise self._failure
            if not self._coordinator.wants_epoch():
                return
            if time.monotonic() > deadline:
                raise SternaError(f"still busy after {timeout} seconds")
            epoch = self._coordinator.last.epoch
            self._ticker.nudge()
            self._wait_until(self._committed(epoch + 1), max(0.1, deadline - time.monotonic()))

    def wait_for_epoch(self, epoch: int, timeout: float = 120.0) -> None:
        """Waits until an epoch is committed."""
        if not self._wait_until(self._committed(epoch), timeout):
            raise SternaError(f"epoch {epoch} was not committed within {timeout} seconds")

    def _committed(self, epoch: int) -> Callable[[], bool]:
        return lambda: self._coordinator.last.epoch >= epoch and self._coordinator.committed

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
            target: ``sterna.rescale(n)``, ``sterna.balance()``, ``sterna.bins(n)``, a map (or pairs) of bins to workers, or a plan of ``sterna.planning``.
            strategy: how: ``sterna.all_at_once()`` (the default), ``fluid()``, ``batched(n)``, ``matched()``, ``paced(latency=...)``, or a function
                of your own, see ``sterna.strategies``.
            at: as soon as possible by default; an epoch; a wall-clock time such as ``"2026-12-01T03:00:00Z"``; or ``sterna.event_time(...)``.
            operator: the operator it is for; all by default.
            if_busy: if another migration of the same operator is under way when this one is due: ``"refuse"``, ``"queue"`` (begin when that one has
                ended) or ``"merge"`` (take over what it still has to do).
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
        """Empties an executor that is to go: moves the bins of the workers that sit there to the others, and then has no slot there any more.

        Spark removes executors, Sterna does not; ``executors()`` tells when this one can go. A restarted query begins with slots on all executors.

        Args:
            executor: its name, as ``executors()`` tells it, or a host, for all executors there.
            strategy: how bins move; all at once by default.
            cause: why, for the history.

        Returns:
            The migrations, one for each operator that has bins there and workers elsewhere; an operator without workers elsewhere moves as it is.
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
        """The executors that have slots: how many, how many workers ran there in the last epoch, whether they are being drained or are drained; none if there is but one executor."""
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

    def _wait_until(self, done: Callable[[], bool], timeout: float | None) -> bool:
        """Whether something came true before the time was over; raises if the query ended first."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._progressed:
            while not done():
                if self._failure is not None:
                    raise self._failure
                if self._ended.is_set():
                    raise SternaError(f"the query has ended at epoch {self._coordinator.last.epoch}")
                left = 0.5 if deadline is None else min(0.5, deadline - time.monotonic())
                if left <= 0:
                    return False
                self._progressed.wait(left)
        return True

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
        """What is known of an operator's bins, as of the last committed epoch: about how many bytes each has, and how many rows reach it; and what the last epochs took."""
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
