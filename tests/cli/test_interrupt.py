from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_benchmark_leaves_nothing_behind(tmp_path, number, code):
    command = [sys.executable, "-m", "sterna.cli", "bench", "bins", "--quick", "--dir", str(tmp_path)]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "200"}
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "filling" in line:
                break
        assert list(tmp_path.iterdir()) != []
        process.send_signal(number)
        _, rest = process.communicate(timeout=60)
    assert process.returncode == code, rest
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["filling", "steady:", "fluid, there"])
def test_an_interrupted_demo_leaves_nothing_behind(tmp_path, moment):
    command = [
        sys.executable,
        "-m",
        "sterna.cli",
        "demo",
        "--quick",
        "--report",
        str(tmp_path / "report.html"),
    ]
    environment = os.environ | {"COLUMNS": "200", "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if moment in line:
                break
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=120)
    assert process.returncode == 130, rest
    assert list(tmp_path.iterdir()) == []
