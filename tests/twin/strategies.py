"""Random streams, schedules of moves, and crashes."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import pyarrow as pa
from hypothesis import strategies as st

from sterna.testing import POINTS
from twin.flows import CASES, KEY_TYPES, source_schema
from twin.harness import STRATEGIES, Move, Script

KEYS = {
    "int": [None, 0, 1, 2, -7, 2**40, 3, 4, 5],
    "string": [None, "", "a", "b", "ab", "ä", "longer than eight bytes", "x" * 40],
    "double": [None, 0.0, -0.0, float("nan"), -float("nan"), 1.5, float("inf"), -1e300],
}
VALUES = [None, *range(-3, 12)]
FLOATS = [None, 0.1, 0.2, 1e16, -1.0, -0.0, float("nan"), 3.0]
TEXTS = [None, "", "p", "q"]
BEGIN = datetime(1970, 1, 1, tzinfo=timezone.utc)


SHIFTS = [None, 0, 0, 0, 1, 2, -1, -6]


def partitions(key: str, epoch: int):
    """The partitions of one source in one epoch.

    Time goes on by about a second an epoch, and some rows are late. Hypothesis chooses how many rows and a
    seed: row by row it would spend more time choosing than the twin on running.
    """
    return st.lists(
        st.builds(Part, st.just(key), st.just(epoch), st.integers(0, 12), st.integers(0, 9999)), max_size=3
    )


@dataclass(frozen=True)
class Part:
    """The rows of one partition, by the seed that makes them."""

    key: str
    epoch: int
    rows: int
    seed: int

    def table(self) -> pa.Table:
        choose = random.Random(self.seed).choice
        pools = (KEYS[self.key], [None, 0, 1, 2], VALUES, FLOATS, TEXTS, SHIFTS)
        return table(self.key, self.epoch, [[choose(pool) for pool in pools] for _ in range(self.rows)])


def table(key: str, epoch: int, rows) -> pa.Table:
    schema = source_schema(KEY_TYPES[key])
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    times = [None if shift is None else BEGIN + timedelta(seconds=epoch + shift) for shift in columns[-1]]
    data = [*columns[:-1], times]
    return pa.table([pa.array(list(c), f.type) for c, f in zip(data, schema, strict=True)], schema=schema)


def moves(epochs: int):
    return st.builds(
        Move,
        before=st.integers(0, epochs - 1),
        kind=st.sampled_from(["explicit", "rescale", "bins", "balance", "control"]),
        number=st.integers(0, 71),
        pairs=st.lists(st.tuples(st.integers(0, 255), st.integers(0, 7)), min_size=1, max_size=4),
        when=st.sampled_from(["now", "now", "epoch", "wall", "event"]),
        delay=st.integers(0, 3),
        operator=st.none() | st.integers(0, 4),
        strategy=st.integers(0, len(STRATEGIES) - 1),
        if_busy=st.sampled_from(["refuse", "queue", "merge"]),
    )


@st.composite
def scripts(draw, cases=tuple(CASES), *, crashes: bool = True, max_epochs: int = 6):
    case = draw(st.sampled_from(cases))
    key = draw(st.sampled_from(list(KEYS)))
    epochs = draw(st.integers(1, max_epochs))
    sources = 2 if case == "binary" else 1
    inputs = [[draw(partitions(key, epoch)) for _ in range(sources)] for epoch in range(epochs)]
    places = st.tuples(st.integers(0, epochs - 1), st.sampled_from(POINTS), st.integers(0, 3))
    return Script(
        case,
        key,
        inputs,
        moves=draw(st.lists(moves(epochs), max_size=6)),
        crashes=draw(st.lists(places, max_size=3)) if crashes else [],
        restarts=draw(st.sets(st.integers(0, epochs - 1), max_size=1)) if crashes else set(),
        workers=draw(st.integers(1, 5)),
        bins=1 << draw(st.integers(0, 6)),
        share=draw(st.booleans()),
        hosts=draw(st.integers(1, 3)),
        combine=draw(st.booleans()),
        collide=draw(st.booleans()),
        flush=draw(st.booleans()),
        idle=draw(st.sampled_from([None, 2.0])),
        churn=draw(st.booleans()),
        seed=draw(st.integers(0, 1000)),
    )
