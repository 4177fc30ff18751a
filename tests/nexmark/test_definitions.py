"""What the queries' definitions say of the moments that random events hardly ever hit.

Every answer is written out here, and SQL gives the same.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from nexmark import reference
from nexmark.events import epochs, shape_of, shifted, whole
from nexmark.made import HOUR, MINUTE, SECOND, auction, bid, epoch, person, tables, when
from nexmark.runs import Run

HALF_DAY, GAP = 12 * HOUR, 30 * MINUTE

WINNERS = [
    auction(1, 10 * SECOND, 20 * SECOND, reserve=100, category=11, seller=1),
    bid(1, 10 * SECOND - 1, 900),  # not yet
    bid(1, 15 * SECOND, 99),  # below the reserve
    bid(1, 20 * SECOND - 1, 300),
    bid(1, 20 * SECOND, 800),  # closed
    auction(2, 10 * SECOND, 20 * SECOND, category=12, seller=2),
    bid(2, 20 * SECOND, 500),  # closed: nobody has won
    auction(3, 10 * SECOND, 20 * SECOND, reserve=100, category=13, seller=3),
    bid(3, 10 * SECOND, 100),  # as it begins, at the reserve
    auction(4, 10 * SECOND, 20 * SECOND, reserve=100, category=14, seller=4),
    bid(4, 15 * SECOND, 99),
]
PAIRS = [
    person(1, HALF_DAY - 1),
    auction(10, HALF_DAY, seller=1, reserve=1),
    person(2, HALF_DAY),
    auction(20, HALF_DAY, seller=2, reserve=2),
    person(3, HALF_DAY + 1),
    auction(30, 2 * HALF_DAY - 1, seller=3, reserve=3),
    person(4, HALF_DAY + 2),
    auction(40, 2 * HALF_DAY, seller=4, reserve=4),
]
SESSIONS = [
    auction(1, 0, seller=7),
    bid(1, GAP - 1, 1, bidder=5),
    bid(1, 2 * GAP - 1, 2, bidder=6),  # exactly the shortest gap later
    auction(2, 4 * HOUR - 1, seller=8),
    bid(2, 4 * HOUR, 3, bidder=9),  # in the next window
]
GAPS = [f"{minutes} minutes" for minutes in (30, 60, 90, 120)]


def counted(auction, end, n):
    """What is said of an auction at the end of a minute; seconds."""
    return auction, when((end - 60) * SECOND), when(end * SECOND), n


CASES = {
    "a bid as a minute ends is of the next minute": (
        "q7",
        [bid(1, 0, 400), bid(2, MINUTE - 1, 500), bid(3, MINUTE, 900)],
        [(when(0), 2, 1, 500), (when(MINUTE), 3, 1, 900)],
    ),
    "all bids that tie for the highest of a minute": (
        "q7",
        [
            bid(1, 0, 500, bidder=4),
            bid(2, SECOND, 499),
            bid(1, 2 * SECOND, 500, bidder=5),
            bid(3, 3 * SECOND, 500),
        ],
        [(when(0), 1, 4, 500), (when(0), 1, 5, 500), (when(0), 3, 1, 500)],
    ),
    "all auctions that tie for most bids": (
        "q5",
        [bid(1, 0), bid(2, 1), bid(3, 2), bid(2, 3), bid(1, SECOND - 1)],
        [counted(id_, end, 2) for end in range(1, 61) for id_ in (1, 2)],
    ),
    "a bid as a second begins is in the windows that end after it": (
        "q5",
        [bid(1, 10 * SECOND), bid(2, 70 * SECOND)],
        [
            *(counted(1, end, 1) for end in range(11, 71)),
            *(counted(2, end, 1) for end in range(71, 131)),
        ],
    ),
    "a bid as a slide ends is of the next": (
        "nbq5",
        [bid(1, 10 * SECOND - 1), bid(2, 10 * SECOND)],
        [
            *(counted(1, end, 1) for end in range(10, 61, 10)),
            *(counted(2, end, 1) for end in range(20, 71, 10)),
        ],
    ),
    "bids count from the beginning of an auction until before it expires, from its reserve on": (
        "q4",
        WINNERS,
        [(11, 300.0), (13, 100.0)],
    ),
    "the same for each seller": ("q6", WINNERS, [(1, 300.0), (3, 100.0)]),
    "the last ten auctions of a seller, whenever one closes": (
        "q6",
        [
            one
            for n in range(1, 13)
            for one in (auction(n, 0, n * SECOND, seller=7), bid(n, n * SECOND - 1, n * n))
        ],
        [(7, sum(i * i for i in range(max(1, n - 9), n + 1)) / min(n, 10)) for n in range(1, 13)],
    ),
    "persons and auctions as a window ends are of the next": (
        "q8",
        PAIRS,
        [(2, when(HALF_DAY), "name 2", 2), (3, when(HALF_DAY), "name 3", 3)],
    ),
    "the same with everything about them": (
        "nbq8",
        PAIRS,
        [(2, when(HALF_DAY), "name 2"), (3, when(HALF_DAY), "name 3")],
    ),
    "after exactly the gap another session begins, and windows of four hours end before it": (
        "nbqx",
        SESSIONS,
        [
            (1, when(0), "fixed 4 hours", 7, 5, 1),
            (1, when(0), "fixed 4 hours", 7, 6, 2),
            *((1, when(0), gap, 7, 5, 1) for gap in GAPS),
            *((1, when(0), gap, 7, 6, 2) for gap in GAPS[1:]),
            *((2, when(4 * HOUR - 1), gap, 8, 9, 3) for gap in GAPS),
        ],
    ),
}


@pytest.mark.parametrize("together", [True, False], ids=["in one epoch", "one by one"])
@pytest.mark.parametrize("case", CASES)
def test_the_definition_decides(case, together, flows, tmp_path):
    query, events, wanted = CASES[case]
    events = sorted(events, key=lambda event: event[1]["dateTime"])
    run = Run(flows[query], tmp_path)
    for some in [events] if together else [[event] for event in events]:
        run.epoch(epoch(*some))
    found = run.answer(query)
    width = len(wanted[0])
    assert [row[:width] for row in found] == reference.comparable(wanted)
    assert found == reference.answer(query, *tables(events))


KIND_AT = {2: 1, 7: 2}
WIDTHS = {"q5": SECOND, "nbq5": 10 * SECOND, "q7": MINUTE, "q8": HALF_DAY, "nbq8": HALF_DAY, "nbqx": 4 * HOUR}
ON_BOUNDARIES = [
    *((query, 7) for query in ("q5", "nbq5", "q7", "nbqx")),
    *((query, 2) for query in ("q8", "nbq8", "nbqx")),
]


@pytest.mark.parametrize(("query", "place"), ON_BOUNDARIES)
def test_windows_begin_with_bids_and_auctions_too(query, place, flows, tmp_path):
    """As they are, windows begin with a person; moved by some events, with a bid (7) or an auction (2)."""
    shape, kind, many = shifted(shape_of(query), place), KIND_AT[place], 8_000 if query == "nbqx" else 30_000
    times = whole(shape, many)[kind].column("dateTime").cast(pa.int64()).to_numpy()
    assert (times % WIDTHS[query] == 0).any()
    run = Run(flows[query], tmp_path)
    for part in epochs(shape, many, many // 7):
        run.epoch(part)
    assert run.answer(query) == reference.answer(query, *whole(shape, many))
