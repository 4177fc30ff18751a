"""Every query against SQL written from its definition.

It is left alone, state moves in every way meanwhile, or it goes on through crashes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

import sterna
from nexmark import made, reference
from nexmark.events import KINDS, SLOW, epochs, punctual, shape_of, whole
from nexmark.made import SECOND, bid
from nexmark.runs import Run
from sterna.nexmark.queries import QUERIES
from sterna.testing import POINTS, crashing

STRATEGIES = {
    "all_at_once": sterna.all_at_once(),
    "fluid": sterna.fluid(),
    "batched": sterna.batched(5),
    "matched": sterna.matched(),
    "paced": sterna.paced(bytes_per_epoch=100_000),
}


STATELESS = ("q1", "q2")


EVENTS, MANY = 200_000, 300_000


def expected(query, shape, events):
    return reference.answer(query, *whole(shape, events))


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_answers_what_its_definition_says(query, flows, tmp_path):
    shape, events = shape_of(query), MANY
    run = Run(flows[query], tmp_path)
    for tables in epochs(shape, events, events // 8 + 1):
        run.epoch(tables)
    assert run.answer(query) == expected(query, shape, events)


@pytest.mark.parametrize("query", QUERIES)
def test_moving_state_in_every_way_changes_nothing(query, flows, tmp_path):
    """One strategy after the other, all while there is state, and before the last rows have come."""
    shape, events = shape_of(query), EVENTS
    operators = len(flows[query].operators)
    bins, count = (16, 20 + 20 * operators) if operators < 3 else (8, 20 + 10 * operators)
    run = Run(flows[query], tmp_path, bins=bins, hosts=lambda slot: f"host{slot % 2}")
    wanted, moved = [*zip((7, 3, 6, 2, 5), STRATEGIES.values(), strict=True)], []
    for number, tables in enumerate(epochs(shape, events, events // count)):
        if number >= 4 and wanted and all(one.status == "done" for one in moved):
            workers, strategy = wanted.pop(0)
            moved.append(run.twin.handle(run.twin.migrate(sterna.rescale(workers), strategy)))
        run.epoch(tables)
    outcomes = [one.progress() for one in moved]
    assert [one["status"] for one in outcomes] == ["done"] * len(STRATEGIES)
    assert outcomes[-1]["ended_epoch"] < run.twin.next_epoch - 1
    assert all(one["bins"] for one in outcomes)
    assert all(one["bytes"] for one in outcomes) == (query not in STATELESS)
    assert run.answer(query) == expected(query, shape, events)


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_moving_state_changes_nothing_at_length(query, strategy, flows, tmp_path):
    shape, events = shape_of(query), MANY
    run = Run(flows[query], tmp_path, hosts=lambda slot: f"host{slot % 2}")
    names = []
    for number, tables in enumerate(epochs(shape, events, events // 30)):
        if number in (4, 14):
            target = sterna.rescale(7 if number == 4 else 3)
            names.append(run.twin.migrate(target, STRATEGIES[strategy], if_busy="queue"))
        run.epoch(tables)
    moved = [run.twin.handle(name).wait() for name in names]
    assert [one["status"] for one in moved] == ["done", "done"]
    assert all(one["bins"] for one in moved)
    if query != "q7":
        assert all(one["bytes"] for one in moved) == (query not in STATELESS)
    assert run.answer(query) == expected(query, shape, events)


def crashed(query, flow, path, events, count):
    """The answer of a query that crashes in every epoch, and how often it crashed.

    It crashes at one point after the other, and moves state meanwhile.
    """
    run, struck, name = Run(flow, path, hosts=lambda slot: f"host{slot % 2}"), [], None
    for number, tables in enumerate(epochs(shape_of(query), events, events // count)):
        if number == 3:
            name = run.twin.migrate(sterna.rescale(6), sterna.matched())
        with crashing(POINTS[number % len(POINTS)]) as hits:
            run.epoch(tables)
        struck += hits
    outcome = run.twin.handle(name).wait()
    assert outcome["status"] == "done"
    if query != "q7":  # of which a window or two are all the state: whether their bins move is chance
        assert bool(outcome["bytes"]) == (query not in STATELESS)
    return run.answer(query), struck


@pytest.mark.parametrize("query", QUERIES)
def test_crashes_change_nothing(query, flows, tmp_path):
    found, struck = crashed(query, flows[query], tmp_path, EVENTS, 14)
    assert len(struck) >= len(POINTS)
    assert found == expected(query, shape_of(query), EVENTS)


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
def test_crashes_change_nothing_at_length(query, flows, tmp_path):
    found, struck = crashed(query, flows[query], tmp_path, MANY, 30)
    assert len(struck) >= 2 * len(POINTS)
    assert found == expected(query, shape_of(query), MANY)


def disordered(query):
    """Events out of order in groups of 500, and how many of them."""
    return replace(shape_of(query), disorder=500), 30_000


@pytest.mark.parametrize("query", KINDS)
def test_events_out_of_order_count_while_the_watermark_waits_for_them(query, flows, tmp_path):
    shape, events = disordered(query)
    run = Run(flows[query], tmp_path, delay=int(500e6 / shape.rate))
    for tables in epochs(shape, events, 900):
        run.epoch(tables)
    assert run.answer(query) == expected(query, shape, events)


@pytest.mark.parametrize("query", [query for query in KINDS if query != "q7"])
def test_events_that_are_late_count_for_nothing(query, flows, tmp_path):
    """Query 7 combines bids before the watermark is known: it has a test of its own."""
    shape, events = disordered(query)
    run = Run(flows[query], tmp_path)
    for tables in epochs(shape, events, 900):
        run.epoch(tables)
    kept = punctual(shape, events, 900, KINDS[query])
    assert sum(table.num_rows for table in kept) < events
    answer = reference.answer(query, *kept)
    assert run.answer(query) == answer != expected(query, shape, events)


def test_late_bids_are_not_in_the_way_of_others(flows, tmp_path):
    """Each routing task keeps only the highest bid of a minute: of those that are on time."""
    run = Run(flows["q7"], tmp_path)
    run.epoch(made.epoch(bid(1, 30 * SECOND, 5)))
    run.epoch(made.epoch(bid(1, 20 * SECOND, 1000), bid(1, 40 * SECOND, 500)))
    assert [row[3] for row in run.answer("q7")] == [500]


def test_sessions_end_while_their_auctions_go_on():
    """Otherwise the sessions of NBQX would never be parted."""
    pairs = Counter(row[2] for row in reference.answer("nbqx", *whole(SLOW, 20_000)))
    assert pairs["30 minutes"] < pairs["120 minutes"]


def test_no_two_auctions_of_a_seller_expire_together():
    """Otherwise the order in which they close would depend on more than their times.

    So would the answers of query 6.
    """
    _, auctions, _ = whole(shape_of("q6"), MANY)
    pairs = auctions.select(["seller", "expires"])
    assert pairs.group_by(pairs.column_names).aggregate([]).num_rows == pairs.num_rows
