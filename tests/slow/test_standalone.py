"""A standalone cluster with dynamic allocation.

Executors that come are used, one that is drained is taken, and nothing is lost or counted twice.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pyspark
import pytest

from slow.standalone_program import KEYS, MOST, ROWS

PROGRAM = Path(__file__).with_name("standalone_program.py")
DEPLOY = "org.apache.spark.deploy"
START_SECONDS = 60.0

pytestmark = pytest.mark.slow


@pytest.fixture
def master(tmp_path):
    """The address of a master with one machine of three cores, all on loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"spark://127.0.0.1:{port}"
    with contextlib.ExitStack() as ended:
        ended.enter_context(
            daemon(tmp_path, "master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        )
        ended.enter_context(
            daemon(
                tmp_path, "worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", "--cores", str(MOST),
                "--memory", "3g", "--work-dir", str(tmp_path / "work"), address,
            )
        )  # fmt: skip
        yield address


@contextlib.contextmanager
def daemon(folder, name, *arguments):
    """A process of Spark's own cluster, and what it starts."""
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), f"{DEPLOY}.{name}", *arguments]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    log = folder / f"{name}.log"
    with open(log, "w") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    try:
        ready = "Successfully registered with master" if name.startswith("worker") else "I have been elected"
        deadline = time.monotonic() + START_SECONDS
        while ready not in log.read_text():
            assert process.poll() is None, log.read_text()[-4000:]
            assert time.monotonic() < deadline, f"{name} took too long:\n{log.read_text()[-4000:]}"
            time.sleep(0.2)
        yield
    finally:
        children = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        process.wait(timeout=30)
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()


def test_executors_come_are_used_and_go(master, tmp_path):
    command = [sys.executable, str(PROGRAM), master, str(tmp_path / "job")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert len(report["first"]) < MOST, report["first"]
    assert report["came"], "executors came, and got no slots"
    assert sorted(report["came"].values()) == [2] * MOST
    assert report["drained"]
    assert report["taken"], "Spark did not take the idle executor"
    assert len(report["kept"]) == MOST - 1, "those with slots stay"
    assert report["leaver"] not in report["later"]
    rows = range(report["files"] * ROWS)
    assert report["counted"] == Counter(str(i * 7919 % KEYS) for i in rows)
