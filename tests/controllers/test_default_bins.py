"""Balancing at the default of 4,096 bins, with a key that has much of all rows.

It is levelled where that can be, and named where it can't.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from controllers.streams import load
from sterna.cli import app
from sterna.controllers import advice_only, balancer
from sterna.hashing import bins_of, hash_keys
from sterna.testing import Clock
from twin import small

KEYS, ROWS, WORKERS = 40_000, 4_000, 4
HOT = 11


def stream(share, chance):
    """Rows of which one key has this share, and the others are spread evenly."""
    drawn = chance.random(ROWS) < share
    keys = np.where(drawn, HOT, chance.integers(0, KEYS, ROWS)).astype(np.int64)
    ones = np.ones(ROWS, np.int64)
    return pa.table([pa.array(keys), pa.array(ones), pa.array(0 * ones)], schema=small.SCHEMA)


def run(start, share, bins=4096, epochs=24, controllers=None):
    """The twin after some epochs, the load of the fullest worker in each, and what was said."""
    clock, chance = Clock(), np.random.default_rng(3)
    twin = start(
        small.counts(),
        bins=bins,
        workers=WORKERS,
        clock=clock,
        controllers=[balancer()] if controllers is None else controllers,
        work=lambda _, count: count * 1e-3,
    )
    seen = []
    for _ in range(epochs):
        clock.move(3)
        seen.append(load(twin.epoch(stream(share, chance))))
    return twin, seen, twin.coordinator.history.said()


@pytest.mark.parametrize("bins", [4096, 2048])
def test_a_key_with_a_fifth_of_the_rows_gets_room(start, bins):
    _, seen, said = run(start, 0.2, bins)
    assert seen[0] > 1.4
    assert max(seen[10:]) <= 1.25
    assert [one["outcome"] for one in said] == ["asked"]
    assert seen[-1] == pytest.approx(said[0]["facts"]["after"], abs=0.1)


@pytest.mark.parametrize("bins", [4096, 16])
def test_a_key_with_more_than_a_share_is_named_because_no_number_of_bins_parts_it(start, bins):
    twin, seen, said = run(start, 0.35, bins)
    # The key alone is 1.4 times the mean; its worker has little else.
    assert max(seen[10:]) <= (1.55 if bins == 4096 else 1.8)
    assert said[-1]["outcome"] == "declined"
    assert "no plan helps" in said[-1]["why"]
    assert "in which one key has 3" in said[-1]["why"]
    assert "% of the rows: no number of bins parts it" in said[-1]["why"]
    key = hash_keys([pa.array([HOT])])
    assert said[-1]["facts"]["key"] == int(key[0])
    assert said[-1]["facts"]["bin"] == int(bins_of(key, (bins - 1).bit_length())[0])
    assert said[-1]["facts"]["share"] == pytest.approx(0.35, abs=0.03)
    told = twin.coordinator.statistics("counts").keys
    assert told.hashes.tolist() == [int(key[0])]
    assert told.rows[0] == pytest.approx(0.35 * ROWS, rel=0.1)


def test_advice_from_outside_names_the_key(start, tmp_path):
    run(start, 0.35, epochs=6, controllers=[])
    answer = CliRunner().invoke(
        app, ["advise", str(tmp_path / "checkpoint"), "--controller", "balancer", "--format", "json"]
    )
    (told,) = json.loads(answer.stdout)["controllers"]
    assert told["verdict"] == "move"
    assert "% of the rows: no number of bins parts it" in told["why"]


def test_where_bins_are_finer_than_cells_heavy_keys_are_found_by_their_hashes(start, monkeypatch):
    monkeypatch.setattr("sterna.heat.CELL_BITS", 5)
    _, seen, said = run(start, 0.2)
    assert max(seen[10:]) <= 1.3
    assert [one["outcome"] for one in said] == ["asked"]


def test_a_plan_that_did_not_bring_what_it_promised_is_told_in_the_history(start, monkeypatch):
    # Nobody knows that one bin of many in a cell is hot: as if no key were ever named.
    monkeypatch.setattr("sterna.heat.CELL_BITS", 3)
    monkeypatch.setattr("sterna.keys.NAMED", 0)
    _, seen, said = run(start, 0.2, epochs=40)
    assert max(seen[10:20]) > 1.3
    told = next(one for one in said if one["outcome"] == "declined")
    assert "the last plan had promised" in told["why"]
    assert told["facts"]["came"] > 1.2 > told["facts"]["promised"]
    # It tries again, after a longer while.
    later = [one["epoch"] for one in said if one["outcome"] == "asked" and one["epoch"] > told["epoch"]]
    assert later[0] - told["epoch"] >= 20
    # The rows that workers are counted to get narrow down where the hot bin is.
    assert max(seen[-5:]) < 1.35


def test_advice_does_not_call_level_what_is_not(start):
    _, seen, said = run(start, 0.2, controllers=[advice_only(balancer())])
    assert min(seen) > 1.3
    assert {one["outcome"] for one in said} == {"advised"}
