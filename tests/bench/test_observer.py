"""Memory of processes, and what the JVM says of its pauses."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from sterna.bench import pauses, sampler
from sterna.bench.observer import Observer

LOG = """\
[1763222900000ms] Using G1
[1763222909123ms] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 3.123ms
[1763222909200ms] GC(1) Concurrent Mark Cycle
[1763222909210ms] GC(1) Pause Remark 30M->30M(256M) 2.000ms
[1763222909300ms] GC(1) Concurrent Mark Cycle 100.000ms
[1763222910000ms] GC(2) Pause Full (System.gc()) 30M->5M(256M) 250.500ms
[1763222910
"""


def test_only_pauses_are_pauses_and_begin_before_they_are_written():
    found = pauses.parse(LOG.splitlines())
    assert [pause.milliseconds for pause in found] == [3.123, 2.0, 250.5]
    assert found[2].at == pytest.approx(1763222909.7495, abs=1e-3)
    assert [pause.kind for pause in found] == [
        "Young (Normal) (G1 Evacuation Pause)",
        "Remark",
        "Full (System.gc())",
    ]


def test_a_jvm_that_writes_nothing_down_is_told_from_one_without_pauses(tmp_path):
    log = tmp_path / "gc.log"
    assert pauses.read(None) is None
    assert pauses.read(str(log)) is None
    log.write_text(LOG)
    assert len(pauses.read(str(log), since=1763222909.15)) == 2
    assert pauses.read(str(log), since=2e9) == []


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read from /proc")
def test_samples_tell_workers_from_other_processes(tmp_path):
    wait = "import sys; sys.stdin.read()"
    commands = [
        [sys.executable, "-c", wait, "pyspark.daemon"],
        [sys.executable, "-c", wait, "something else"],
    ]
    children = [subprocess.Popen(command, stdin=subprocess.PIPE) for command in commands]
    try:
        with Observer(str(tmp_path / "samples"), every=0.01) as observer:
            deadline = time.monotonic() + 30
            while not any(str(children[0].pid) in sample["worker"] for sample in observer.samples()):
                assert time.monotonic() < deadline, "the worker was never seen"
                time.sleep(0.02)
        last = observer.samples()[-1]
        seen = {pid for kind in ("driver", "jvm", "worker") for pid in last[kind]}
        assert str(children[0].pid) in last["worker"]
        assert str(children[1].pid) not in seen
        assert set(last["driver"]) == {str(os.getpid())}
        resident, anonymous = last["driver"][str(os.getpid())]
        assert resident > anonymous > 0
        line = observer.memory(begin=last["time"])[-1]
        assert (line["second"], line["workers"]) == (0, len(last["worker"]))
        assert observer.pauses(0.0) is None
    finally:
        for child in children:
            child.communicate()


def test_a_process_that_is_gone_holds_nothing():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert sampler.memory(child.pid) is None
