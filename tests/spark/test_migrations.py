"""Migrations in several steps on Spark.

They are shipped through the exchange, steered from another process, and go on over a restart.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest

import sterna
from sterna.errors import UpdateRefused

KEYS = list(range(200))


@pytest.fixture
def counting(feed, start):
    """A query that counts keys, with all of them there once; and its source."""
    source = feed("key long").add(*KEYS)

    def begin(**options):
        keyed = sterna.read(source.stream()).key_by("key")
        query = start(keyed.aggregate(n=sterna.count()), bins=8, workers=2, **options)
        query.process_all_available()
        return query, source

    return begin


def counts(query):
    return {row["key"]: row["n"] for row in query.state().collect()}


@pytest.mark.parametrize(
    "strategy",
    [
        sterna.matched(),
        sterna.paced(latency="5 seconds"),
    ],
    ids=lambda one: sterna.strategies.describe(sterna.strategies.to_json(one)),
)
def test_state_is_shipped_step_by_step_and_back(counting, strategy):
    query, source = counting(share_host_state=False)
    migration = query.migrate(sterna.rescale(3), strategy)
    source.add(*KEYS)
    outcome = migration.wait(120)
    assert (outcome["status"], outcome["bins"]) == ("done", 2)
    assert outcome["bytes"] > 0
    assert query.configuration().workers == 3
    migration.rollback()
    assert migration.wait(120)["status"] == "rolled back"
    query.process_all_available()
    assert query.configuration().workers == 2
    assert counts(query) == dict(Counter(KEYS * 2))
    assert query.migrations()[0]["name"] == migration.name


def test_from_another_process(counting, start):
    query, _ = counting()
    checkpoint = query._coordinator.store.uri
    command = [sys.executable, "-m", "sterna.cli"]

    def sterna_(*arguments):
        result = subprocess.run(
            [*command, arguments[0], checkpoint, *arguments[1:], "--format", "json"],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    planned = sterna_("plan", "--workers", "4", "--strategy", "matched")["operators"]["aggregate"]
    outcome = sterna_("apply", "--workers", "4", "--strategy", "matched", "--cause", "more work", "--wait")
    assert outcome["status"] == "done"
    assert (outcome["bins"], outcome["steps"]) == (planned["bins"], planned["steps"])
    assert sterna_("status")["operators"]["aggregate"]["workers"] == 4
    assert sterna_("history")[0]["cause"] == "more work"
    assert query.configuration().workers == 4
    with pytest.raises(UpdateRefused, match="is over"):
        query.migration(outcome["name"]).cancel()


def test_a_restart_goes_on(counting):
    query, _ = counting()
    migration = query.migrate(sterna.rescale(1), sterna.fluid(gap=1))
    query.wait_for_epoch(query.status()["epoch"] + 3)
    query.stop()
    moved = migration.progress()["bins"]
    assert 0 < moved < 4
    again, _ = counting()
    outcome = again.migration(migration.name).wait(120)
    assert (outcome["status"], outcome["bins"], outcome["steps"]) == ("done", 4, 4)
    assert counts(again) == dict.fromkeys(KEYS, 1)
