"""The examples of docs/queries.md run as they stand, one after the other, and do what the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "queries.md"
BIDS = [
    (7, 1, 10, "00:00:10"),
    (8, 2, 5, "00:00:20"),
    (7, 3, 8, "00:00:50"),
    (7, 1, 30, "00:01:10"),
    (8, 3, 6, "00:03:00"),
]
AUCTIONS = [(7, 100, "00:00:00"), (8, 200, "00:00:05")]


def written(folder, names, rows):
    """A file of JSON lines, in a folder of its own."""
    folder.mkdir()
    lines = (json.dumps(dict(zip(names, (*row[:-1], f"2026-01-01T{row[-1]}Z"), strict=True))) for row in rows)
    (folder / "some.json").write_text("\n".join(lines))


@pytest.fixture
def guide(spark, tmp_path, monkeypatch):
    """What the page has defined by its end."""
    written(tmp_path / "bids", ("auction", "bidder", "price", "at"), BIDS)
    written(tmp_path / "auctions", ("id", "category", "at"), AUCTIONS)
    monkeypatch.chdir(tmp_path)
    names = {"SPARK": spark}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        # The session of all tests is there already; relative paths are the driver's, not Spark's.
        text = block.replace('sterna.session("local[2]")', "SPARK")
        for name in ("bids", "auctions", "out", "checkpoint"):
            text = text.replace(f'("{name}")', f"({str(tmp_path / name)!r})")
            text = text.replace(f'="{name}"', f"={str(tmp_path / name)!r}")
        exec(compile(text, str(PAGE), "exec"), names)
    return names


def told(rows, *names):
    return sorted(tuple(row[name] for name in names) for row in rows)


def test_every_stream_of_the_page_gives_what_it_says(guide, run, tmp_path):
    assert guide["query"].state("averages").count() == 2
    out = guide["spark"].read.parquet(str(tmp_path / "out")).collect()
    assert told(out, "category", "average") == [(100, 16.0), (200, 5.5)]

    def given(name, **options):
        return run(guide[name], checkpoint=str(tmp_path / name), **options)

    assert told(given("highest"), "auction", "n", "price") == [(7, 3, 30), (8, 2, 6)]
    assert told(given("raised"), "auction", "price") == [(7, 10), (7, 30), (8, 5), (8, 6)]
    counted = given("counted", watermark_delay="1 second", at_end="flush")
    assert sorted((row["auction"], row["minute"].minute, row["n"]) for row in counted) == [
        (7, 0, 2),
        (7, 1, 1),
        (8, 0, 1),
        (8, 3, 1),
    ]
    best = given("best", watermark_delay="1 second", at_end="flush")
    assert sorted((row["auction"], row["window_start"].second, row["n"]) for row in best) == [
        (7, second, 2) for second in range(0, 60, 10)
    ]
    guide["some"] = guide["some"].key_by("bidder").aggregate(n=guide["sterna"].count())
    assert told(given("some"), "bidder", "n") == [(1, 2), (2, 1)]
    guide["cents"] = guide["cents"].key_by("bidder").aggregate(price=guide["sterna"].sum("price"))
    assert told(given("cents"), "bidder", "price") == [(1, 4000), (2, 500), (3, 1400)]
