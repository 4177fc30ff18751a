"""Worker counts of the past, and the matrix learnt from them."""

from __future__ import annotations

import math
import re
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna.errors import InvalidInput
from sterna.planning.history import changes, changes_of_query, counts, series
from sterna.planning.matrix import Matrix
from sterna.targets import rescale
from twin import small


def written(tmp_path, text):
    path = tmp_path / "trace.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "times",
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z", "2026-01-01T00:10:00Z"),
        ("2026-01-01 00:00:00", "2026-01-01 00:05:00", "2026-01-01 00:10:00"),
        ("0", "300", "600"),
        ("0.1", "0.2", "0.3"),
        ("1767225600.1", "1767225600.2", "1767225600.3"),
        ("1767225600.0001", "1767225600.0002", "1767225600.0003"),
        ("2026-01-01T00:00:00.000Z", "2026-01-01T00:05:00.003Z", "2026-01-01T00:10:00.001Z"),
    ],
)
def test_counts_at_a_constant_step_are_read_in_order(tmp_path, times):
    path = written(
        tmp_path, "when,workers\n" + "".join(f"{one},{n}\n" for one, n in zip(times, (2, 3, 2), strict=True))
    )
    assert counts(path) == [2, 3, 2]
    assert counts(path, time="when", count="workers") == [2, 3, 2]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["0,2", "1,2", "2,3", "4,3"], "lines 4 and 5: from 2 to 4 there is a gap: 2 instead of 1"),
        (
            ["2026-01-01 00:00,2", "2026-01-01 01:00,2", "2026-01-01 02:00,2", "2026-01-01 05:00,2"],
            "from 2026-01-01 02:00 to 2026-01-01 05:00 there is a gap: 3:00:00 instead of 1:00:00",
        ),
        (["0,2", "1,2", "2,2", "2.5,3"], "the step is shorter"),
        (["0,2", "600,2", "900.2,2", "1200.1,3"], "from 0 to 600 there is a gap: 0:10:00 instead of"),
        (["0,2", "1,2", "2,3", "3.002,3"], "there is a gap: 1.002 instead of 1"),
        (["0,2", "1,2", "1,2"], "time does not go forward"),
        (["0,2", "1,nan"], "line 3: 'nan': it must be a number"),
        (["0,2", "1,-1"], "'-1': it must be a number from 0 on"),
        (["", "0,2", "", "1,x"], "line 5: 'x': it must be a number from 0 on"),
        (["0,2", "", "1,2.5"], "line 4: a worker count must be a whole number"),
        (["0,2", "1,2", "2,2", "", "", "9,3"], "lines 4 and 7: from 2 to 9 there is a gap"),
        (["0,2", "1,2", "2,2", "1e300,3"], "there is a gap: 1e+300 instead of 1"),
        (["0,2", "1,0"], "whole number from 1 to 4096, not 0"),
        (["0,2", "1,2.5"], "whole number from 1 to 4096, not 2.5"),
        (["0,2", "1,1e300"], "whole number from 1 to 4096, not 1e+300"),
        (["0,2", "2015-01-01,2"], "times must be all dates, or all numbers"),
        (["0,2", "noon,2"], "'noon' is no time"),
        (["0,2", "1"], "line 3: 1 entries"),
        ([], "at least one line"),
    ],
)
def test_what_is_wrong_in_a_history_is_named(tmp_path, lines, words):
    path = written(tmp_path, "\n".join(["time,count", *lines]) + "\n")
    with pytest.raises(InvalidInput, match=re.escape(words)):
        counts(path)


def test_columns_that_are_not_there(tmp_path):
    path = written(tmp_path, "time,count\n0,1\n")
    with pytest.raises(InvalidInput, match="no column 'load', only 'time', 'count'"):
        series(path, value="load")
    with pytest.raises(InvalidInput, match="it has only 'count'"):
        counts(written(tmp_path, "count\n1\n"))
    with pytest.raises(InvalidInput, match="can't be read"):
        counts(tmp_path / "nowhere.csv")


@given(st.lists(st.integers(1, 5), min_size=2, max_size=40))
def test_a_learnt_matrix_says_how_often_each_count_followed_each(history):
    pairs = changes(history)
    if not pairs:
        with pytest.raises(InvalidInput, match="no change"):
            Matrix.learnt(pairs)
        return
    matrix = Matrix.learnt(pairs)
    for count in matrix.counts:
        after = [b for a, b in pairs if a == count]
        for other, chance in matrix.following(count).items():
            if after:
                assert chance == pytest.approx(after.count(other) / len(after))
        assert matrix.staying(count) == 0
        assert sum(matrix.following(count).values()) == pytest.approx(1)


def test_a_count_that_nothing_followed_goes_to_its_neighbours():
    matrix = Matrix.learnt([(2, 3), (3, 2)], counts=[2, 3, 4, 5])
    assert matrix.following(4) == {3: 0.5, 5: 0.5}
    assert matrix.following(5) == {4: 1.0}
    assert Matrix.learnt([], counts=[3]).rows.tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("counts", "rows", "words"),
    [
        ([2, 3], [[0.5, 0.4], [1, 0]], "follows 2 workers add up to 0.9"),
        ([2, 3], [[0, 0.99999995], [1, 0]], "follows 2 workers add up to 0.99999995, not to 1"),
        ([2, 3], [[0, 1], [1 + 2e-9, 0]], "follows 3 workers add up to 1.000000002, not to 1"),
        ([2, 3], [[0, 1], [math.nan, 1]], "2 workers after 3 is nan"),
        ([2, 3], [[-0.5, 1.5], [1, 0]], "2 workers after 2 is -0.5"),
        ([2, 3], [[math.inf, 0], [1, 0]], "2 workers after 2 is inf"),
        ([2, 3], [[1.0]], "matrix of 2 rows and columns"),
        (
            [2, 3],
            [[1, 0], [1]],
            "matrix of 2 rows and columns; the row of what follows 3 workers has 1 entries",
        ),
        ([2, 3], [[1, 0], 1], "what follows 3 workers is 1: it must be a list"),
        ([2, 3], np.array(1.0), r"the matrix is array\(1\.\): it must be a list"),
        ([2, 3], np.array([0.5, 0.5]), r"what follows 2 workers is .*0\.5.*: it must be a list"),
        ([2, 3], [["a", 0], [1, 0]], "2 workers after 2 is 'a': it must be a number from 0 to 1"),
        ([2, 3], [["0", "1"], ["1", "0"]], "2 workers after 2 is '0'"),
        ([2, 3], [[0, 1], [1, None]], "3 workers after 3 is None"),
        ([2, 3], [[0, 1], [1, [0]]], r"3 workers after 3 is \[0\]"),
        ([2, 3], [[0, 1], [1, np.zeros(2)]], "3 workers after 3 is array"),
        ([2, 3], [[0, 1], [1, 1j]], "3 workers after 3 is 1j"),
        ([2, 3], np.array([[0, 1], [1 + 1j, 0]]), r"2 workers after 2 is 0j"),
        ([2, 3], [[0, 1], [1, np.complex64(0)]], "3 workers after 3 is 0j"),
        ([2, 3], np.array([[0, 1.0], [-1, 2]]), "2 workers after 3 is -1.0"),
        ([2, 3], np.ma.array([[0, 1], [1, 0]], mask=[[0, 0], [0, 1]]), "3 workers after 3 is masked"),
        ([2, 3], [[0, 1], np.ma.array([1, 0], mask=[1, 0])], "2 workers after 3 is masked"),
        ([3, 2], [[0, 1], [1, 0]], "ascending"),
        ([2, 2], [[0, 1], [1, 0]], "ascending"),
        ([0, 2], [[0, 1], [1, 0]], "whole number from 1 on, not 0"),
        ([], [], "ascending"),
    ],
)
def test_a_matrix_that_is_none_is_refused(counts, rows, words):
    with pytest.raises(InvalidInput, match=words):
        Matrix.of(counts, rows)


def test_counts_that_a_matrix_does_not_know():
    with pytest.raises(InvalidInput, match="has 5 workers, which is none of the counts 2, 3"):
        Matrix.learnt([(2, 5)], counts=[2, 3])
    with pytest.raises(InvalidInput, match="knows 2, 3 workers, and not 4"):
        Matrix.learnt([(2, 3)]).following(4)


def test_a_query_remembers_its_own_changes(tmp_path):
    twin = small.start(small.counts(), tmp_path / "checkpoint", bins=16, workers=2, clock=time.time)
    try:
        twin.epoch(small.rows(*range(40)))
        for count in (3, 2, 4):
            twin.migrate(rescale(count))
            for _ in range(3):
                twin.epoch(small.rows(*range(40)))
        twin.migrate({0: 1})
        twin.epoch(small.rows(*range(40)))
    finally:
        twin.close()
    found = changes_of_query(str(tmp_path / "checkpoint"))
    assert found == [(2, 3), (3, 2), (2, 4)]
    assert changes_of_query(str(tmp_path / "checkpoint"), "counts") == found


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("time,count\n0,2\n1,3\n", encoding="utf-8-sig")
    assert counts(path, time="time") == [2, 3]


@pytest.mark.parametrize(
    ("learnt", "words"),
    [
        ({"changes": [(2, 3), (2,)]}, r"change 1 is \(2,\): it must be two worker counts"),
        ({"changes": [(2, 3, 4)]}, "change 0 is"),
        ({"changes": [3]}, "change 0 is 3: it must be a list"),
        ({"changes": 3}, "changes is 3: it must be a list"),
        ({"changes": [(2, "3")]}, "a worker count of change 0 must be a whole number from 1 on, not '3'"),
        ({"changes": [(2, 3)], "counts": 3}, "counts is 3: it must be a list"),
        ({"changes": [(2, 3)], "counts": "23"}, "counts is '23': it must be a list"),
    ],
)
def test_what_nothing_can_be_learnt_from_is_named(learnt, words):
    with pytest.raises(InvalidInput, match=words):
        Matrix.learnt(**learnt)


def test_counts_may_come_one_by_one_and_from_numpy():
    wanted = Matrix.learnt([(2, 3)], counts=[2, 3])
    for counts_ in (iter([2, 3]), np.array([2, 3]), range(2, 4)):
        assert Matrix.learnt([(2, 3)], counts=counts_).counts == wanted.counts == (2, 3)
    assert Matrix.learnt(np.array([[2, 3]])).counts == (2, 3)


def test_a_matrix_may_be_any_kind_of_array():
    wanted = [[0.0, 1.0], [0.5, 0.5]]
    for rows in (wanted, np.array(wanted, np.float32), np.ma.array(wanted), ((0, 1), (0.5, np.float64(0.5)))):
        assert Matrix.of([2, 3], rows).rows.tolist() == wanted
