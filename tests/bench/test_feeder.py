"""The feeding process, without Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna.bench import feeder
from sterna.bench.feeder import Schedule
from sterna.bench.openloop import Feeder


def ranges(folder: Path) -> list[tuple[int, int]]:
    files = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    return [tuple(map(int, path.read_text().split(","))) for path in files]


def wait_until(happened) -> None:
    deadline = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < deadline, "nothing happened for 30 seconds"
        time.sleep(0.01)


@given(
    st.integers(0, 10**6),
    st.floats(0.5, 1e6),
    st.integers(0, 10**9),
    st.floats(0.001, 1.0),
    st.floats(0, 1e4),
)
def test_a_file_is_due_with_its_last_record(begin, rate, first, every, later):
    schedule = Schedule(float(begin), rate, first, every)
    now = begin + later
    files = schedule.files_due(now)
    slack = 1e-5 / rate + 1e-6
    if files:
        assert schedule.due(first + files * schedule.size - 1) <= now + slack
    assert schedule.due(first + (files + 1) * schedule.size - 1) > now - slack


@given(st.floats(0.5, 1e6), st.integers(0, 10**9), st.integers(0, 10**6))
def test_a_record_is_the_first_that_is_due_at_its_time(rate, first, offset):
    schedule = Schedule(1000.0, rate, first)
    assert abs(schedule.record_at(schedule.due(first + offset)) - first - offset) <= 1
    assert schedule.record_at(0.0) == first


def test_ranges_follow_each_other_without_a_gap_and_the_next_feeder_goes_on(tmp_path):
    end = 0
    for rate in (1000.0, 4000.0):
        with Feeder(str(tmp_path), Schedule(time.time(), rate, first=end, every=0.02)) as feeding:
            count = len(ranges(tmp_path))
            wait_until(lambda count=count: len(ranges(tmp_path)) >= count + 5)
            end = feeding.stop()
        found = ranges(tmp_path)
        assert [start for start, _ in found] == [0, *[stop for _, stop in found[:-1]]]
        assert found[-1][1] == end
    assert {stop - start for start, stop in found} == {20, 80}


def test_a_feeder_that_begins_in_the_past_catches_up_with_the_same_files(tmp_path):
    with Feeder(str(tmp_path), Schedule(time.time() - 1.0, 1000.0, every=0.1)):
        wait_until(lambda: len(ranges(tmp_path)) >= 10)
    assert ranges(tmp_path)[:10] == [(n * 100, (n + 1) * 100) for n in range(10)]


def test_nothing_is_fed_before_the_begin_and_the_limit_ends_it(tmp_path):
    with Feeder(str(tmp_path), Schedule(time.time() + 1000, 1e6)) as feeding:
        assert feeding.stop() == 0
    assert ranges(tmp_path) == []
    feeding = Feeder(str(tmp_path), Schedule(time.time(), 1000.0), limit=0.0)
    wait_until(lambda: not feeding.alive)
    assert feeding.stop() == 0


def test_a_feeder_ends_when_its_parent_dies(tmp_path):
    program = (
        "import os, subprocess, sys;"
        "child = subprocess.Popen([sys.executable, '-I', sys.argv[1], sys.argv[2], '--rate', '100'],"
        " stdout=subprocess.DEVNULL);"
        "print(child.pid, flush=True); sys.stdin.read(); os._exit(1)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program, feeder.__file__, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    child = int(parent.stdout.readline())
    wait_until(lambda: ranges(tmp_path))
    parent.communicate("")
    wait_until(lambda: not _runs(child))


def test_a_feeder_whose_folder_is_gone_ends(tmp_path):
    folder = tmp_path / "input"
    feeding = Feeder(str(folder), Schedule(time.time() + 0.5, 1000.0))
    os.rmdir(folder)
    wait_until(lambda: not feeding.alive)
    assert feeding.stop() == 0


def test_the_command_line_says_what_it_needs():
    with pytest.raises(SystemExit):
        feeder.main(["somewhere"])


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
