"""A Spark session that suits Sterna.

Sterna runs on any session; this module holds the settings that make it fast and right, and starts a local
session with them for tests, demos and benchmarks. Nothing here is needed on a cluster whose configuration
already says the same: ``recommended_conf()`` is a plain dictionary for ``spark-submit`` or a builder.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from sterna.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LOOK_SECONDS, PATIENCE_SECONDS = 0.2, 60.0
T = TypeVar("T")
FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
LOCAL_FILE_MANAGER = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


def recommended_conf() -> dict[str, str]:
    """The Spark settings that Sterna recommends, each for a reason.

    - ``spark.python.unix.domain.socket.enabled``: Python workers on a Unix socket. Over loopback TCP, delayed
      acknowledgements cost about 40 ms a task, which is most of a small epoch.
    - ``spark.sql.shuffle.partitions``: small. Sterna's own exchange has one partition for each worker
      whatever this says, but a user's stateless ``groupBy`` or ``join`` inside an epoch pays for each empty
      partition.
    - ``spark.shuffle.reduceLocality.enabled``: off. Otherwise Spark runs a task where most of its shuffle
      input is, which changes with every epoch, instead of where the worker's state is.
    - ``spark.locality.wait``: how long a task waits for the executor that holds its worker's state. The value
      is Spark's default, said explicitly because placement relies on it.
    - ``spark.sql.session.timeZone``: UTC, so that event times mean the same on every machine.
    - ``spark.ui.showConsoleProgress``: off. A progress bar a job is noise when a job is an epoch.
    - ``spark.driver.defaultJavaOptions``: every half hour Spark asks its JVM for a collection of all garbage,
      which stopped everything for 300 to 450 ms with a heap of 4 GB. So it is done beside the work.

    Example:
        >>> recommended_conf()["spark.sql.session.timeZone"]
        'UTC'
    """
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.shuffle.partitions": "4",
        "spark.shuffle.reduceLocality.enabled": "false",
        "spark.locality.wait": "3s",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.defaultJavaOptions": "-XX:+ExplicitGCInvokesConcurrent",
    }


@contextmanager
def quick_local_logs(spark: SparkSession) -> Iterator[None]:
    """Queries that start inside write Spark's own logs on a local disk without a process for each file.

    Spark's usual way sets the permissions of a file by starting ``chmod``, about 45 ms an epoch. A query
    takes its settings when it starts; the session gets its own back.
    """
    with set_for_a_while(spark, {FILE_MANAGER: LOCAL_FILE_MANAGER}):
        yield


@contextmanager
def set_for_a_while(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings that a session has inside, and gets its own back after."""
    with settings_kept(spark, settings):
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield


@contextmanager
def settings_kept(spark: SparkSession, names: Iterable[str]) -> Iterator[None]:
    """Whatever becomes of these settings inside, a session has its own again after."""
    before = {name: spark.conf.get(name, None) for name in names}
    try:
        yield
    finally:
        for name, held in before.items():
            if held is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, held)


def session(master: str = "local[2]", **conf: str) -> SparkSession:
    """A Spark session with the recommended settings.

    Python workers run the interpreter that runs this process, unless ``PYSPARK_PYTHON`` names another: left
    alone, Spark would take the first ``python3`` on the path, which may lack Sterna or have another version.
    A local session binds to the loopback address, unless ``SPARK_LOCAL_IP`` names another.

    Args:
        master: Spark's master URL.
        **conf: more settings, or other values for the recommended ones. Names have dots, so pass them as
            ``**{"spark.driver.memory": "2g"}``.

    Returns:
        The session; an existing one of this process is reused, as ``getOrCreate`` does, and then only those
        settings take effect that Spark can change while running.
    """
    from py4j.protocol import Py4JError  # noqa: PLC0415 - settings alone need no Spark
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    _check_memory(conf.get("spark.driver.memory", "1g"))
    builder = SparkSession.builder.master(master).appName("sterna")
    for name, value in {**recommended_conf(), **conf}.items():
        builder = builder.config(name, value)
    try:
        active = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        told = next((line for line in str(error).splitlines() if line.strip()), repr(error))
        raise InvalidInput(
            f"Spark did not start with master {master!r}: {told.strip()} What it wrote before this says more"
        ) from error
    for tell in _TOLD:
        tell(active)
    return active


def _check_memory(text: str) -> None:
    """Raises ``InvalidInput`` for what the JVM would only say that it can't be."""
    if not re.fullmatch(r"[0-9]+[kmgt]b?", text, re.IGNORECASE):
        raise InvalidInput(f"{text!r} is no amount of memory; write it as 4g or 512m")


_TOLD: list[Callable[[SparkSession], None]] = []


def on_session(tell: Callable[[SparkSession], None]) -> None:
    """Has a function called with every session that ``session`` makes from now on."""
    if tell not in _TOLD:
        _TOLD.append(tell)


@contextmanager
def workplace(
    master: str = "local[2]",
    memory: str = "1g",
    folder: str | None = None,
    settings: Callable[[str], Mapping[str, str]] = lambda _: {},
) -> Iterator[tuple[SparkSession, Path]]:
    """A session and a temporary folder, for a program that comes and goes: both are gone afterwards.

    So they are after an exception, Ctrl-C or a termination signal. A session that is already running in this
    process is used as it is, and left running.

    Args:
        master: Spark's master URL.
        memory: the heap of the JVM.
        folder: where the temporary folder goes; the system's choice unless given.
        settings: more settings of the session, which may depend on the temporary folder.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    before = signal.signal(signal.SIGTERM, _terminated)
    root = Path(tempfile.mkdtemp(prefix="sterna-", dir=folder))
    borrowed = SparkSession.getActiveSession()
    own: SparkSession | None = None
    try:
        if borrowed is None:
            own = session(
                master,
                **{
                    "spark.driver.memory": memory,
                    "spark.local.dir": str(root / "local"),
                    "spark.sql.warehouse.dir": str(root / "warehouse"),
                    "spark.ui.enabled": "false",
                    **settings(str(root)),
                },
            )
            # A query that is stopped in mid-epoch logs errors; real ones come as exceptions.
            own.sparkContext.setLogLevel("FATAL")
            yield own, root
        else:
            yield borrowed, root
    finally:
        try:
            if own is not None:
                own.stop()
        finally:
            shutil.rmtree(root, ignore_errors=True)
            signal.signal(signal.SIGTERM, before)


def interruptible(
    work: Callable[[], T], give_up: Callable[[], None], hurry: Callable[[], bool] = lambda: False
) -> T:
    """Does the work in a thread of its own.

    A call into the JVM that a signal interrupts leaves its connection unusable, and each thread has one: so
    the thread that gets the signals makes no calls. While the work is done, an interruption from the keyboard
    does nothing but what is said here: left to PySpark, it would cancel all of Spark's jobs first.

    Args:
        work: what to do.
        give_up: called when this thread is interrupted; the work must notice, and is waited for.
        hurry: called when this thread is interrupted from the keyboard for the first time. If it returns
            true, the work goes on until it ends by itself, which should be soon.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - handed on to whoever waits
            future.set_exception(error)

    # Not ``join``: in some versions of Python, a thread whose join was interrupted counts as ended.
    with _plain_interruptions():
        try:
            try:
                threading.Thread(target=run, name="sterna-work", daemon=True).start()
                _wait_for(future)
            except KeyboardInterrupt:
                if not hurry():
                    raise
                _wait_for(future)
        except BaseException:
            give_up()
            wait([future], PATIENCE_SECONDS)
            raise
    return future.result()


@contextmanager
def _plain_interruptions() -> Iterator[None]:
    """An interruption from the keyboard is ``KeyboardInterrupt`` and nothing else; then as it was before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if before is not None:  # none of Python's
            signal.signal(signal.SIGINT, before)


def _wait_for(future: Future[T]) -> None:
    while not future.done():
        wait([future], LOOK_SECONDS)


def _terminated(number: int, _: Any) -> NoReturn:
    raise SystemExit(128 + number)
