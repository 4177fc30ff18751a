"""Events as parquet files."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from sterna.errors import InvalidInput
from sterna.nexmark import Shape, generate
from sterna.nexmark.writing import write


def test_files_hold_the_events_and_are_written_once(tmp_path):
    told = []
    assert len(write(Shape(), tmp_path, 2_500, 1_000, told.append)) == 9
    assert told == [1_000, 2_000, 2_500]
    assert write(Shape(), tmp_path, 2_500, 1_000) == []
    bids = pq.read_table(tmp_path / "bid")
    assert (
        bids.sort_by("dateTime")["price"].to_pylist() == generate(Shape(), 0, 2_500).bids["price"].to_pylist()
    )
    times = [path.stat().st_mtime for path in sorted((tmp_path / "bid").iterdir())]
    assert times == sorted(set(times))


def test_more_whole_files_can_be_added(tmp_path):
    write(Shape(), tmp_path, 2_000, 1_000)
    assert len(write(Shape(), tmp_path, 3_000, 1_000)) == 3
    assert pq.read_table(tmp_path / "person").num_rows == 60


def test_a_file_that_was_interrupted_is_not_left_behind(tmp_path, monkeypatch):
    def interrupted(table, path):
        path.write_bytes(b"PAR1")
        raise KeyboardInterrupt

    monkeypatch.setattr(pq, "write_table", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(Shape(), tmp_path, 1_000, 1_000)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["events.json"]


@pytest.mark.parametrize(
    ("shape", "events", "each"),
    [(Shape(seed=1), 2_000, 1_000), (Shape(), 2_000, 500), (Shape(), 2_100, 1_000)],
)
def test_other_events_do_not_go_into_the_same_folder(tmp_path, shape, events, each):
    write(Shape(), tmp_path, 2_000, 1_000)
    with pytest.raises(InvalidInput, match="holds other events"):
        write(shape, tmp_path, events, each)
