"""Where an epoch's rows were, as receipts tell it: small, as fine as the bins, true to what workers got."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna.heat import (
    CELL_BITS,
    Heat,
    count_cells,
    counted,
    decode_heat,
    encode_heat,
    laid_out,
    parted,
    spread,
)
from sterna.keys import Keys, heaviest

COUNTS = st.lists(st.integers(0, 10**9), min_size=1, max_size=64)
EVERYWHERE = np.random.default_rng(1).integers(0, 2**64, 10**6, np.uint64)


def as_before(counts):
    """The text that earlier versions wrote: a level for each of at most 1,024 cells."""
    levels = np.round(np.log2(np.asarray(counts, float) + 1) * 8)
    return base64.b85encode(zlib.compress(np.minimum(levels, 255).astype(np.uint8).tobytes(), 1)).decode()


@given(COUNTS)
def test_heat_survives_a_receipt_to_a_tenth(counts):
    back = decode_heat(encode_heat(np.array(counts)))
    assert back.tolist() == pytest.approx(counts, rel=0.1, abs=0.2)
    assert ((back > 0) == (np.array(counts) > 0)).all()


@given(COUNTS)
def test_heat_of_earlier_versions_can_be_read(counts):
    assert decode_heat(as_before(counts)).tolist() == pytest.approx(counts, rel=0.1, abs=0.2)


def test_there_are_as_many_cells_as_bins_up_to_a_limit():
    hashes = EVERYWHERE[:1000]
    assert [len(count_cells(hashes, bits)) for bits in (0, 1, 12, 14, 20)] == [1, 2, 4096, 16384, 16384]
    assert (count_cells(hashes, 12) == np.bincount(hashes >> np.uint64(52), minlength=4096)).all()


def test_heat_fits_into_a_receipt():
    assert len(encode_heat(count_cells(EVERYWHERE, 20))) < 10_000
    # One of four workers at the default number of bins, whether its bins are neighbours or not.
    bins = EVERYWHERE >> np.uint64(52)
    for mine in (bins < 1024, bins % 4 == 0):
        assert len(encode_heat(count_cells(EVERYWHERE[mine], 12))) < 1500
    few = EVERYWHERE[:10]
    assert len(encode_heat(count_cells(few, CELL_BITS))) < 100


@pytest.mark.parametrize(
    "text", ["00000000", "16:00000000", "x:y", "99999999999:", encode_heat(np.ones(8, int))[:-3]]
)
def test_no_text_of_heat(text):
    with pytest.raises(ValueError, match=r"\w"):
        decode_heat(text)
    heat = Heat()
    heat.learn([{"heat": text, "rows": 5}])
    assert heat.rows(4).tolist() == [0, 0, 0, 0]
    heat.learn([{"heat": text, "rows": 5}, {"heat": encode_heat(np.array([8, 0])), "rows": 8}, {"rows": 0}])
    assert heat.rows(2).tolist() == [8, 0]


@given(st.lists(st.lists(st.integers(0, 10**6), min_size=8, max_size=8), min_size=1, max_size=5))
def test_what_is_known_of_a_worker_adds_up_to_what_it_got(each):
    rows = [sum(one) for one in each]
    table = counted([encode_heat(np.array(one)) if sum(one) else None for one in each], rows)
    assert table.shape == (len(each), 8) or not any(rows)
    assert table.sum(axis=1).tolist() == pytest.approx(rows)
    # In no order, as earlier versions wrote them down: for all together.
    before = counted([as_before(one) for one in each if sum(one)][::-1], rows)
    assert before.shape[0] == 1
    assert before.sum() == pytest.approx(sum(rows))


def test_no_heat_at_all():
    assert counted([], [3, 4]).tolist() == [[0]]
    assert counted([None, None], [0, 0]).sum() == 0


def test_heat_is_an_average_and_follows_the_number_of_bins():
    heat = Heat()
    assert heat.rows(4).tolist() == [0, 0, 0, 0]
    heat.learn([{"heat": encode_heat(np.array([8, 0]))}, {"heat": encode_heat(np.array([0, 16]))}, {}])
    assert heat.rows(4).tolist() == pytest.approx([4, 4, 8, 8], rel=0.1)
    assert heat.rows(1).tolist() == pytest.approx([24], rel=0.1)
    for _ in range(40):
        heat.learn([{"heat": encode_heat(np.array([0, 32])), "rows": 30}])
    assert heat.rows(2).tolist() == pytest.approx([0, 30], rel=0.01, abs=0.1)
    heat.learn([])
    heat.learn([{"heat": None}])
    assert heat.rows(2)[1] > 0


def test_rows_that_were_combined_are_not_averaged_with_others():
    heat, few = Heat(), {"heat": encode_heat(np.array([4, 0])), "rows": 4, "combined": 4}
    heat.learn([{"heat": encode_heat(np.array([0, 1000])), "rows": 1000}])
    heat.learn([few])
    assert heat.rows(2).tolist() == pytest.approx([4, 0])
    heat.learn([few | {"heat": encode_heat(np.array([0, 4]))}])
    assert heat.rows(2).tolist() == pytest.approx([3.2, 0.8])


def test_heavy_keys_come_along_and_are_put_into_their_bins():
    hot = np.uint64(3 << 60)  # in the last quarter of the first quarter
    heat = Heat()
    for _ in range(3):
        hashes = np.concatenate([np.full(900, hot), EVERYWHERE[:400]])
        heat.learn(
            [{"heat": encode_heat(count_cells(hashes, 2)), "rows": 1300, "heavy": heaviest(hashes).to_json()}]
        )
    assert heat.keys.hashes.tolist() == [int(hot)]
    assert heat.keys.rows.tolist() == pytest.approx([900])
    fine = heat.rows(16)
    assert fine.sum() == pytest.approx(1300)
    assert fine[3] == pytest.approx(925, abs=10)
    assert fine[:3].sum() < 100


@given(st.lists(st.floats(0, 1e6), min_size=16, max_size=16), st.integers(0, 8))
def test_spreading_keeps_the_sum(cells, bits):
    assert spread(np.array(cells), 1 << bits).sum() == pytest.approx(sum(cells))


@given(
    st.lists(st.lists(st.floats(0, 1e6), min_size=4, max_size=4), min_size=2, max_size=2),
    st.lists(st.integers(0, 1), min_size=16, max_size=16),
    st.lists(
        st.tuples(st.integers(0, 2**64 - 1), st.floats(0, 1e6)), max_size=5, unique_by=lambda one: one[0]
    ),
)
def test_finer_bins_of_a_worker_get_what_it_got_in_their_cell(cells, owners, keys):
    known = Keys(
        np.array([one for one, _ in keys], np.uint64), np.array([rows for _, rows in keys], np.float64)
    )
    table, owners = np.array(cells), np.array(owners, np.int32)
    fine = laid_out(table, owners, known)
    assert (fine >= 0).all()
    for worker in (0, 1):
        for cell in range(4):
            mine = np.flatnonzero((owners == worker) & (np.arange(16) // 4 == cell))
            if len(mine):
                assert fine[mine].sum() == pytest.approx(table[worker, cell], abs=1e-3)
    assert parted(table.sum(axis=0), 2, known).tolist() == spread(table.sum(axis=0), 2).tolist()
