"""A job of Flink's from statements of SQL, through Flink's own client in Java.

The client is a JVM of its own, which Python calls through the Py4J that Flink brings along; it lives as long
as it takes to start the job. What fails, or is not answered within ``ANSWER_SECONDS``, raises ``FlinkError``.
"""

from __future__ import annotations

import select
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError

from sterna.bench.peers.flink_rest import LOOPBACK, FlinkError

ANSWER_SECONDS, STOP_SECONDS = 90.0, 20.0
MOST_PARALLELISM = 128
"""Key groups: what Flink itself takes where nothing is said."""


@dataclass(frozen=True)
class Client:
    """How the client is started.

    Attributes:
        command: the program and its arguments.
        environment: what it finds in its environment.
        errors: the file for what it says.
    """

    command: list[str]
    environment: dict[str, str]
    errors: Path

    def submit(
        self, port: int, parallelism: int, options: Mapping[str, str], statements: Sequence[str]
    ) -> str:
        """Runs statements on the cluster with this REST port, the last of which starts a job.

        Returns its id.
        """
        with self._gateway() as gateway:
            try:
                java = gateway.jvm.org.apache.flink
                nothing = gateway.new_array(gateway.jvm.java.lang.String, 0)
                environments = java.streaming.api.environment.StreamExecutionEnvironment
                environment = environments.createRemoteEnvironment(LOOPBACK, port, nothing)
                environment.setParallelism(parallelism)
                environment.setMaxParallelism(MOST_PARALLELISM)
                tables = java.table.api.bridge.java.StreamTableEnvironment.create(environment)
                for name, value in options.items():
                    tables.getConfig().set(name, value)
                for statement in statements:
                    result = tables.executeSql(statement)
                return str(result.getJobClient().get().getJobID().toString())
            except (Py4JError, OSError) as error:
                raise FlinkError(f"Flink started no job: {error}") from error

    @contextmanager
    def _gateway(self) -> Iterator[JavaGateway]:
        with self.errors.open("wb") as err:
            child = subprocess.Popen(  # noqa: S603 - Flink's own program
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, env=self.environment
            )
        try:
            assert child.stdout is not None
            ready, _, _ = select.select([child.stdout], [], [], ANSWER_SECONDS)
            port = child.stdout.readline().strip() if ready else b""
            if not port.isdigit():
                said = self.errors.read_text(encoding="utf-8", errors="replace")[-1000:]
                raise FlinkError(f"Flink's client did not start in {ANSWER_SECONDS:.0f} s: {said}")
            gateway = JavaGateway(
                gateway_parameters=GatewayParameters(
                    port=int(port), auto_convert=True, read_timeout=ANSWER_SECONDS
                )
            )
            yield gateway
            gateway.shutdown()
        finally:
            child.terminate()
            end(child)
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    pipe.close()


def end(child: subprocess.Popen[bytes]) -> None:
    """Waits for a process that was told to end, and kills it if it does not."""
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
