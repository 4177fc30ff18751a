"""A task may run twice, on what arrives in another order.

The result is the same, or an error names the operator.
"""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from sterna.engine.messages import RECEIPT
from sterna.errors import EpochError, FoldError
from sterna.testing import Twin
from twin.flows import CASES
from twin.harness import SHM, Run
from twin.small import chain, machine, rows, unary
from twin.strategies import scripts


@given(script=scripts(tuple(CASES), crashes=False, max_epochs=4))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_attempts_with_permuted_arrival_give_equal_digests(script):
    import tempfile

    # Every task of every epoch runs twice; the receipts of both reach the commit, which compares them.
    script.repeat = 1.0
    with tempfile.TemporaryDirectory(dir=SHM) as directory:
        run = Run(script, directory)
        try:
            run.all().check()
        finally:
            run.twin.close()


def fickle():
    """A fold that gives something else each time it is called."""
    numbers = itertools.count()
    return lambda key, record, state: (1, [(key, next(numbers))])


def hidden():
    """A fold whose outputs agree and whose state does not."""
    numbers = itertools.count()
    return lambda key, record, state: (next(numbers), [(key, 1)])


@pytest.mark.parametrize("fold", [fickle, hidden])
@pytest.mark.parametrize("make", [machine, chain])
def test_two_attempts_that_differ_are_reported(start, fold, make):
    twin = start(make(fold()), repeat=1.0)
    name = twin.flow.operators[0].name
    with pytest.raises(FoldError, match=f"operator '{name}' is not deterministic.*epoch 0"):
        twin.epoch(rows(*range(20)))
    assert twin.coordinator.last.epoch == -1


def test_a_table_fold_that_differs_is_reported(start):
    numbers = itertools.count()
    twin = start(
        unary(lambda t, tables, later: pa.table({"k": t["k"], "v": [next(numbers)] * t.num_rows})), repeat=1.0
    )
    with pytest.raises(FoldError, match="'fold' is not deterministic"):
        twin.epoch(rows(1, 2, 3))


class Replaced(Twin):
    """The next operator and the driver hear of different attempts.

    What the next operator has heard comes from one, and the receipt that reaches the driver from another.
    """

    def _attempts(self, task, inbox):
        first = super()._attempts(task, inbox)
        second = super()._attempts(task, inbox)
        return [m for m in first if m.kind != RECEIPT] + [m for m in second if m.kind == RECEIPT]


def test_an_operator_that_heard_from_another_attempt_is_reported(start, monkeypatch):
    monkeypatch.setattr("twin.small.Twin", Replaced)
    twin = start(chain(fickle()), seed=None)
    with pytest.raises(FoldError, match="operator 'first' is not deterministic"):
        twin.epoch(rows(*range(20)))
    assert twin.coordinator.last.epoch == -1


def test_attempts_that_agree_may_be_mixed(start, monkeypatch):
    monkeypatch.setattr("twin.small.Twin", Replaced)
    twin = start(chain(lambda key, record, state: ((state or 0) + 1, [(key, 1)])), seed=None)
    for _ in range(3):
        twin.epoch(rows(*range(20)))
    assert {row["n"] for row in twin.state("second").to_pylist()} == {3}


class Losing(Twin):
    """Some messages are lost."""

    lost = staticmethod(lambda message: False)

    def _attempts(self, task, inbox):
        return [message for message in super()._attempts(task, inbox) if not self.lost(message)]


def test_a_missing_receipt_fails_the_epoch_and_it_is_run_again(start, monkeypatch):
    monkeypatch.setattr("twin.small.Twin", Losing)
    twin = start(chain(lambda key, record, state: ((state or 0) + 1, [(key, 1)])))
    twin.epoch(rows(1, 2))
    twin.lost = lambda message: message.kind == RECEIPT and message.json()["worker"] == 2
    with pytest.raises(
        EpochError,
        match=r"epoch 1 is not complete: missing receipts of \(operator, worker\) \[\(0, 2\), \(1, 2\)\]",
    ):
        twin.epoch(rows(1, 2))
    assert twin.coordinator.last.epoch == 0
    twin.lost = lambda message: False
    twin.epoch(rows(1, 2), number=1)
    assert {row["n"] for row in twin.state("second").to_pylist()} == {2}


def test_a_message_that_got_lost_between_operators_fails_the_epoch(start, monkeypatch):
    monkeypatch.setattr("twin.small.Twin", Losing)
    twin = start(chain(lambda key, record, state: (1, [(key, 1)])))
    twin.lost = lambda message: message.kind != RECEIPT and message.operator == 1 and message.source == 1
    with pytest.raises(EpochError, match="'second' did not hear from worker 1 of 'first'"):
        twin.epoch(rows(*range(20)))


def test_a_receipt_that_nobody_expected_fails_the_epoch(start):
    twin = start(chain(lambda key, record, state: (1, [(key, 1)])))
    original = twin._run

    def one_more(tasks, partitions):
        receipts = original(tasks, partitions)
        return [*receipts, {**receipts[0], "worker": 9}]

    twin._run = one_more
    with pytest.raises(EpochError, match=r"unexpected \[\(0, 9\)\]"):
        twin.epoch(rows(1))
