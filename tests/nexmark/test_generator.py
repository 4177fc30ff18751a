"""Events are what the benchmark's definition says, whichever way they are asked for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna.errors import InvalidInput
from sterna.nexmark import AUCTION, BID, PERSON, Shape, generate
from sterna.nexmark.generator import kind_of, last_auction
from sterna.nexmark.packing import packed, rows

MANY = generate(Shape(), 0, 200_000)


def ints(batch, name):
    return batch.column(name).cast(pa.int64()).to_numpy()


@given(st.integers(0, 10**12), st.integers(0, 400), st.integers(0, 400), st.integers(0, 5))
def test_any_range_can_be_made_again_in_parts(start, first, second, seed):
    shape = Shape(seed=seed, disorder=7)
    all_of_it = generate(shape, start, start + first + second).batches
    parts = (
        generate(shape, start, start + first).batches,
        generate(shape, start + first, start + first + second).batches,
    )
    for whole, *halves in zip(all_of_it, *parts, strict=True):
        assert pa.concat_batches(halves).equals(whole)


def test_of_fifty_events_one_is_a_person_and_three_are_auctions():
    assert [batch.num_rows for batch in MANY.batches] == [4_000, 12_000, 184_000]
    assert [batch.schema for batch in MANY.batches] == [PERSON, AUCTION, BID]
    assert kind_of(np.arange(54)).tolist() == [0, 1, 1, 1] + [2] * 46 + [0, 1, 1, 1]


def test_ids_are_consecutive_from_1000():
    assert ints(MANY.persons, "id").tolist() == list(range(1000, 5_000))
    assert ints(MANY.auctions, "id").tolist() == list(range(1000, 13_000))


def test_bids_are_on_auctions_that_are_open_or_about_to_come():
    numbers = np.arange(200_000)
    last = last_auction(numbers[numbers % 50 >= 4]) + 1000
    auction = ints(MANY.bids, "auction")
    assert (auction <= last + 10).all()
    hot = auction % 100 == 0
    assert 0.45 < hot.mean() < 0.56
    ago = (last - auction)[~hot]
    assert (ago.min(), ago.max()) == (-10, 100)
    assert (auction[hot] >= (last - 99)[hot] - (last - 99)[hot] % 100).all()


@pytest.mark.parametrize("in_flight", [10, 1000])
def test_ordinary_bids_reach_back_as_many_auctions_as_are_open(in_flight):
    batch = generate(Shape(in_flight=in_flight), 100_000, 200_000).bids
    numbers = np.arange(100_000, 200_000)
    ago = last_auction(numbers[numbers % 50 >= 4]) + 1000 - ints(batch, "auction")
    assert ago[ints(batch, "auction") % 100 != 0].max() == in_flight


def test_sellers_and_bidders_are_persons_three_of_four_times_hot_ones():
    newest = 1000 + np.arange(200_000) // 50
    kind = kind_of(np.arange(200_000))
    for batch, name, code, rest in ((MANY.auctions, "seller", 1, 0), (MANY.bids, "bidder", 2, 1)):
        person = ints(batch, name)
        assert (person >= 1000).all()
        assert (person <= newest[kind == code] + 10).all()
        hot = person % 100 == rest
        assert 0.7 < hot.mean() < 0.8
        # The others are any of the thousand newest, or of the next ten.
        ago = (newest[kind == code] - person)[~hot]
        assert -10 <= ago.min() < 0
        assert 990 < ago.max() <= 999


def test_prices_are_spread_evenly_by_their_logarithm():
    logs = np.log10(ints(MANY.bids, "price") / 100)
    assert logs.min() >= 0
    assert logs.max() <= 6
    counts = np.histogram(logs, bins=6, range=(0, 6))[0] / len(logs)
    assert np.abs(counts - 1 / 6).max() < 0.01


def test_auctions_expire_after_they_begin_and_as_many_are_open_as_was_asked_for():
    begin, end = ints(MANY.auctions, "dateTime"), ints(MANY.auctions, "expires")
    assert (end > begin).all()
    at = begin[len(begin) // 2]
    assert 70 < ((begin <= at) & (end > at)).sum() < 130
    # Open for a millisecond and up to twice the average, evenly: 100 auctions begin in a sixth of a second.
    longest = 2e6 * 100 * 50 / 3 / 10_000
    took = end - begin - 1000
    assert took.min() < longest / 100
    assert 0.99 * longest < took.max() < longest
    assert took.mean() == pytest.approx(longest / 2, rel=0.02)
    more = ints(MANY.auctions, "reserve") - ints(MANY.auctions, "initialBid")
    assert more.min() >= 100
    assert np.abs(np.histogram(np.log10(more / 100), 6, (0, 6))[0] / len(more) - 1 / 6).max() < 0.02
    assert set(MANY.auctions.column("category").to_pylist()) == {10, 11, 12, 13, 14}


def test_time_follows_the_rate_and_the_dilation():
    shape = Shape(rate=1000.0, dilation=60.0, base=0)
    assert shape.times(np.array([0, 1, 1000])).tolist() == [0, 60_000, 60_000_000]


def test_out_of_order_events_stay_within_their_group():
    times = Shape(rate=1e6, base=0, disorder=10).times(np.arange(30))
    assert times.tolist() == [n // 10 * 10 + 953 * n % 10 for n in range(30)]
    assert sorted(times[:10].tolist()) == list(range(10))
    assert times[:10].tolist() != list(range(10))


def test_another_seed_gives_other_events_with_the_same_ids():
    other = generate(Shape(seed=1), 0, 200_000)
    assert other.persons.column("id").equals(MANY.persons.column("id"))
    assert not other.bids.column("price").equals(MANY.bids.column("price"))


def test_records_are_about_as_large_as_rhinos():
    for batch, size in zip(MANY.batches, (206, 269, 32), strict=True):
        assert batch.nbytes / batch.num_rows == pytest.approx(size, rel=0.2)


def test_packed_events_are_read_back_in_place():
    row = packed(MANY)
    assert row.num_rows == 1
    for name, batch in zip(row.schema.names, MANY.batches, strict=True):
        assert pa.ipc.read_record_batch(row.column(name)[0].as_buffer(), batch.schema).equals(batch)


def test_a_kind_that_is_not_asked_for_is_not_there():
    bids = generate(Shape(), 0, 100, kinds=["bid"])
    assert [batch.num_rows for batch in bids.batches] == [0, 0, 92]
    assert packed(bids).column("person").null_count == 1


def test_rows_are_in_the_order_of_events():
    numbers = np.arange(100, 200)
    table = rows(numbers, generate(Shape(), 100, 200))
    assert table.column("kind").to_pylist()[:5] == ["person", "auction", "auction", "auction", "bid"]
    assert pc.all(pc.greater_equal(table.column("dateTime")[1:], table.column("dateTime")[:-1])).as_py()
    assert table.column("bid").null_count == 8


@pytest.mark.parametrize(
    "wrong",
    [
        {"rate": 0},
        {"rate": float("nan")},
        {"rate": float("inf")},
        {"dilation": -1},
        {"dilation": float("inf")},
        {"seed": -1},
        {"seed": 2**63},
        {"in_flight": 0},
        {"disorder": 0},
        {"disorder": 1906},
        {"disorder": 2**63},
        {"in_flight": 10**18},
        {"rate": 1e-9},
        {"base": 2**63},
        {"base": -(2**63)},
        {"base": 253_402_300_799_000_000},
        {"dilation": 1e300},
    ],
)
def test_a_shape_that_can_not_be_is_refused(wrong):
    with pytest.raises(InvalidInput):
        Shape(**wrong)


@given(
    st.floats(1e-12, 1e12),
    st.integers(0, 2**58),
    st.floats(1e-6, 1e12),
    st.integers(1, 2**62),
    st.sampled_from([1, 7, 10**6, 10**15]),
    st.integers(1, 2**53),
)
def test_what_is_not_refused_fits(rate, base, dilation, in_flight, disorder, stop):
    try:
        shape = Shape(rate, 0, base, dilation, in_flight, disorder)
        auctions = generate(shape, max(0, stop - 60), stop).auctions
    except InvalidInput:
        return
    begin, end = ints(auctions, "dateTime"), ints(auctions, "expires")
    assert (begin >= base).all()
    assert (end > begin).all()
    assert end.max(initial=0) < 253_402_300_800_000_000


def test_events_that_are_too_many_are_refused_and_not_made_with_times_that_overflow():
    with pytest.raises(InvalidInput, match="events is"):
        generate(Shape(), 10**17, 10**17 + 50)


def test_there_is_no_event_before_the_first():
    with pytest.raises(InvalidInput, match="no event -5"):
        generate(Shape(), -5, 10)
