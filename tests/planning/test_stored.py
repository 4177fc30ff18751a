"""Files of values that are damaged, or hold something else than they should.

They are refused, with what is wrong, or as good as new.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sterna.errors import InvalidInput
from sterna.planning import mtm, precompute
from sterna.planning.matrix import Matrix
from sterna.planning.search import Effort
from sterna.planning.values import Values

MATRIX = Matrix.of([2, 3, 4], [[0, 0.7, 0.3], [0.5, 0.1, 0.4], [0, 1, 0]])
SIZES, LOADS = list(range(1, 25)), [1] * 24
ROUGH = Effort(pool=8, exact=0, rounds=2, looked_at=4)


def planned(values):
    return mtm([0] * 12 + [1] * 12, SIZES, LOADS, 3, values).assignment.tolist()


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("values") / "values.npz"
    precompute(SIZES, LOADS, MATRIX, 0.5, 0.8, effort=ROUGH).save(path)
    return path


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_flipped_bits_are_noticed_or_make_no_difference(original, tmp_path, data):
    raw = bytearray(original.read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(raw) * 8 - 1), min_size=1, max_size=4)):
        raw[place // 8] ^= 1 << place % 8
    path = tmp_path / "damaged.npz"
    path.write_bytes(raw)
    refused, values = None, None
    try:
        values = Values.load(path)
    except InvalidInput as error:
        refused = str(error)
    if values is None:
        assert str(path) in refused
    else:
        assert planned(values) == planned(Values.load(original))


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(0, 1, exclude_max=True))
def test_a_file_that_was_cut_off_is_refused(original, tmp_path, part):
    raw = original.read_bytes()
    path = tmp_path / "short.npz"
    path.write_bytes(raw[: int(part * len(raw))])
    with pytest.raises(InvalidInput, match=r"short.npz can't be read as precomputed values: ."):
        Values.load(path)


def changed(row, column, value):
    def change(array):
        copy = array.copy()
        copy[row, column] = value
        return copy

    return change


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("candidates-4", lambda rows: rows + 100, "row 0 is .*: cuts must ascend from 0 to 24"),
        ("candidates-3", changed(1, 1, 23), "candidates-3, row 1 is .*: cuts must ascend"),
        ("candidates-3", changed(2, 3, 25), "candidates-3, row 2"),
        ("candidates-3", lambda rows: rows[:, ::-1], "cuts must ascend"),
        ("candidates-3", lambda rows: rows.astype(float), "candidates-3 must be whole numbers, any × 4"),
        ("candidates-3", lambda rows: rows[:, :-1], r"any × 4 of them; it is int64, \d+ × 3 of them"),
        ("candidates-3", lambda rows: rows[:0], "candidates-3 is empty"),
        ("values-3", lambda values: values * np.nan, "values-3, entry 0 is nan"),
        ("values-3", lambda values: values - 9, "entry 0 is -.* a number from 0 to 5"),
        ("values-3", lambda values: values + 9, "with a gamma of 0.8 it must be a number from 0 to 5"),
        ("values-3", lambda values: values[:-2], r"values-3 must be floating-point numbers, \d+ of them"),
        ("values-3", lambda values: values.astype(str), "values-3 must be floating-point numbers"),
        ("prices-3", lambda prices: prices[:-3], "prices-3 must be floating-point numbers, 25 × 12 of them"),
        ("prices-4", changed(3, 2, np.inf), "prices-4, row 3, column 2 is inf"),
        ("matrix", lambda rows: rows * 2, "add up to 2, not to 1"),
        ("matrix", lambda rows: rows[0], "matrix must be floating-point numbers, any × any"),
        ("counts", lambda counts: counts[::-1], "ascending"),
        ("counts", lambda counts: counts.astype(str), "counts must be whole numbers"),
        ("tau", lambda _: np.nan, "tau is nan"),
        ("loads", lambda loads: loads * ([9] + [0] * 23), "values.npz: no partitioning into 4 intervals"),
        ("gamma", lambda _: 1.0, "gamma is 1.0"),
        ("gamma", lambda _: [0.5, 0.5], "gamma must be floating-point numbers, one of them"),
        ("sizes", lambda sizes: sizes * np.nan, "the size of bin 0 is nan"),
        ("sizes", lambda sizes: sizes[:0], "there are no sizes"),
        ("loads", lambda loads: loads[:-1], "there are 24 bins and 23 loads"),
        ("loads", lambda loads: loads.astype(complex), "loads must be floating-point numbers"),
        ("exact", lambda _: "yes", "exact must be truth values, one of them"),
        ("format", lambda _: "1", "format must be whole numbers"),
        ("format", lambda _: 2, "it is in format 2, and this version of Sterna reads format 1"),
        ("kind", lambda _: "something else", "not a file of precomputed values"),
    ],
)
def test_what_is_wrong_with_an_array_is_named(original, tmp_path, name, change, words):
    with np.load(original) as file:
        arrays = dict(file)
    path = tmp_path / "values.npz"
    np.savez(path, **arrays | {name: np.asarray(change(arrays[name]))})
    with pytest.raises(InvalidInput, match=words) as refusal:
        Values.load(path)
    assert str(path) in str(refusal.value)


@pytest.mark.parametrize("name", ["sizes", "exact", "format", "candidates-2", "values-3", "prices-4"])
def test_an_array_that_is_missing_is_named(original, tmp_path, name):
    with np.load(original) as file:
        arrays = {one: array for one, array in file.items() if one != name}
    np.savez(tmp_path / "values.npz", **arrays)
    with pytest.raises(InvalidInput, match=f"{name} is missing"):
        Values.load(tmp_path / "values.npz")


def test_what_is_no_archive_of_arrays_is_refused(tmp_path):
    np.save(tmp_path / "array.npy", np.ones(3))
    np.savez(tmp_path / "objects.npz", kind=np.array([{}], object))
    for path in ("array.npy", "objects.npz", "", "nowhere.npz"):
        with pytest.raises(InvalidInput, match="can't be read as precomputed values"):
            Values.load(tmp_path / path)


@pytest.mark.parametrize("tolerance", [float("nan"), -1, "much", None])
def test_a_tolerance_that_is_none_is_refused(original, tolerance):
    with pytest.raises(InvalidInput, match=r"tolerance is .*: it must be a number from 0 on"):
        Values.load(original, tolerance=tolerance)
    with pytest.raises(InvalidInput, match="tolerance is"):
        mtm([0] * 12 + [1] * 12, SIZES, LOADS, 3, Values.load(original), tolerance=tolerance)
