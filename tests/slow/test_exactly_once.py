"""Exactly once: a killed query's output is that of one left alone.

The query's state keeps moving, and it is killed in every way there is, again and again. ``STERNA_KILLS`` says
how often (50), ``STERNA_SEED`` where the dice begin.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter

import pytest

from slow.killing import PATIENCE, Work, kill
from sterna.engine.crash import POINTS
from sterna.remote import Remote

KILLS = int(os.environ.get("STERNA_KILLS", "50"))
SEED = int(os.environ.get("STERNA_SEED", "1"))
IN_TASKS = ("after-route", "before-apply", "after-flush", "before-receipt")
ALONE = "local[2]"
CLUSTER = "local-cluster[2,1,512]"
AHEAD = 12
"""How many files of input are always there, so that no run ends before it is killed."""
A_RUN = 12
"""How many executors and Python workers one run loses before its driver is killed too."""

pytestmark = pytest.mark.slow


def test_killed_again_and_again(tmp_path, say):
    work, dice, kills = Work(tmp_path / "killed", SEED), random.Random(SEED), Counter()
    rounds = [*POINTS, *[CLUSTER] * (1 + (KILLS - len(POINTS)) // (A_RUN + 1))]
    dice.shuffle(rounds)
    while sum(kills.values()) < KILLS or (rounds and KILLS >= 50):
        what = rounds.pop() if rounds else CLUSTER
        if what == CLUSTER:
            in_a_cluster(work, dice, kills)
        else:
            at_a_point(work, what, dice, kills)
        say(f"epoch {work.epoch()}, {sum(kills.values())} kills: {dict(kills)}")
    assert work.start(ALONE).end() == 0
    calm = Work(tmp_path / "calm")
    calm.feed(work.files)
    assert calm.start(ALONE, moves=False).end(patience=3600) == 0
    assert work.output() == calm.output()
    begun = [one for one in Remote(str(work.folder / "checkpoint")).history() if "steps" in one]
    assert {one["status"] for one in begun} <= {"done", "merged"}
    moved = [one for one in begun if one["status"] == "done"]
    # More bins, and workers that had none, move nothing.
    assert all(one["bins"] or one["reason"] or one["target"]["kind"] != "explicit" for one in moved)
    assert sum(one["bins"] for one in moved) > KILLS, "hardly anything moved"
    assert sum(map(len, calm.output().values())) > 2 * work.files


def at_a_point(work, point, dice, kills):
    """Kills at a crash point: the driver, or a Python worker.

    Without the latter the query of a single process fails.
    """
    work.feed(work.files_taken() + AHEAD)
    # Not every epoch has something to publish; any will do for that.
    where = point if point == "during-publish" else f"{point}@{work.epoch() + dice.randint(1, 3)}"
    run = work.start(ALONE, crash=where)
    assert run.end() != 0, f"{where} did not strike:\n{run.tail()}"
    assert run.struck, f"failed before {where}:\n{run.tail()}"
    kills[point] += 1


def in_a_cluster(work, dice, kills):
    """Kills executors and Python workers of a query that goes on, then its driver.

    It does so at no particular moment.
    """
    run = work.start(CLUSTER, crash=f"{dice.choice(IN_TASKS)}@{work.epoch() + 2}", end=False)
    ways = [an_executor, an_executor_with_the_second_operator, a_python_worker, a_python_worker]
    try:
        for _ in range(A_RUN - 1):
            goes_on(work, run)
            time.sleep(dice.random())
            way = dice.choice(ways)
            kills[way.__name__] += way(work, run, dice)
        goes_on(work, run)
        kills["a_python_worker"] += run.struck
        time.sleep(2 * dice.random())
        kills["the_driver"] += 1
    finally:
        run.kill()


def goes_on(work, run):
    """Waits for two more epochs."""
    before, deadline = work.epoch(), time.monotonic() + PATIENCE
    while work.epoch() < before + 2:
        work.feed(work.files_taken() + AHEAD)
        assert run.alive, f"the query failed:\n{run.tail()}"
        assert time.monotonic() < deadline, f"the query is stuck:\n{run.tail()}"
        time.sleep(0.1)


def an_executor(work, run, dice):
    alive = run.executors()
    return kill(dice.choice(alive)) if alive else 0


def a_python_worker(work, run, dice):
    alive = run.python_workers()
    return kill(dice.choice(alive)) if alive else 0


def an_executor_with_the_second_operator(work, run, dice):
    """The executor in which the second operator is just being applied.

    What the first one sent to it is lost as well.
    """
    told = work.folder / "lingering"
    told.unlink(missing_ok=True)
    (work.folder / "linger").touch()
    deadline = time.monotonic() + 30
    while not told.exists():
        if not run.alive or time.monotonic() > deadline:
            (work.folder / "linger").unlink(missing_ok=True)
            return 0
        work.feed(work.files_taken() + AHEAD)
        time.sleep(0.05)
    executor = run.executor_of(int(told.read_text()))
    return kill(executor) if executor is not None else 0
