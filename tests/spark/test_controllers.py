"""Controllers on Spark.

A skew that moves is levelled, one that fails hurts nobody, and another process asks for advice.
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import sterna
from controllers.streams import hot, keys, load, rows
from sterna.errors import InvalidInput
from sterna.hashing import hash_keys

BINS, ENOUGH = 16, 60


@pytest.fixture
def counting(feed, start):
    """A query that counts keys; and a function that runs one more epoch with so many rows for each bin."""
    source = feed("key long")

    def begin(*controllers):
        keyed = sterna.read(source.stream()).key_by("key")
        query = start(
            keyed.aggregate(n=sterna.count()), bins=BINS, workers=2, combine="none", controllers=controllers
        )

        def epoch(counts):
            source.add_table(rows(counts).select(["k"]).rename_columns(["key"]))
            query.process_all_available()
            # A migration may have made an epoch without rows since.
            kept = query._coordinator.manifests
            found = (kept.read(number) for number in reversed(kept.epochs()))
            return load(next(one for one in found if one.facts["rows"]), "aggregate")

        return query, epoch

    return begin


def said(query, outcome):
    return [e for e in query.history() if e["kind"] == "controller" and e["outcome"] == outcome]


def test_a_skew_that_moves_is_levelled(counting):
    query, epoch = counting(sterna.controllers.balancer(epochs=2, cool_down=0))
    total = 0
    for first in (0, 8):
        skew = hot(BINS, first, 4, 5)
        assert epoch(skew) > 1.3 or first
        levelled = next((at for at in range(ENOUGH) if epoch(skew) <= 1.3), None)
        assert levelled is not None
        total += (levelled + 2) * int(skew.sum())
    moved = query.migrations()
    assert moved
    assert all(one["cause"].startswith("controller: balancer: aggregate: worker") for one in moved)
    assert len(said(query, "asked")) == len(moved)
    query.stop()
    assert sum(row["n"] for row in query.state().collect()) == total


def test_without_it_the_skew_stays_and_one_that_fails_is_switched_off(counting):
    def broken(view):
        raise ZeroDivisionError(view.cores[0])

    query, epoch = counting(sterna.controllers.advice_only(sterna.controllers.balancer(epochs=2)), broken)
    assert min(epoch(hot(BINS, 0, 4, 5)) for _ in range(6)) > 1.3
    query.stop()
    (off,) = said(query, "off")
    assert off["reason"] == "it raised ZeroDivisionError(2)"
    assert said(query, "advised")
    assert not query.migrations()


def test_advice_from_another_process(counting):
    query, epoch = counting()
    for _ in range(4):
        epoch(hot(BINS, 0, 4, 5))
    command = [sys.executable, "-m", "sterna.cli", "advise", query._coordinator.store.uri, "--format", "json"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 0, found.stderr
    level, scale = json.loads(found.stdout)["controllers"]
    assert (level["controller"], scale["controller"]) == ("balancer", "autoscaler")
    assert "worker 0 has" in level["why"]
    assert scale["verdict"] == "stay" or scale["facts"]["need"] > 0
    assert query.configuration().workers == 2


def test_what_is_no_controller_is_refused_before_anything_begins(counting, checkpoint, tmp_path):
    for wrong, words in [
        ([5], "5 in controllers is not a controller"),
        ([sterna.controllers.balancer(operator="nobody")], "operator 'nobody' does not exist"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            counting(*wrong)
    assert not (tmp_path / "checkpoint").exists()


def test_heavy_keys_are_known_and_named(counting):
    query, epoch = counting(sterna.controllers.advice_only(sterna.controllers.balancer(epochs=2)))
    counts = np.full(BINS, 4)
    counts[3] = 400
    pool = keys(BINS)[3]
    for _ in range(4):
        epoch(counts)
    known = query.statistics().keys
    assert set(known.hashes.tolist()) <= set(hash_keys([pa.array(pool)]).tolist())
    assert known.rows.sum() + known.error * len(pool) >= 400
    assert known.total == pytest.approx(460)
