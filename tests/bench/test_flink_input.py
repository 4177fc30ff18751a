"""Files that Flink needs no more are removed while it runs, and no others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna.bench.feeder import Schedule, file_name, write_range
from sterna.bench.peers import flink_input
from sterna.bench.peers.flink_count import CHUNK, PROBE, SAMPLE, Seen, probes
from sterna.bench.peers.flink_input import (
    FILE_RECORDS,
    MARGIN_SECONDS,
    MOST_RATE,
    Removal,
    check_left,
    write,
    write_backlog,
)
from sterna.bench.peers.flink_rest import Checkpoints, FlinkError
from sterna.bench.peers.lap import Case, Course

FIRST = 8 * CHUNK
SCHEDULE = Schedule(begin=0.0, rate=CHUNK, first=FIRST, every=2.0)


class Job:
    """Files of two chunks each, the lines that came out, and what Flink says of checkpoints."""

    def __init__(self, folder, files):
        self.folder, self.seen, self.told = folder, [], Checkpoints(0.0, 0.0)
        for number in range(files):
            self.write(number)
        self.removal = Removal(folder, SCHEDULE, self.seen, lambda: self.told)

    def write(self, number):
        write_range(str(self.folder), self.first(number), self.first(number + 1), line=CHUNK)

    @staticmethod
    def first(number):
        return FIRST + number * SCHEDULE.size

    def shows(self, number, at, records=None):
        sampled = range(self.first(number), self.first(number + 1), SAMPLE)
        self.seen.extend(Seen(at, 0, 1, record) for record in list(sampled)[:records])

    def left(self):
        self.removal.look()
        return [number for number in range(4) if (self.folder / file_name(self.first(number))).exists()]


def test_a_file_goes_when_all_of_it_came_out_well_before_a_checkpoint(tmp_path):
    job = Job(tmp_path, 3)
    job.seen.append(Seen(1.0, 0, 1, 0))  # of the files that filled the state
    job.shows(0, at=10.0)
    job.shows(1, at=10.0, records=-1)
    job.shows(2, at=12.0)
    assert job.left() == [0, 1, 2]
    job.told = Checkpoints(10.0 + MARGIN_SECONDS, 0.0)
    assert job.left() == [0, 1, 2]
    job.told = Checkpoints(10.1 + MARGIN_SECONDS, 0.0)
    assert job.left() == [1, 2]
    job.told = Checkpoints(100.0, 0.0)
    assert job.left() == [1]
    job.shows(1, at=101.0, records=3)  # the same lines once more are not the last one
    job.told = Checkpoints(200.0, 0.0)
    assert job.left() == [1]
    job.shows(1, at=201.0)
    job.told = Checkpoints(300.0, 0.0)
    assert job.left() == []


def test_what_came_out_before_a_job_began_anew_does_not_count(tmp_path):
    """It goes back to a checkpoint, and may be about to read the file again."""
    job = Job(tmp_path, 2)
    job.shows(0, at=10.0)
    assert job.left() == [0, 1]
    job.shows(1, at=11.0)
    job.told = Checkpoints(completed=30.0, restored=20.0)
    assert job.left() == [0, 1]
    job.shows(1, at=25.0)
    assert job.left() == [0]


def test_nothing_is_removed_while_flink_can_not_be_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(flink_input, "LOOK_SECONDS", 0.01)
    asked = []

    def checkpoints():
        asked.append(1)
        if len(asked) < 5:
            raise FlinkError("it begins anew")
        removal._stopped.set()
        return Checkpoints(100.0, 0.0)

    job = Job(tmp_path, 1)
    job.shows(0, at=10.0)
    with Removal(tmp_path, SCHEDULE, job.seen, checkpoints) as removal:
        removal._thread.join(20)
        assert not removal._thread.is_alive()
    assert len(asked) == 5
    assert not list(tmp_path.iterdir())


@given(st.integers(0, 20), st.integers(0, 40))
def test_probes_are_what_the_lines_of_their_files_say(tmp_path_factory, chunks, start):
    folder, end = tmp_path_factory.mktemp("probes"), CHUNK * (start + chunks)
    write(folder, start * CHUNK, end, PROBE)
    lines = [line for file in sorted(folder.iterdir()) for line in file.read_text().splitlines()]
    firsts = [int(line.split(",")[0]) for line in lines]
    told = [record for first in firsts for record in range(first, first + CHUNK, SAMPLE)]
    assert told == probes(start * CHUNK, chunks * CHUNK)


def test_a_backlog_has_as_many_records_as_it_says(tmp_path):
    written = write_backlog(tmp_path, Case(2**10, 0), Course(warm=0.5, seconds=0.5))
    ends = [int(line.split(",")[1]) for file in tmp_path.iterdir() for line in file.read_text().splitlines()]
    assert MOST_RATE - FILE_RECORDS < written <= MOST_RATE
    assert max(ends) == 2**10 + written


@pytest.mark.parametrize("left", [0, 4_999_999])
def test_a_rate_at_which_the_input_ran_dry_is_refused(left):
    with pytest.raises(FlinkError, match=r"input ran dry: .* of 300,000,000 records were taken"):
        check_left(300_000_000, 300_000_000 - left, 5_000_000.0)


def test_a_rate_with_input_left_is_one():
    check_left(300_000_000, 295_000_000, 5_000_000.0)
