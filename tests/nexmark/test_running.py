"""How a run of ``sterna nexmark run`` is made up; what it measures is tested on the command line."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from sterna.bench.acknowledge import Report
from sterna.bench.leg import Course, moving
from sterna.errors import InvalidInput
from sterna.nexmark import running, telling
from sterna.nexmark.highest import Found, Try
from sterna.nexmark.rounds import Moments, Round, TooFast
from sterna.nexmark.running import MOST_REDUCTIONS, Plan, fit

PLAN = Plan.of("q5")
FOUND = Found(150_000.0, True, (Try(150_000, 0.9, 1.9),))
NAMES = {
    "q1": ["unary"],
    "q3": ["join"],
    "q4": ["binary", "aggregate"],
    "q5": ["window"],
    "q6": ["binary", "state_machine"],
    "q7": ["unary"],
    "q8": ["join"],
}


def silent(_):
    pass


class Machine:
    """Keeps up with so many events a second and no more."""

    def __init__(self, most, quiet=1.0):
        self.most, self.quiet, self.seen = most, quiet, []

    def conduct(self, one, rate):
        self.seen.append((one.strategy, rate))
        one.checked = 2.0 * rate / self.most
        if one.limit is not None and one.checked > one.limit:
            raise TooFast(one.checked)
        before = {
            "name": f"{one.strategy} there: before",
            "histogram": {"max": self.quiet * one.checked, "buckets": {"500": 1.0}},
        }
        one.result = {"timeline": [], "phases": [before]}
        one.migrations = [
            {"name": leg.name, "strategy": one.strategy, "operators": ["unary"]} for leg in one.legs
        ]


@pytest.mark.parametrize("query", NAMES)
def test_every_operator_with_state_moves(query, flows):
    flow = flows[query]
    assert moving(flow, every=True) == NAMES[query]
    assert moving(flow, every=False) == NAMES[query][:1]


def test_where_some_operators_have_no_state_all_move(flows):
    assert moving(flows["nbqx"], every=True) == [operator.name for operator in flows["nbqx"].operators]


def test_a_rate_that_is_too_high_is_lowered_for_all_strategies():
    machine = Machine(100_000)
    fitted = fit(PLAN, FOUND, machine.conduct, silent)
    assert fitted.rate <= 100_000
    assert [rate for rate, _ in fitted.refused] == sorted((rate for rate, _ in fitted.refused), reverse=True)
    assert machine.seen[-2:] == [("matched", fitted.rate), ("all_at_once", fitted.rate)]
    assert list(fitted.rounds) == list(PLAN.strategies)
    search = telling.figures(PLAN, FOUND, fitted, {})["search"]
    assert search["reductions"] == len(fitted.refused) >= 1
    assert search["refused"][0] == {"rate": 150_000, "longest_ms": 3000.0}
    assert search["kept"]
    assert search["converged"]


def test_a_promise_that_only_the_check_kept_is_not_kept():
    machine = Machine(100_000, quiet=1.5)
    search = telling.figures(PLAN, FOUND, fit(PLAN, FOUND, machine.conduct, silent), {})["search"]
    assert search["checked_ms"] <= search["latency_ms"]
    assert not search["kept"]


def test_a_machine_that_is_never_quick_enough_is_run_all_the_same_and_told_of():
    machine = Machine(1_000)
    fitted = fit(PLAN, FOUND, machine.conduct, silent)
    assert len(fitted.refused) == MOST_REDUCTIONS
    assert not telling.figures(PLAN, FOUND, fitted, {})["search"]["kept"]


def test_a_rate_that_was_given_is_kept_whatever_it_does():
    machine = Machine(1_000)
    fitted = fit(Plan.of("q5", rate=90_000.0), None, machine.conduct, silent)
    assert {rate for _, rate in machine.seen} == {90_000.0}
    told = telling.figures(Plan.of("q5", rate=90_000.0), None, fitted, {})
    assert (told["searched"], told["search"], told["rate"]) == (False, None, 90_000)


def test_the_load_of_the_machine_is_looked_at_before_anything_runs(monkeypatch, tmp_path):
    order = []
    monkeypatch.setattr(running.machine, "facts", lambda _: order.append("facts") or {"cores": 2})
    monkeypatch.setattr(running, "highest", lambda *_: order.append("search") or FOUND)
    monkeypatch.setattr(
        Round, "run", lambda one, *rest: order.append("run") or Machine(1e9).conduct(one, rest[-2])
    )
    monkeypatch.setattr(telling, "report", lambda *_: {})
    told, _ = running._run(None, tmp_path, PLAN, silent)
    assert order == ["facts", "search", "run", "run"]
    assert told["machine"] == {"cores": 2}


def test_there_is_no_plan_for_a_query_that_is_not_there():
    with pytest.raises(InvalidInput, match="no query 'q9'"):
        Plan.of("q9")


class Waiting:
    """A run whose epochs took so long; it notes how long it was waited."""

    def __init__(self, *took):
        end = time.time()
        self.reports, self.slept = [], []
        for number, seconds in reversed(list(enumerate(took))):
            self.reports.insert(0, Report(number, 1, end - seconds, end))
            end -= seconds

    def sleep(self, seconds):
        self.slept.append(seconds)


def round_of(limit, moments=None):
    return Round("matched", Course(), warm_up=80.0, check=20.0, limit=limit, moments=moments or Moments())


def test_a_rate_that_is_kept_up_with_for_some_seconds_only_is_too_high():
    one = round_of(2.0)
    one._look_back(Waiting(*[0.9] * 50, 3.0))  # a single long one is none of the rate's
    with pytest.raises(TooFast):
        one._look_back(Waiting(*[0.9] * 40, *[1.5] * 10))
    round_of(None)._look_back(Waiting(*[1.5] * 20))
    assert [phase.name for phase in one._phases()][:4] == [
        "matched: warm-up",
        "matched there: before",
        "matched: look back",
        "matched there: lead",
    ]


def test_the_end_of_the_warm_up_is_a_check_of_the_rate():
    quick, slow = Waiting(9.0, 0.5, 0.6, 0.5), Waiting(0.5, 1.5, 0.9, 0.5)
    quick.reports = quick.reports[1:]
    one = round_of(2.0)
    one._warm_up(quick)
    assert one.checked == pytest.approx(1.1, abs=0.01)
    with pytest.raises(TooFast, match=r"2\.40 s"):
        round_of(2.0)._warm_up(slow)
    one = round_of(None)
    one._warm_up(slow)
    assert one.checked == pytest.approx(2.4, abs=0.01)


def test_a_check_that_saw_no_epoch_is_not_passed():
    with pytest.raises(TooFast):
        round_of(2.0)._warm_up(Waiting())


def test_no_run_moves_back_before_the_first_one_did():
    moments = Moments()
    first, second = round_of(None, moments), round_of(None, moments)
    first._began, second._began = time.time() - 300.0, time.time() - 200.0
    runs = [Waiting(), Waiting()]
    for one, run in zip((first, second), runs, strict=True):
        (phase,) = (phase for phase in one._phases() if phase.name == "matched: until the others' moment")
        phase.run(run)
    assert runs[0].slept == [0.0]
    assert runs[1].slept == [pytest.approx(100.0, abs=1.0)]


def test_warm_up_ends_at_a_fixed_second_and_is_never_shorter_than_the_check():
    one, late = round_of(None), round_of(None)
    one._began, late._began = time.time() - 30.0, time.time() - 75.0
    runs = [Waiting(0.5, 0.5), Waiting(0.5, 0.5)]
    one._warm_up(runs[0])
    late._warm_up(runs[1])
    assert runs[0].slept == [pytest.approx(50.0, abs=1.0)]
    assert runs[1].slept == [20.0]


def test_latency_that_never_stands_still_means_that_the_rate_is_too_high(monkeypatch, tmp_path):
    def never(*_, **__):
        raise TimeoutError("not steady")

    monkeypatch.setattr("sterna.nexmark.rounds.harness.run", never)
    subject = SimpleNamespace(checkpoint=str(tmp_path / "checkpoint"))
    with pytest.raises(TooFast):
        round_of(2.0).run(None, subject, str(tmp_path), None, 1.0, silent)
    with pytest.raises(TimeoutError):
        round_of(None).run(None, subject, str(tmp_path), None, 1.0, silent)
