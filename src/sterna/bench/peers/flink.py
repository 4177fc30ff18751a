"""Apache Flink beside Sterna: a session cluster on loopback, and how a job is started on it.

The cluster is in an environment of its own. Flink comes as the package ``apache-flink-libraries``, the Java
part of PyFlink, installed into a folder of its own; the benchmark needs no more of it. JobManager and
TaskManager are children of this process and end with it. Everything that Flink writes lies below one folder.
What fails, or does not come in time, raises ``FlinkError`` with what Flink said.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from sterna.bench.peers.flink_rest import LOOPBACK, FlinkError, Rest
from sterna.bench.peers.flink_sql import Client, end
from sterna.bench.rig import Say

__all__ = ["PACKAGE", "Cluster", "FlinkError", "installed", "settings"]

if TYPE_CHECKING:
    from typing_extensions import Self

PACKAGE = "apache-flink-libraries==2.3.0"
START_SECONDS, INSTALL_SECONDS = 90.0, 1800.0
FRESH = "100 ms"
JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
GATEWAY = "org.apache.flink.api.python.shaded.py4j.GatewayServer"
MEMORY = "org.apache.flink.runtime.util.bash.BashJavaUtils"
TOLD = "BASH_JAVA_UTILS_EXEC_RESULT:"
OPENED = (
    "lang",
    "net",
    "io",
    "nio",
    "lang.reflect",
    "text",
    "time",
    "util",
    "util.concurrent",
    "util.concurrent.atomic",
    "util.concurrent.locks",
)
OPEN = [
    "--add-exports=java.base/sun.net.util=ALL-UNNAMED",
    "--add-exports=java.management/sun.management=ALL-UNNAMED",
    "--add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED",
    "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in OPENED),
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
]
"""What Flink looks into, of a Java that does not show it by itself."""
HANDICAPPED = "RocksDBStateBackend performance will be poor"
MANAGED, ROCKSDB_SHARE = "taskmanager.memory.managed.fraction", 0.6
LOGGING = """
rootLogger.level = WARN
rootLogger.appenderRef.file.ref = file
appender.file.name = file
appender.file.type = Console
appender.file.target = SYSTEM_ERR
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %-5p %c{1} %m%n
"""


def installed(folder: Path, say: Say) -> Path:
    """Flink's home, installed below a folder unless it is there."""
    home = folder / "pyflink"
    if not list(home.glob("lib/flink-dist-*.jar")):
        say(f"installing {PACKAGE}")
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--target",
            str(folder),
            PACKAGE,
        ]
        try:
            done = subprocess.run(  # noqa: S603 - our own words
                command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise FlinkError(f"{PACKAGE} could not be installed in {INSTALL_SECONDS:.0f} s") from error
        if done.returncode:
            raise FlinkError(f"{PACKAGE} can't be installed: {done.stderr.strip()[-500:]}")
    return home


def settings(
    folder: Path,
    port: int,
    parallelism: int,
    slots: int,
    memory: str,
    checkpoint: str,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Flink's configuration, with what more is wanted.

    It has RocksDB with incremental checkpoints, the adaptive scheduler, and everything on loopback. RocksDB
    gets more of the memory than it would by itself, as the guide to large state recommends first, and bloom
    filters; where there are more slots than are used at first, they have that memory together, because those
    that are not used yet would keep their share. What REST tells is not older than a tenth of a second: by
    itself it may be three seconds old, which would count as time that a rescale takes, and counters ten.
    """
    return {
        "rest.address": LOOPBACK,
        "rest.bind-address": LOOPBACK,
        "rest.port": port,
        "web.refresh-interval": FRESH,
        "metrics.fetcher.update-interval": FRESH,
        "jobmanager.rpc.address": LOOPBACK,
        "jobmanager.rpc.port": free_port(),
        "jobmanager.bind-host": LOOPBACK,
        "jobmanager.memory.process.size": "1g",
        "jobmanager.scheduler": "adaptive",
        "jobmanager.adaptive-scheduler.submission.resource-wait-timeout": "60 s",
        "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout": "0 s",
        "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "1 s",
        "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "0 s",
        "taskmanager.host": LOOPBACK,
        "taskmanager.bind-host": LOOPBACK,
        "taskmanager.numberOfTaskSlots": slots,
        "taskmanager.memory.process.size": memory,
        **(_shared(memory) if slots > parallelism else {MANAGED: ROCKSDB_SHARE}),
        "state.backend.type": "rocksdb",
        "state.backend.rocksdb.use-bloom-filter": True,
        "execution.checkpointing.incremental": True,
        "execution.checkpointing.interval": checkpoint,
        "execution.checkpointing.dir": (folder / "checkpoints").as_uri(),
        "io.tmp.dirs": str(folder / "tmp"),
        "parallelism.default": parallelism,
        **(more or {}),
    }


def _shared(memory: str) -> dict[str, Any]:
    """RocksDB has as much of a TaskManager's memory as it would have of managed memory, in one piece.

    Flink takes a tenth of the process for its overhead, and 256 MB for classes.

    >>> _shared("4g")["state.backend.rocksdb.memory.fixed-per-tm"]
    '2058m'
    >>> _shared("4096m") == _shared("4g")
    True
    """
    whole = int(memory[:-1]) * {"m": 1, "g": 1024}[memory[-1]]
    size = f"{int(ROCKSDB_SHARE * (whole - whole // 10 - 256))}m"
    return {
        "state.backend.rocksdb.memory.managed": False,  # what is fixed is not looked at otherwise
        "state.backend.rocksdb.memory.fixed-per-tm": size,
        "taskmanager.memory.task.off-heap.size": size,
        "taskmanager.memory.managed.size": "0m",
    }


class Cluster:
    """A JobManager and a TaskManager; a context.

    Args:
        home: where Flink is installed.
        folder: for everything that it writes.
        parallelism: of jobs, at first.
        slots: how far they can be scaled.
        memory: of the TaskManager's process.
        checkpoint: how often it makes one.
        more: settings beside those, or in their place.

    Attributes:
        rest: its REST interface.
    """

    def __init__(
        self,
        home: Path,
        folder: Path,
        parallelism: int,
        slots: int,
        memory: str,
        checkpoint: str,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        self._home, self._folder, self._slots, self._parallelism = home, folder, slots, parallelism
        self._port = free_port()
        self.rest = Rest(self._port)
        self._children: list[subprocess.Popen[bytes]] = []
        for name in ("conf", "log", "tmp", "checkpoints"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        given = settings(folder, self._port, parallelism, slots, memory, checkpoint, more)
        lines = [f"{key}: {json.dumps(value)}\n" for key, value in given.items()]
        (folder / "conf" / "config.yaml").write_text("".join(lines), encoding="utf-8")
        (folder / "conf" / "log4j.properties").write_text(LOGGING, encoding="utf-8")

    @property
    def output(self) -> Path:
        """What tasks print."""
        return self._folder / "log" / "task_manager.out"

    def __enter__(self) -> Self:
        atexit.register(self.stop)  # the thread that runs this may be left behind by an interruption
        try:
            self._start("job_manager", JOB_MANAGER, "GET_JM_RESOURCE_PARAMS")
            self._start("task_manager", TASK_MANAGER, "GET_TM_RESOURCE_PARAMS")
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _java(self, *words: str, more: str | None = None) -> list[str]:
        """The command of a Java program with Flink's libraries, and more of them."""
        java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
        places = [self._home / name for name in ("lib/*", more) if name]
        logging = f"-Dlog4j.configurationFile={self._folder / 'conf' / 'log4j.properties'}"
        return [java, *OPEN, logging, "-cp", os.pathsep.join(map(str, places)), *words]

    @property
    def _environment(self) -> dict[str, str]:
        folders = {"FLINK_CONF_DIR": self._folder / "conf", "FLINK_LOG_DIR": self._folder / "log"}
        homes = {f"FLINK_{name.upper()}_DIR": self._home / name for name in ("lib", "opt", "plugins")}
        return {**os.environ, **{name: str(path) for name, path in {**folders, **homes}.items()}}

    def _start(self, name: str, program: str, memory: str) -> None:
        """Starts a process with the memory that Flink derives from its settings."""
        conf = ["--configDir", str(self._folder / "conf")]
        asked = self._run(self._java(MEMORY, memory, *conf, more="bin/bash-java-utils.jar"), START_SECONDS)
        told = [line.removeprefix(TOLD) for line in asked.splitlines() if line.startswith(TOLD)]
        if len(told) != 2:
            raise FlinkError(f"Flink did not say how much memory its {name} needs: {asked[-1000:]}")
        java, dynamic = (line.split() for line in told)
        command = self._java(program, *conf, *dynamic)
        command[1:1] = java
        with (
            (self._folder / "log" / f"{name}.out").open("wb") as out,
            (self._folder / "log" / f"{name}.err").open("wb") as err,
        ):
            self._children.append(
                subprocess.Popen(command, stdout=out, stderr=err, env=self._environment)  # noqa: S603 - Flink's own program
            )

    def _run(self, command: list[str], seconds: float) -> str:
        try:
            done = subprocess.run(  # noqa: S603 - Flink's own programs
                command, capture_output=True, text=True, env=self._environment, timeout=seconds, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise FlinkError(f"Flink's program did not run: {error}") from error
        return done.stdout + done.stderr

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            self._check_processes()
            try:
                if self.rest.get("/overview")["slots-total"] >= self._slots:
                    return
            except FlinkError:
                pass
            time.sleep(0.2)
        raise FlinkError(f"Flink did not start in {START_SECONDS:.0f} s: {self._errors()}")

    def _errors(self) -> str:
        """The last words of its processes."""
        files = sorted((self._folder / "log").glob("*.err"))
        return "\n".join(file.read_text(encoding="utf-8", errors="replace")[-1000:] for file in files)

    def _check_processes(self) -> None:
        if any(child.poll() is not None for child in self._children):
            raise FlinkError(f"a process of Flink has ended: {self._errors()}")

    def check(self, job: str) -> None:
        """Raises ``FlinkError`` with the reason if one of its processes, or a job, has ended.

        So it does if RocksDB has too little memory, of which Flink warns when a job starts: nothing that is
        measured then would be fair.
        """
        self._check_processes()
        self.rest.check(job)
        told = (self._folder / "log" / "task_manager.err").read_text(encoding="utf-8", errors="replace")
        if HANDICAPPED in told:
            raise FlinkError(f"RocksDB has too little memory: {told[told.index(HANDICAPPED) :][:500]}")

    def stop(self) -> None:
        """Ends both processes."""
        atexit.unregister(self.stop)
        for child in reversed(self._children):
            child.terminate()
        for child in self._children:
            end(child)
        self._children.clear()

    def cpu_seconds(self) -> dict[str, float]:
        """The processor time that the JobManager and the TaskManager have used so far."""
        self._check_processes()
        times = [psutil.Process(child.pid).cpu_times() for child in self._children]
        return {
            name: one.user + one.system
            for name, one in zip(("job_manager", "task_manager"), times, strict=True)
        }

    def submit(self, options: Mapping[str, str], statements: Sequence[str]) -> str:
        """Runs statements of SQL, the last of which starts a job; returns its id."""
        command = self._java(GATEWAY, "--die-on-broken-pipe", "0", more="opt/*")
        client = Client(command, self._environment, self._folder / "log" / "client.err")
        return client.submit(self._port, self._parallelism, options, statements)


def free_port() -> int:
    """A port of loopback that nobody has now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
