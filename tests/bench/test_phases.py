"""When a query counts as steady, and which records belong to a phase."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna.bench.acknowledge import Epoch, Report
from sterna.bench.feeder import Schedule
from sterna.bench.harness import figures, timeline
from sterna.bench.phases import Run, rescale, steady


def back_to_back(durations, began=100.0):
    found = []
    for number, duration in enumerate(durations):
        found.append(Report(number, 1, began, began + duration))
        began += duration
    return found


def test_epochs_that_take_as_long_as_before_are_steady():
    found = back_to_back([0.2] * 50)
    assert steady(found, now=110.0, window=5.0)


def test_a_query_that_catches_up_or_falls_behind_is_not_steady():
    for durations in ([3.0, 2.0, 1.5, 1.0, 0.7, 0.5, 0.3, 0.2], [0.2 * 1.2**n for n in range(20)]):
        found = back_to_back(durations)
        assert not steady(found, now=found[-1].ended, window=3.0)


def test_few_epochs_or_a_short_time_are_not_enough_and_long_epochs_are_counted_all_the_same():
    assert not steady([], 100.0, 5.0)
    assert not steady(back_to_back([0.2] * 5), 200.0, 5.0)
    assert not steady(back_to_back([0.2] * 10), 102.0, 5.0)
    assert steady(back_to_back([2.0] * 10), 120.0, 5.0)


class Scripted(Run):
    """A run whose epochs are known beforehand."""

    def __init__(self, subject, script):
        super().__init__(subject)
        self._script = list(script)

    def look(self):
        self.reports.append(self._script.pop(0))
        return self.reports[-1]


def test_a_rescale_lasts_until_records_wait_no_longer_than_before(monkeypatch):
    class Subject:
        name = "scripted"

        def rescale(self, workers):
            return {"step": float(workers)}

    monkeypatch.setattr("sterna.bench.phases.LOOK_SECONDS", 0.0)
    now = time.time()
    before = back_to_back([0.2] * 20, began=now - 4.0)
    stalled = back_to_back([0.2] * 20 + [9.0, 3.0, 0.2, 0.2, 0.2, 0.2, 0.2], began=now - 3.9)[20:]
    run = Scripted(Subject(), stalled)
    run.reports = before
    rescale(3)(run)
    assert [report.epoch for report in run.reports[20:]] == [20, 21, 22, 23, 24, 25]
    assert run.notes["rescale to 3"]["step"] == 3.0


@given(st.lists(st.tuples(st.integers(0, 3000), st.floats(0.01, 3.0)), min_size=1), st.floats(0.0, 20.0))
def test_phases_and_timeline_hold_every_record_once(groups, cut):
    schedule, position, at, epochs = Schedule(1000.0, 1000.0, first=77), 77, 1000.0, []
    for number, (records, later) in enumerate(groups):
        end = position + records
        at = max(at, schedule.due(end)) + later
        epochs.append(Epoch(number, position, end, at))
        position = end
    before = figures(epochs, schedule, 0.0, 1000.0 + cut)
    after = figures(epochs, schedule, 1000.0 + cut, 1e9)
    assert before["records"] + after["records"] == position - 77
    assert before["epochs"] + after["epochs"] == len(epochs)
    worst = max(
        (epoch.at - schedule.due(epoch.first) for epoch in epochs if epoch.end > epoch.first), default=0
    )
    assert max(before["max_ms"], after["max_ms"]) == pytest.approx(worst * 1e3, abs=0.1)
    slots = timeline(epochs, schedule).to_json()
    assert sum(slot["records"] for slot in slots) == pytest.approx(position - 77, abs=len(slots))
