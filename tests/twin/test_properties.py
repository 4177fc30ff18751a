"""The three properties of a migrating dataflow: correctness, migration, completion.

They hold for all dataflows, moves and crashes. Correctness: outputs (for each key in order, and epoch by
epoch) and state equal those of a run with one worker that never moves and never crashes. Migration: the twin
checks that every row is applied, and every row of state lies, where the configuration says. Completion: the
run ends, every wish has been granted or refused, and all notifications up to the frontier have fired.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sterna.testing import POINTS
from twin.flows import CASES
from twin.harness import Move, Script, compare
from twin.strategies import Part, scripts

QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}


@pytest.mark.parametrize("case", CASES)
@given(data=st.data())
@settings(max_examples=12, **QUIET)
def test_moves_and_crashes_change_nothing(case, data):
    compare(data.draw(scripts((case,))))


@pytest.mark.parametrize("case", ["unary", "rekeyed"])
@pytest.mark.parametrize("point", POINTS)
def test_a_crash_at_every_point_of_an_epoch_that_moves_state(point, case):
    inputs = [
        [[Part("int", epoch, 8, 2 * epoch), Part("int", epoch, 8, 2 * epoch + 1)]] for epoch in range(4)
    ]
    moves = [Move(1, "rescale", 4), Move(2, "bins", 5), Move(2, "explicit", 0, [(7, 1), (3, 0), (12, 2)])]
    crashes = [(epoch, point, after) for epoch in (1, 2) for after in (0, 1)]
    compare(Script(case, "int", inputs, moves, crashes, share=case == "unary"))


@pytest.mark.slow
@given(script=scripts(max_epochs=15))
@settings(max_examples=3000, derandomize=False, **QUIET)
def test_moves_and_crashes_change_nothing_at_length(script):
    compare(script)
