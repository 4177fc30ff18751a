"""What Flink is asked through REST, and that nothing waits for a job that has ended.

The answers are made up here.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from sterna.bench.peers import on_flink
from sterna.bench.peers.flink_rest import Checkpoints, FlinkError, Rest
from sterna.bench.peers.on_flink import Running

JOB, METRICS = "/jobs/j", "/jobs/j/vertices/v/subtasks/metrics"
COUNTER = "LocalGroupAggregate[9].numRecordsIn"


class Cluster:
    """Checks the job only."""

    def __init__(self, rest):
        self.rest, self.check = rest, rest.check


@pytest.fixture
def flink():
    """Answers by path, and a ``Rest`` that gets them."""
    answers: dict = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            url = urlsplit(self.path)
            wanted = parse_qs(url.query).get("get")
            body = answers.get((url.path, wanted[0]) if wanted else url.path)
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write(b"no such thing" if body is None else json.dumps(body).encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield answers, Rest(server.server_address[1])
        server.shutdown()
        thread.join()


def test_the_counter_of_an_operator_is_found_by_a_part_of_its_name(flink):
    answers, rest = flink
    answers[JOB] = {"state": "RUNNING", "vertices": [{"id": "v"}]}
    answers[METRICS] = []
    assert rest.records_in("j", "LocalGroupAggregate") == 0  # Flink has no figures yet
    answers[METRICS] = [{"id": COUNTER}, {"id": COUNTER + "PerSecond"}, {"id": "Calc[8].numRecordsIn"}]
    answers[METRICS, COUNTER] = [{"id": COUNTER, "sum": 1.5e7}]
    assert rest.records_in("j", "LocalGroupAggregate") == 15_000_000
    assert rest.records_in("j", "GlobalGroupAggregate") == 0


def test_when_the_newest_checkpoint_began_and_from_when_a_job_goes_on(flink):
    answers, rest = flink
    answers[JOB + "/checkpoints"] = {"latest": {"completed": None, "restored": None}}
    assert rest.checkpoints("j") == Checkpoints(0.0, 0.0)
    newest = {"completed": {"trigger_timestamp": 12_500}, "restored": {"restore_timestamp": 9_250}}
    answers[JOB + "/checkpoints"] = {"latest": newest}
    assert rest.checkpoints("j") == Checkpoints(12.5, 9.25)


def test_what_flink_refuses_is_an_error_with_its_words(flink):
    with pytest.raises(FlinkError, match=r"GET /jobs/none failed: no such thing"):
        flink[1].get("/jobs/none")


def test_nobody_there_is_an_error():
    with pytest.raises(FlinkError, match="failed"):
        Rest(1).get("/overview")


def test_a_wait_ends_when_the_job_has_ended(flink, monkeypatch):
    answers, rest = flink
    monkeypatch.setattr(on_flink, "CHECK_SECONDS", 0.0)
    answers[JOB] = {"state": "FAILED", "vertices": []}
    answers[JOB + "/exceptions"] = {"exceptionHistory": {"entries": [{"stacktrace": "out of memory"}]}}
    with pytest.raises(FlinkError, match="FAILED: out of memory"):
        Running(Cluster(rest), "j").wait(lambda: False, "was not filled")


def test_a_wait_ends_when_it_takes_too_long(flink, monkeypatch):
    answers, rest = flink
    monkeypatch.setattr(on_flink, "LONGEST_SECONDS", 0.2)
    answers[JOB] = {"state": "RUNNING", "vertices": []}
    answers[JOB + "/exceptions"] = {"exceptionHistory": {"entries": []}}
    running = Running(Cluster(rest), "j")
    with pytest.raises(FlinkError, match="Flink was not filled in 0 s: it had no exception"):
        running.wait(lambda: False, "was not filled")
    assert running.until(lambda: False, 0.0) is False
    assert running.until(lambda: True, 0.0) is True
