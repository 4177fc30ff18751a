"""What a controller sees of a query."""

from __future__ import annotations

import base64
import zlib
from dataclasses import replace

import numpy as np
import pytest

from controllers.streams import EVEN, hot, rows
from sterna.controllers import Sample, View
from sterna.heat import decode_heat
from sterna.targets import balance, bins
from sterna.testing import Clock
from twin.small import adding, chain, counts


def test_a_view_can_not_be_changed(asked):
    def meddling(view):
        standing = view.operators["counts"]
        for change in (
            lambda: view.operators.update(counts=None),
            lambda: setattr(view, "now", 0),
            lambda: standing.bytes.fill(0),
            lambda: standing.configuration.owners.fill(0),
        ):
            with pytest.raises((AttributeError, TypeError, ValueError)):
                change()

    assert asked(meddling)[1] == []


def test_a_view_tells_what_the_epochs_were(start):
    seen = []
    flow = chain(adding)
    clock = Clock()
    twin = start(
        flow, bins=16, workers=2, clock=clock, controllers=[seen.append], work=lambda name, n: n * 0.5
    )
    for _ in range(3):
        clock.move(5)
        twin.epoch(EVEN)
    view = seen[-1]
    assert view.now == clock.now
    assert [one.cost.rows for one in view.samples] == [80] * 3
    assert view.rate(60) == pytest.approx(16)
    assert view.period() == 5
    for name in ("first", "second"):
        last = view.samples[-1].operators[name]
        assert sum(last.rows) == 80
        assert sum(last.busy) == pytest.approx(40)
        standing = view.operators[name]
        assert standing.bytes.sum() > 0
        assert standing.rows(2).sum() == pytest.approx(80, rel=0.05)
        assert [one.tolist() for one in standing.loads(2)] == [pytest.approx(list(last.rows), rel=0.05)] * 2


def test_loads_are_counted_as_bins_are_now(start):
    seen = []
    twin = start(counts(), bins=16, workers=2, controllers=[seen.append])
    twin.epoch(rows(hot(16, 0, 4)))
    twin.migrate({0: 1, 1: 1})
    last = twin.epoch(rows(hot(16, 0, 4)))
    first, second = seen[-1].operators["counts"].loads(2)
    # What was counted with the bins where they are is exact; what they would have got then is known to a
    # twentieth.
    assert second.tolist() == [last.facts["workers"][f"counts/{worker}"][0] for worker in (0, 1)]
    assert first.tolist() == pytest.approx(second.tolist(), rel=0.05)
    assert first[0] < first[1]
    twin.migrate(bins(32))
    twin.epoch(rows(hot(16, 0, 4)))
    assert seen[-1].operators["counts"].loads(3)[0].tolist() == pytest.approx(first.tolist())
    twin.migrate(balance())
    twin.epoch(rows(hot(16, 0, 4)))
    assert abs(np.diff(seen[-1].operators["counts"].loads(1)[0])[0]) < 40


def test_manifests_of_earlier_versions_tell_what_they_know(start):
    twin = start(counts(), bins=16, workers=2)
    last = twin.epoch(rows(hot(16, 0, 4)))
    levels = [
        np.round(np.log2(decode_heat(text) + 1) * 8).astype(np.uint8) for text in last.facts["heat"]["counts"]
    ]
    texts = [base64.b85encode(zlib.compress(one.tobytes(), 1)).decode() for one in levels]
    facts = {name: value for name, value in last.facts.items() if name != "heavy"}
    old = replace(last, facts={**facts, "heat": {"counts": texts[::-1]}})
    (before, now) = (View.of(last, [Sample.of(one)], 0.0).operators["counts"] for one in (old, last))
    assert before.rows(1).tolist() == pytest.approx(now.rows(1).tolist(), rel=0.1)
    assert before.loads(1)[0].tolist() == now.loads(1)[0].tolist()
    assert before.keys(1).hashes.tolist() == []
    for strange in ({"counts": ["?"]}, {}):
        known = View.of(last, [Sample.of(replace(old, facts={**facts, "heat": strange}))], 0.0)
        assert known.operators["counts"].rows(1).sum() == 0
