"""Which cases the experiments over growing states have, and which of them share what is measured."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from sterna.bench import experiments
from sterna.bench.laboratory import Case, Laboratory
from sterna.bench.sizes import FULL

MAXIMUM = {4_000_000: 1000.0, 16_000_000: 600.0, 64_000_000: 400.0}


class Pretended(Laboratory):
    """A laboratory in which nothing is filled, and every run finds the same."""

    def place(self, state):
        most = MAXIMUM[state.keys]
        return SimpleNamespace(folder=str(state.keys), rate=most / 2, ceiling={"records_per_second": most})

    def take_turns(self, cases, course, sample=0.25):
        self.turns = [*getattr(self, "turns", []), cases]
        figures = {"max_ms": 100.0, "p50_ms": 50.0, "p99_ms": 90.0}
        for case in cases:
            way = dict.fromkeys(experiments.SPREADS, 1.0) | {
                "before": figures,
                "during": figures,
                "after": figures,
                "ended": True,
                "steps": 4,
                "bins": 8,
                "bytes": 800,
                **{
                    f"{name}_{when}": 1.0
                    for name in ("worker_anonymous_mb", "jvm_resident_mb")
                    for when in ("before", "during")
                },
            }
            case.rounds.append(dict.fromkeys(case.strategies, way))
        return []


def laboratory(*asked):
    return Pretended(None, None, FULL, 1, lambda _: None, asked=asked)


def sizes(found):
    return sorted({(line["keys"], line["bins"]) for line in found["results"]})


def test_each_of_the_two_has_its_own_sizes():
    lab = laboratory("keys", "proportional")
    assert sizes(experiments.keys(lab)) == [(count, 128) for count in MAXIMUM]
    assert sizes(experiments.proportional(lab)) == [*zip(MAXIMUM, (32, 128, 512), strict=True)]


def test_both_are_measured_at_once_and_what_they_share_once():
    lab = laboratory("keys", "proportional")
    experiments.keys(lab)
    experiments.proportional(lab)
    (cases,) = lab.turns
    assert len(cases) == len({(case.labels["keys"], case.bins) for case in cases}) == 5


@pytest.mark.parametrize("name", ["keys", "proportional"])
def test_one_alone_measures_nothing_of_the_other(name):
    lab = laboratory(name)
    experiments.EXPERIMENTS[name](lab)
    (cases,) = lab.turns
    assert len(cases) == 3


def test_all_are_offered_half_of_what_the_slowest_keeps_up_with():
    lab = laboratory("keys", "proportional")
    experiments.keys(lab)
    assert {case.rate for case in lab.turns[0]} == {200.0}
    assert all(isinstance(case, Case) for case in lab.turns[0])
