"""What Flink is asked through REST: whether a job runs, how far it is, and for another parallelism.

A call that fails, or is not answered within ``CALL_SECONDS``, raises ``FlinkError`` with what Flink said.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from sterna.errors import SternaError

LOOPBACK = "127.0.0.1"
CALL_SECONDS = 30.0
ENDED = ("FAILED", "CANCELED", "FINISHED", "SUSPENDED")
"""States of a job that it does not leave; a job that reads files as they come should be in none of them."""
COUNTER = ".numRecordsIn"


class FlinkError(SternaError):
    """Flink could not be installed, started or asked, or did not do what was waited for."""


@dataclass(frozen=True)
class Checkpoints:
    """When the newest complete one began, and when a job last began anew from one; 0 where there is none.

    Both are in seconds since 1970.
    """

    completed: float
    restored: float


class Rest:
    """The interface on a port of loopback."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._counters: dict[tuple[str, str], str] = {}

    def check(self, job: str) -> None:
        """Raises ``FlinkError`` with the reason if a job has ended."""
        state = self.get(f"/jobs/{job}")["state"]
        if state in ENDED:
            raise FlinkError(f"Flink's job is {state}: {self.why(job)}")

    def why(self, job: str) -> str:
        """The beginning of the last exception of a job."""
        entries = self.get(f"/jobs/{job}/exceptions").get("exceptionHistory", {}).get("entries", [])
        return str(entries[0].get("stacktrace"))[:1000] if entries else "it had no exception"

    def records_in(self, job: str, operator: str) -> int:
        """How many records an operator, which is known by a part of its name, has taken in all its subtasks.

        It is 0 where Flink does not say yet.
        """
        if (job, operator) not in self._counters:
            path = self._counter(job, operator)
            if path is None:
                return 0
            self._counters[job, operator] = path
        return max((int(one["sum"]) for one in self.get(self._counters[job, operator])), default=0)

    def _counter(self, job: str, operator: str) -> str | None:
        for vertex in self.get(f"/jobs/{job}")["vertices"]:
            path = f"/jobs/{job}/vertices/{vertex['id']}/subtasks/metrics"
            names = [one["id"] for one in self.get(path)]
            found = [name for name in names if operator in name and name.endswith(COUNTER)]
            if found:
                return f"{path}?agg=sum&get={','.join(quote(name, safe='') for name in found)}"
        return None

    def rescale(self, job: str, parallelism: int) -> None:
        """Asks for another parallelism of all of a job's vertices, and for a checkpoint.

        The job restarts in place after the next checkpoint: so nobody waits for the one that would come.
        """
        wanted = self.get(f"/jobs/{job}/resource-requirements")
        for vertex in wanted.values():
            vertex["parallelism"] = {"lowerBound": parallelism, "upperBound": parallelism}
        self._call(f"/jobs/{job}/resource-requirements", "PUT", wanted)
        self._call(f"/jobs/{job}/checkpoints", "POST", {"checkpointType": "CONFIGURED"})

    def parallelism(self, job: str) -> int:
        """The least parallelism of a job's vertices now, 0 while it does not run."""
        told = self.get(f"/jobs/{job}")
        if told["state"] != "RUNNING" or any(vertex["status"] != "RUNNING" for vertex in told["vertices"]):
            return 0
        return min(int(vertex["parallelism"]) for vertex in told["vertices"])

    def checkpoints(self, job: str) -> Checkpoints:
        """What is known of a job's checkpoints."""
        newest = self.get(f"/jobs/{job}/checkpoints")["latest"]
        completed, restored = newest["completed"], newest["restored"]
        return Checkpoints(
            completed["trigger_timestamp"] / 1e3 if completed else 0.0,
            restored["restore_timestamp"] / 1e3 if restored else 0.0,
        )

    def get(self, path: str) -> Any:
        """What it answers."""
        return self._call(path, "GET", None)

    def _call(self, path: str, method: str, body: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://{LOOPBACK}:{self._port}{path}", data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=CALL_SECONDS) as answer:  # noqa: S310 - loopback
                text = answer.read()
        except (urllib.error.URLError, OSError) as error:
            said = (
                error.read().decode(errors="replace") if isinstance(error, urllib.error.HTTPError) else error
            )
            raise FlinkError(f"Flink's {method} {path} failed: {said}") from error
        return json.loads(text) if text else None
