"""Every query against SQL written from its definition: left alone, while state moves in every way, and through crashes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

import sterna
from nexmark import reference
from nexmark.events import SLOW, epochs, shape_of, whole
from sterna.engine.coordinator import Options
from sterna.nexmark import BID, Shape
from sterna.nexmark.packing import PACKED
from sterna.nexmark.queries import QUERIES
from sterna.sinks import memory
from sterna.testing import POINTS, Clock, Crash, Twin, crashing

EVENTS = 40_000
STRATEGIES = {
    "all_at_once": sterna.all_at_once(),
    "fluid": sterna.fluid(),
    "batched": sterna.batched(5),
    "matched": sterna.matched(),
    "paced": sterna.paced(bytes_per_epoch=100_000),
}


class Run:
    """A query on a twin that starts again after a crash."""

    def __init__(self, flow, path, delay=0, **twin):
        self._arguments = (flow, str(path), Options(16, 4, delay))
        self._more = {"clock": Clock(), **twin}
        self.sink = memory()
        self._start()

    def _start(self):
        flow, path, options = self._arguments
        self.twin = Twin(flow, path, self.sink, options, **self._more)

    def epoch(self, tables):
        number = self.twin.next_epoch
        try:
            self.twin.epoch(tables, number=number)
        except Crash:
            self.twin.close()
            self._start()
            self.twin.epoch(tables, number=number)

    def answer(self, query):
        self.twin.flush()
        self.twin.close()
        rows = [tuple(row.values()) for row in self.sink.table().to_pylist()]
        if query in reference.LAST_OF_KEY:
            rows = list({row[0]: row for row in rows}.values())
        return reference.comparable(rows)


def length_of(query):
    """Events and epochs; NBQX has six operators, each of which takes its time, and a minute must pass for some."""
    if query == "nbqx":
        return 3_000, 12
    return (20_000 if query in ("q5", "q7", "nbq5") else 10_000), 14


def expected(query, shape, events):
    return reference.answer(query, *whole(shape, events))


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_answers_what_its_definition_says(query, flows, tmp_path):
    shape = shape_of(query)
    run = Run(flows[query], tmp_path)
    for tables in epochs(shape, EVENTS, 7_000):
        run.epoch(tables)
    assert run.answer(query) == expected(query, shape, EVENTS)


@pytest.mark.parametrize("query", QUERIES)
def test_moving_state_in_every_way_changes_nothing(query, flows, tmp_path):
    shape, (events, count) = shape_of(query), length_of(query)
    run = Run(flows[query], tmp_path, hosts=lambda slot: f"host{slot % 2}")
    wanted = dict(enumerate(zip((7, 3, 6, 2, 5), STRATEGIES.values(), strict=True)))
    names = []
    for number, tables in enumerate(epochs(shape, events, events // count)):
        if number in wanted:
            workers, strategy = wanted[number]
            names.append(run.twin.migrate(sterna.rescale(workers), strategy, if_busy="queue"))
        run.epoch(tables)
    assert [run.twin.handle(name).wait()["status"] for name in names] == ["done"] * len(STRATEGIES)
    assert run.answer(query) == expected(query, shape, events)


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_moving_state_changes_nothing_at_length(query, strategy, flows, tmp_path):
    shape, events = shape_of(query), 300_000 if query != "nbqx" else 60_000
    run = Run(flows[query], tmp_path, hosts=lambda slot: f"host{slot % 2}")
    for number, tables in enumerate(epochs(shape, events, events // 30)):
        if number == 4:
            run.twin.migrate(sterna.rescale(7), STRATEGIES[strategy])
        if number == 14:
            run.twin.migrate(sterna.rescale(3), STRATEGIES[strategy], if_busy="queue")
        run.epoch(tables)
    assert run.answer(query) == expected(query, shape, events)


@pytest.mark.parametrize("query", QUERIES)
def test_crashes_change_nothing(query, flows, tmp_path):
    shape, (events, count) = shape_of(query), length_of(query)
    run = Run(flows[query], tmp_path)
    struck = []
    for number, tables in enumerate(epochs(shape, events, events // count)):
        if number == 3:
            run.twin.migrate(sterna.rescale(6), sterna.matched())
        with crashing(POINTS[number % len(POINTS)]) as hits:
            run.epoch(tables)
        struck += hits
    assert len(struck) >= len(POINTS)
    assert run.answer(query) == expected(query, shape, events)


@pytest.mark.parametrize("query", ["q4", "q5", "q7", "nbq5"])
def test_events_out_of_order_count_while_the_watermark_waits_for_them(query, flows, tmp_path):
    shape = replace(shape_of(query), disorder=500)
    run = Run(flows[query], tmp_path, delay=3_000_000)
    for tables in epochs(shape, 30_000, 900):
        run.epoch(tables)
    assert run.answer(query) == expected(query, shape, 30_000)


def test_late_bids_are_not_in_the_way_of_others(flows, tmp_path):
    """Each routing task keeps only the highest bid of a minute: of those that are on time."""
    run = Run(flows["q7"], tmp_path)
    base = Shape().base // 60_000_000 * 60_000_000

    def bids(*pairs):
        times, prices = zip(*pairs, strict=True)
        ones = [1] * len(pairs)
        columns = [ones, ones, list(prices), [base + t * 1_000_000 for t in times], [""] * len(pairs)]
        batch = pa.RecordBatch.from_arrays(
            [pa.array(values).cast(item.type) for values, item in zip(columns, BID, strict=True)], schema=BID
        )
        nothing = pa.nulls(1, pa.binary())
        row = pa.array([batch.serialize().to_pybytes()], pa.binary())
        return [pa.Table.from_arrays([nothing, nothing, row], schema=PACKED)]

    run.epoch(bids((30, 5)))
    run.epoch(bids((20, 1000), (40, 500)))
    assert [row[3] for row in run.answer("q7")] == [500]


def test_sessions_end_while_their_auctions_go_on():
    """Otherwise the sessions of NBQX would never be parted."""
    pairs = Counter(row[2] for row in reference.answer("nbqx", *whole(SLOW, 20_000)))
    assert pairs["30 minutes"] < pairs["120 minutes"]
