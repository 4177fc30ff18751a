"""Values made beforehand: on Spark as without it, and as they were when they are read again."""

from __future__ import annotations

import numpy as np
import pytest

from sterna.errors import InvalidInput
from sterna.planning import Unbalanceable
from sterna.planning.inputs import Inputs
from sterna.planning.matrix import Matrix
from sterna.planning.precompute import precompute
from sterna.planning.search import Effort
from sterna.planning.stored import FORMAT
from sterna.planning.values import Values

MATRIX = Matrix.of([2, 3, 4], [[0, 0.7, 0.3], [0.5, 0.1, 0.4], [0, 1, 0]])
SIZES, LOADS = list(range(1, 13)), [5, 4] * 6
ROUGH = Effort(pool=16, exact=0, rounds=2, looked_at=8)


def same(one, other):
    assert not one.inputs.differences(other.inputs)
    assert one.found.exact == other.found.exact
    for name in ("candidates", "values", "prices"):
        ours, theirs = getattr(one.found, name), getattr(other.found, name)
        assert ours.keys() == theirs.keys()
        for count, part in ours.items():
            assert part.tolist() == theirs[count].tolist()
    return True


@pytest.mark.parametrize("effort", [None, ROUGH], ids=["exact", "candidates"])
def test_spark_finds_the_same_values(spark, effort):
    told = []
    here = precompute(SIZES, LOADS, MATRIX, 0.5, 0.8, effort=effort)
    there = precompute(SIZES, LOADS, MATRIX, 0.5, 0.8, effort=effort, spark=spark, tell=told.append)
    assert same(here, there)
    assert here.found.exact == (effort is None)
    assert told == sorted(told)
    assert told[-1] == 1.0


@pytest.mark.parametrize("effort", [None, ROUGH], ids=["exact", "candidates"])
def test_values_are_read_as_they_were_written(tmp_path, effort):
    values = precompute(SIZES, LOADS, MATRIX, 0.5, 0.8, effort=effort)
    values.save(tmp_path / "values.npz")
    assert same(Values.load(tmp_path / "values.npz", values.inputs), values)
    assert [path.name for path in tmp_path.iterdir()] == ["values.npz"]
    # Only shares matter: the same state in other units.
    Values.load(tmp_path / "values.npz", Inputs.of([10 * size for size in SIZES], LOADS, MATRIX, 0.5, 0.8))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sizes": [26, *SIZES[1:]]}, "bin 0 has 1.2821% of all state, not 25.2427%"),
        ({"loads": [4, 5] * 6}, "of all load, not"),
        ({"sizes": [1] * 10, "loads": [1] * 10}, "there are 12 bins, not 10"),
        ({"tau": 0.6}, "tau is 0.5, not 0.6"),
        ({"gamma": 0.7}, "gamma is 0.8, not 0.7"),
        (
            {"matrix": Matrix.learnt([(2, 3), (3, 4)])},
            "workers after 2 is 0.3, not 0|after 3 is|after 2 is 0.7, not 1",
        ),
        ({"matrix": Matrix.learnt([(2, 3), (3, 2)])}, "worker counts are 2, 3, 4, not 2, 3"),
    ],
)
def test_values_for_something_else_are_refused(tmp_path, change, words):
    wanted = {"sizes": SIZES, "loads": LOADS, "matrix": MATRIX, "tau": 0.5, "gamma": 0.8}
    precompute(**wanted).save(tmp_path / "values.npz")
    with pytest.raises(InvalidInput, match=words):
        Values.load(tmp_path / "values.npz", Inputs.of(**wanted | change))


def test_state_may_differ_as_much_as_is_tolerated(tmp_path):
    precompute(SIZES, LOADS, MATRIX, 0.5, 0.8).save(tmp_path / "values.npz")
    shifted = Inputs.of([2, *SIZES[1:]], LOADS, MATRIX, 0.5, 0.8)
    with pytest.raises(InvalidInput, match=r"bin 0 has 1\.2821% of all state, not 2\.5316%"):
        Values.load(tmp_path / "values.npz", shifted, tolerance=0.01)
    Values.load(tmp_path / "values.npz", shifted, tolerance=0.02)


def test_a_file_that_is_something_else_is_refused(tmp_path):
    path = tmp_path / "values.npz"
    values = precompute(SIZES, LOADS, MATRIX, 0.5, 0.8)
    values.save(path)
    whole = path.read_bytes()
    with np.load(path) as file:
        arrays = dict(file)
    for broken in (b"", b"no archive", whole[: len(whole) // 2]):
        path.write_bytes(broken)
        with pytest.raises(InvalidInput, match="can't be read as precomputed values"):
            Values.load(path)
    np.savez(path, **arrays | {"format": FORMAT + 1})
    with pytest.raises(
        InvalidInput, match=f"in format {FORMAT + 1}, and this version of Sterna reads format {FORMAT}"
    ):
        Values.load(path)
    np.savez(path, **{name: array for name, array in arrays.items() if name != "values-3"})
    with pytest.raises(InvalidInput, match="values-3"):
        Values.load(path)
    np.savez(path, other=1)
    with pytest.raises(InvalidInput, match="not a file of precomputed values"):
        Values.load(path)
    with pytest.raises(InvalidInput, match="nowhere"):
        Values.load(tmp_path / "nowhere.npz")
    with pytest.raises(InvalidInput, match="can't be written"):
        values.save(tmp_path / "nowhere" / "values.npz")


@pytest.mark.parametrize("gamma", [-0.1, 1, 1.5, float("nan"), "much", True])
def test_a_discount_that_is_none_is_refused(gamma):
    with pytest.raises(InvalidInput, match="gamma is"):
        precompute(SIZES, LOADS, MATRIX, 0.5, gamma)


def test_a_balance_that_a_count_can_not_have_is_refused():
    with pytest.raises(Unbalanceable, match="into 4 intervals") as refused:
        precompute([1] * 6, [1] * 6, MATRIX, 0.1, 0.5)
    assert precompute([1] * 6, [1] * 6, MATRIX, refused.value.least, 0.5)


def test_the_balance_that_is_named_is_enough_for_all_counts():
    matrix = Matrix.learnt([], range(8, 17))
    with pytest.raises(Unbalanceable) as refused:
        Inputs.of([1] * 60, [1] * 60, matrix, 0, 0.8)
    assert Inputs.of([1] * 60, [1] * 60, matrix, refused.value.least, 0.8).bins == 60


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"tau": "least"}, "tau is 'least': it must be a number from 0 on; values hold for one balance"),
        ({"sizes": [], "loads": []}, "there are no sizes: there must be a bin at least"),
        ({"sizes": [1, float("nan"), 1], "loads": [1] * 3}, "the size of bin 1 is nan"),
        ({"loads": LOADS[1:]}, "there are 12 bins and 11 loads"),
        ({"matrix": [[0, 1], [1, 0]]}, "it must be a Matrix"),
        ({"matrix": Matrix((2, 3), np.array([[0, 2.0], [1, 0]]))}, "what follows 2 workers add up to 2"),
        ({"matrix": Matrix.of([2, 13], [[0, 1], [1, 0]])}, "the worker count 13 is more than the 12 bins"),
    ],
)
def test_what_is_wrong_with_the_inputs_is_named(wrong, words):
    right = {"sizes": SIZES, "loads": LOADS, "matrix": MATRIX, "tau": 0.5, "gamma": 0.8}
    with pytest.raises(InvalidInput, match=words):
        precompute(**right | wrong)
