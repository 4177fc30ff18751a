"""The life of a query: it starts, runs its epochs, and ends.

One Structured Streaming query runs, whose ``foreachBatch`` is an epoch; beside it a thread that ticks where
an epoch is wanted without data, one that waits for the end, and one that asks the controllers. If an epoch
fails, nothing of it is kept, whoever waits gets what went wrong, and everything that the query held is given
back.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from sterna.controllers.thread import Asking
from sterna.dataflow import Dataflow
from sterna.engine.combining import Combiner
from sterna.engine.coordinator import Coordinator
from sterna.engine.epoch import Combining, Tasks, run_epoch
from sterna.engine.initial import load_initial_state
from sterna.engine.placement import Placer
from sterna.engine.spark import Functions, SparkRunner, unioned
from sterna.errors import SternaError
from sterna.session import quick_local_logs
from sterna.sinks.files import BETWEEN, sweep
from sterna.sources.tick import Ticker, tick_frame

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

# Spark takes a failed epoch for a stop, and stays silent, if this is how the failure reads.
STOPPED = "py4j.protocol.Py4JJavaError: An error occurred while calling stop: java.lang.InterruptedException"
IDLE_SECONDS = 1.0
SOURCES_SECONDS, LOOK_SECONDS = 10.0, 0.01


class Lifetime:
    """A query from its start to its end; ``Query`` is what users see of it."""

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

    def begin_with(self, initial: dict[str, Any], asking: Asking) -> None:
        """Starts Spark's query and the threads beside it.

        Before that it loads the initial state, if the checkpoint is new.
        """
        coordinator = self._coordinator
        self._asking = asking
        number = coordinator.incarnation.number
        sweep(coordinator.store, BETWEEN, number)
        coordinator.sink.open(coordinator.store, self.flow.output, self._spark, number)
        if coordinator.late is not None:
            coordinator.late.open(coordinator.store, self.flow.timed_edges()[0].schema, self._spark, number)
        if initial and coordinator.last.epoch < 0 and not coordinator.manifests.epochs():
            load_initial_state(coordinator, self._spark, self._local, initial)
        self._source = unioned(self._frames, self.flow, tick_frame(self._spark, coordinator.store))
        asking.start()
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
            if local:
                _wait_for_sources(self.streaming_query)

    def _epoch(self, batch: Any, epoch: int) -> None:
        """Spark calls this with every micro-batch."""
        with self._running:
            # Between two epochs is the time to stop: Spark has not committed this one, and will ask for it
            # again.
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
        """Whether Spark has looked for data since the last epoch and found none.

        It also counts if Spark does not look for a while.
        """
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
        """Waits for Spark's query to end.

        Under ``availableNow`` starts it again while there is something to do. Whatever goes wrong on the way
        is the query's failure: this thread has nobody else to tell.
        """
        try:
            self.streaming_query.awaitTermination()
            while not self._stopping and self._failure is None and self._more():
                self._ticker.tick()
                self._launch()
                self.streaming_query.awaitTermination()
        except Exception as error:  # noqa: BLE001 - kept, and raised to whoever waits
            # A stop that does not wait for the running epoch makes Spark's query fail; that is no failure of
            # ours.
            self._failure = self._failure or (None if self._stopping else error)
            # It may have been started again just before: no epoch may run once the checkpoint is released.
            with contextlib.suppress(Exception):
                self.streaming_query.stop()
        finally:
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
        """Gives back what the query held: its threads, its slots, its checkpoint.

        One that can't be given back does not keep the others, nor those who wait for the end.
        """
        with contextlib.ExitStack() as held:  # from the last to the first
            held.callback(self._end)
            held.callback(self._coordinator.close)
            held.callback(self._placer.close)
            held.callback(self._ticker.stop)
            if self._asking is not None:
                held.callback(self._asking.stop)

    def _end(self) -> None:
        with self._progressed:
            self._ended.set()
            self._progressed.notify_all()

    def stop(self, timeout: float = 60.0) -> None:
        """Stops the query.

        The epoch that is running ends first, unless it takes longer than ``timeout`` seconds.
        """
        self._stopping = True
        if self._running.acquire(timeout=timeout):
            self._running.release()
        if self.streaming_query is not None:
            # Spark marks the query as stopped first and then waits for the epoch that may just have been
            # asked for.
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


def _wait_for_sources(query: StreamingQuery) -> None:
    """Until Spark has made the query's sources, or for some seconds.

    A source that keeps a log of its own, as that of files does, writes it as the session says when the source
    is made, in a thread of Spark's, and not as it said when the query was started.
    """
    deadline = time.monotonic() + SOURCES_SECONDS
    while query.isActive and query.status["message"].startswith("Initializing"):
        if time.monotonic() > deadline:
            return
        time.sleep(LOOK_SECONDS)
