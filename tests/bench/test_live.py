from __future__ import annotations

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from bench.sample import sample
from sterna.live import LINE_EVERY_S, Sparkline, View, summary_table

SNAPSHOT = {
    "elapsed": 83.2,
    "phase": "fluid, there",
    "latency_now_ms": 185.0,
    "p99_ms": 281.0,
    "max_ms": 2270.0,
    "epoch": 311,
    "rows_per_second": 20_000.0,
    "history": [100.0 + i % 7 * 10 + (900 if 150 < i < 160 else 0) for i in range(240)],
    "workers": [{"worker": i, "bins": 40 - 5 * i, "bytes": 98_000_000} for i in range(4)],
    "migration": {"strategy": "fluid", "bins_done": 12, "bins_total": 32, "bytes": 41_000_000, "eta_s": 3.2},
    "message": "moving 32 bins from worker 0 to worker 3",
}
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


def recorded(width, **options):
    options = {"force_terminal": True, "color_system": None, "legacy_windows": False} | options
    return Console(file=io.StringIO(), width=width, height=40, **options)


def pictures(console):
    """What was drawn, without control sequences, one text a drawing."""
    drawings = re.split(r"(?:\x1b\[2K(?:\x1b\[1A)?)+", console.file.getvalue())
    return [re.sub(r"\r|\x1b\[[0-9;?]*[a-zA-Z]", "", drawing) for drawing in drawings]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_picture_fits_and_says_what_matters(width):
    console = recorded(width)
    with View(console) as view:
        view.update(SNAPSHOT)
    picture = pictures(console)[-1]
    assert max(cell_len(line) for line in picture.splitlines()) <= width
    for said in (
        "fluid, there",
        "1:23",
        "185 ms",
        "2.27 s",
        "worker 3",
        "25 bins",
        "12/32 bins",
        "3.20 s left",
        "█",
    ):
        assert said in picture, said


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_picture_keeps_its_height(width):
    console = recorded(width)
    calm = SNAPSHOT | {"elapsed": 90.0, "migration": None, "workers": SNAPSHOT["workers"][:2], "message": ""}
    long = SNAPSHOT | {"elapsed": 91.0, "message": "a very long message\nwith a line break " * 20}
    with View(console) as view:
        for snapshot in (SNAPSHOT, calm, long, {"elapsed": 92.0}):
            view.update(snapshot)
    heights = {picture.count("\n") for picture in pictures(console)[:-1]}
    assert len(heights) == 1


def test_the_cursor_comes_back_after_ctrl_c():
    console = recorded(80)

    def interrupted():
        with View(console) as view:
            view.update(SNAPSHOT)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    written = console.file.getvalue()
    assert written.count(HIDE) == written.count(SHOW) == 1
    assert written.rindex(SHOW) > written.rindex("worker 3")


def test_more_snapshots_than_anybody_can_see_are_not_drawn_but_the_last_one_is():
    console = recorded(80)
    with View(console) as view:
        for i in range(100):
            view.update(SNAPSHOT | {"elapsed": 1.0 + i / 1000, "message": f"message {i}."})
    drawn = pictures(console)
    assert len(drawn) == 2
    assert "message 99." in drawn[-1]


def test_a_log_gets_a_line_now_and_then_and_at_each_new_phase():
    console = recorded(80, force_terminal=False)
    with View(console) as view:
        for tenth in range(200):
            view.update(
                SNAPSHOT | {"elapsed": tenth / 10, "phase": "steady" if tenth < 120 else "[bold]fluid"}
            )
    lines = console.file.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == ["0:00", "0:05", "0:10", "0:12", "0:17"]
    assert LINE_EVERY_S == 5
    assert "[bold]fluid: latency 185 ms" in lines[-1]
    assert "\x1b" not in console.file.getvalue()


def test_many_workers_are_summed_up():
    console = recorded(80)
    with View(console) as view:
        view.update(SNAPSHOT | {"workers": [{"worker": i, "bins": 2, "bytes": 1000} for i in range(64)]})
    picture = pictures(console)[-1]
    assert "worker 11" in picture
    assert "worker 12" not in picture
    assert re.search(r"52 more +104 bins +52\.0 kB", picture)


@pytest.mark.parametrize(
    "values", [[], [0.0], [0.0, float("nan")], [5.0], [5.0] * 500, [1e-9, 1e12, float("inf")]]
)
def test_a_sparkline_takes_any_history(values):
    console = recorded(80)
    console.print(Sparkline(values))
    (line,) = console.file.getvalue().splitlines()
    assert cell_len(line) <= 80


def test_a_sparkline_shows_the_largest_of_each_column():
    console = recorded(40)
    console.print(Sparkline([10.0] * 100 + [1000.0] + [10.0] * 99))
    line = console.file.getvalue()
    assert line.count("█") == 1
    assert line.count("▁") > 10


def test_terminals_without_blocks_get_plain_characters():
    console = Console(
        file=io.TextIOWrapper(io.BytesIO(), "ascii"), width=80, force_terminal=True, color_system=None
    )
    with View(console) as view:
        view.update(SNAPSHOT)
    console.file.flush()
    assert b"worker 3" in console.file.buffer.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_table_at_the_end_fits(width):
    console = recorded(width, force_terminal=False)
    console.print(summary_table(sample(), width))
    text = console.file.getvalue()
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert "…" not in text
    for said in ("fluid", "98.3 MB", "12.1 s", "37.5×", "322 ms", "is right"):
        assert said in text, said


def test_the_table_takes_an_empty_report():
    console = recorded(80)
    console.print(summary_table({}))
    console.print(summary_table({"runs": [{"name": "[red]x", "strategy": "y"}], "outputs_match": False}))
    assert "[red]x" in console.file.getvalue()
    assert "WRONG" in console.file.getvalue()
