"""From progress reports to ranges of records."""

from __future__ import annotations

import pytest

from sterna.bench.acknowledge import Epoch, Missing, Noting, Report, by_lines, by_totals, report_of
from sterna.sinks import memory

PROGRESS = {
    "batchId": 3,
    "timestamp": "1970-01-01T00:01:40.250Z",
    "numInputRows": 4,
    "durationMs": {"triggerExecution": 500, "addBatch": 400, "latestOffset": 20},
}


def test_an_epoch_is_acknowledged_when_its_trigger_has_ended():
    assert report_of(PROGRESS) == Report(3, 4, 100.25, 100.75)


def test_a_trigger_that_found_nothing_is_no_epoch():
    assert report_of({**PROGRESS, "durationMs": {"triggerExecution": 5, "latestOffset": 5}}) is None
    assert report_of({**PROGRESS, "durationMs": {}}) is None


def test_epochs_follow_each_other_whichever_way_records_are_counted():
    found = [Report(4, 2, 0.0, 1.0), Report(5, 0, 1.0, 2.0), Report(6, 3, 2.0, 3.0)]
    wanted = [Epoch(4, 50, 70, 1.0), Epoch(5, 70, 70, 2.0), Epoch(6, 70, 100, 3.0)]
    assert by_lines(found, lambda lines: 50 + 10 * lines) == wanted
    assert by_totals(found, 50, {3: 50, 4: 70, 5: 70, 6: 100}) == wanted


def test_an_epoch_without_a_note_is_not_guessed():
    with pytest.raises(Missing, match="epoch 4"):
        by_totals([Report(4, 2, 0.0, 1.0)], 0, {})


def test_a_noting_sink_hands_everything_on():
    class Query:
        def status(self):
            return {"rows": 42, "epoch_ms": 5.0}

    inner = memory()
    noting = Noting(inner)
    noting.attach(Query())
    noting.publish(7, [])
    assert noting.totals == {7: 42}
    assert list(inner.epochs) == [7]
    assert type(noting.task()) is type(inner.task())
