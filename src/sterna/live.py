"""A live view of a running query in the terminal, and the table at the end.

``View`` is fed with plain snapshots and knows nothing of queries. On a terminal it draws a few lines in
place: the latency now and over the last minute, the bins by worker, the migration that is on its way. It
draws over what it drew before, with the same number of lines each time, so nothing flickers or jumps.
Anywhere else, as in a log, it prints one plain line every few seconds. Leaving the ``with`` block, also by
Ctrl-C, leaves the last picture and shows the cursor again.
"""

from __future__ import annotations

import math
from itertools import pairwise
from types import TracebackType
from typing import TypedDict

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from sterna.bench.columns import COLUMNS
from sterna.bench.report_data import Report, Run
from sterna.bench.series import steady_max
from sterna.readable import DASH, count, duration, known, milliseconds, ratio, size, times

LINE_EVERY_S = 5.0
DRAW_EVERY_S = 0.1
WORKERS_SHOWN = 12
BLOCKS, ASCII_BLOCKS = "▁▂▃▄▅▆▇█", "_.-=+*#@"


class Worker(TypedDict):
    """What one worker has."""

    worker: int
    bins: int
    bytes: int


class Migration(TypedDict):
    """How far a migration is."""

    strategy: str
    bins_done: int
    bins_total: int
    bytes: int
    """Moved so far."""
    eta_s: float | None


class Snapshot(TypedDict, total=False):
    """What there is to see at one moment; what is missing is shown as a dash."""

    elapsed: float
    """Seconds since the beginning; it never goes back."""
    phase: str
    latency_now_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    epoch: int | None
    rows_per_second: float | None
    history: list[float]
    """The latency of each slot of the last minute, in milliseconds, the oldest first."""
    workers: list[Worker]
    migration: Migration | None
    message: str


class View:
    """The view; a context manager, to be fed as often as one likes.

    >>> with View(Console(width=80, force_terminal=False)) as view:
    ...     view.update({"elapsed": 3.0, "phase": "steady", "latency_now_ms": 85.0, "epoch": 12})
      0:03  steady: latency 85 ms, p99 –, max –, epoch 12
    """

    def __init__(self, console: Console, title: str = "Sterna") -> None:
        self._console = console
        self._title = title
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._newest: Snapshot | None = None
        self._shown_at = -math.inf
        self._shown_phase: str | None = None
        self._most_bins = 1
        self._most_workers = 0

    def __enter__(self) -> View:  # noqa: PYI034 - `Self` is not in Python 3.10
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            if self._newest:
                self._live.update(self._picture(self._newest))
            self._live.stop()

    def update(self, snapshot: Snapshot) -> None:
        """Show this, unless something was shown a moment ago."""
        self._newest = snapshot
        elapsed, phase = snapshot.get("elapsed", 0.0), snapshot.get("phase")
        due = elapsed - self._shown_at >= (DRAW_EVERY_S if self._live else LINE_EVERY_S)
        if not due and phase == self._shown_phase:
            return
        self._shown_at, self._shown_phase = elapsed, phase
        if self._live:
            self._live.update(self._picture(snapshot), refresh=True)
        else:
            self._console.print(plain_line(snapshot), markup=False, highlight=False, soft_wrap=True)

    def _picture(self, snapshot: Snapshot) -> RenderableType:
        """The lines; their number never shrinks, so that what is below them stays where it is."""
        workers = snapshot.get("workers") or []
        self._most_bins = max([self._most_bins, *(worker["bins"] for worker in workers)])
        self._most_workers = max(self._most_workers, min(len(workers), WORKERS_SHOWN + 1))
        return Group(
            _heading(self._title, snapshot),
            Text(),
            _latency(snapshot),
            Sparkline(snapshot.get("history") or []),
            Text(),
            _workers(workers, self._most_bins, self._most_workers),
            Text(),
            _migration(snapshot.get("migration")),
            Text(_one_line(snapshot.get("message", "")), style="dim", no_wrap=True, overflow="ellipsis"),
        )


class Sparkline:
    """A line of blocks, as wide as there is room.

    Each shows the largest of what falls into its column, on a logarithmic scale.
    """

    def __init__(self, values: list[float]) -> None:
        self.values = [known(value) for value in values]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The blocks, and the scale to the right of them."""
        positive = [value for value in self.values if value]
        if not positive:
            yield Text(DASH, style="dim", no_wrap=True)
            return
        # A scale of less than a decade would make noise look like an event.
        low = 10 ** math.floor(math.log10(min(positive)))
        high = max(10 * low, *positive)
        scale = f" {milliseconds(low)} to {milliseconds(high)}"
        width = max(options.max_width - len(scale), 1)
        blocks = ASCII_BLOCKS if options.ascii_only else BLOCKS
        drawn = "".join(_block(value, low, high, blocks) for value in _columns(self.values, width))
        yield Text.assemble((drawn.ljust(width), "cyan"), (scale, "dim"), no_wrap=True, overflow="crop")


def plain_line(snapshot: Snapshot) -> str:
    """A snapshot in one line, for logs."""
    parts = [
        f"latency {milliseconds(snapshot.get('latency_now_ms'))}",
        f"p99 {milliseconds(snapshot.get('p99_ms'))}",
        f"max {milliseconds(snapshot.get('max_ms'))}",
    ]
    if snapshot.get("epoch") is not None:
        parts.append(f"epoch {snapshot['epoch']}")
    moving = snapshot.get("migration")
    if moving:
        done = f"{count(moving['bins_done'])} of {count(moving['bins_total'])} bins"
        parts.append(f"{moving['strategy']} {done}, {size(moving['bytes'])}")
    if snapshot.get("message"):
        parts.append(snapshot["message"])
    phase = snapshot.get("phase") or "running"
    return _one_line(f"{_clock(snapshot):>6}  {phase}: {', '.join(parts)}")


def summary_table(report: Report, width: int = 80) -> Table:
    """What a report says, as a table for the end; with less than 72 columns it leaves some of it out."""
    steady = report.get("steady") or {}
    table = Table(box=SIMPLE_HEAD, padding=0, title=Text(report.get("title", "")), title_justify="left")
    table.add_column("", overflow="fold")
    shown = [name for name in COLUMNS if width >= 72 or name not in {"bins", "steps", "epochs"}]
    for name in shown:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("×steady", justify="right", no_wrap=True)
    still: Run = {
        "name": "nothing moves",
        "strategy": "",
        "p99_ms": steady.get("p99_ms"),
        "max_ms": steady.get("max_ms"),
    }
    table.add_row(still["name"], *(COLUMNS[name](still).replace(DASH, "") for name in shown), "", style="dim")
    for run in report.get("runs") or []:
        cells = [COLUMNS[name](run) for name in shown]
        more = ratio(times(run.get("max_ms"), steady_max(report, run)))
        table.add_row(Text(_one_line(run["name"])), *cells, Text(more, "bold"))
    match = report.get("outputs_match")
    if match is not None:
        table.caption = Text(f"{'Every count of every run is right' if match else 'Some counts are WRONG'}.")
        table.caption_justify = "left"
    return table


def _heading(title: str, snapshot: Snapshot) -> Table:
    grid = Table.grid(expand=True, padding=(0, 2))
    grid.add_column(no_wrap=True, ratio=1)
    grid.add_column(justify="right", no_wrap=True)
    left = Text.assemble((title, "bold"), "  ", _one_line(snapshot.get("phase", "")))
    rows = count(snapshot.get("rows_per_second"))
    grid.add_row(
        left, Text(f"{_clock(snapshot)}   epoch {count(snapshot.get('epoch'))}   {rows} rows/s", "dim")
    )
    return grid


def _latency(snapshot: Snapshot) -> Text:
    now = milliseconds(snapshot.get("latency_now_ms"))
    rest = f"p99 {milliseconds(snapshot.get('p99_ms')):<9} max {milliseconds(snapshot.get('max_ms')):<9}"
    return Text.assemble(("latency  ", "dim"), (f"{now:<9}", "bold cyan"), (rest, "dim"), no_wrap=True)


def _workers(workers: list[Worker], most_bins: int, lines: int) -> Table:
    """One bar a worker; all bars have one scale, which only grows."""
    grid = _bars()
    for worker in workers[:WORKERS_SHOWN]:
        bar = ProgressBar(most_bins, worker["bins"], complete_style="cyan", finished_style="cyan")
        grid.add_row(
            f"worker {worker['worker']}", bar, f"{count(worker['bins'])} bins", size(worker["bytes"]), ""
        )
    rest = workers[WORKERS_SHOWN:]
    if rest:
        bins, amount = sum(worker["bins"] for worker in rest), sum(worker["bytes"] for worker in rest)
        grid.add_row(f"{len(rest)} more", "", f"{count(bins)} bins", size(amount), "")
    for _ in range(lines - grid.row_count):
        grid.add_row("", "", "", "", "")
    return grid


def _migration(moving: Migration | None) -> Table:
    """How far the migration is; a line of the same height when there is none."""
    grid = _bars()
    if moving is None:
        grid.add_row(Text("at rest", "dim"), "", "", "", "")
        return grid
    done, total = moving["bins_done"], moving["bins_total"]
    bar = ProgressBar(max(total, 1), done, complete_style="yellow", finished_style="green")
    left = f"{duration(moving['eta_s'])} left" if known(moving.get("eta_s")) is not None else ""
    bins = f"{count(done)}/{count(total)} bins"
    grid.add_row(Text(_one_line(moving["strategy"])), bar, bins, size(moving["bytes"]), left)
    return grid


def _bars() -> Table:
    grid = Table.grid(expand=True, padding=(0, 2, 0, 0))
    grid.add_column(width=11, no_wrap=True)
    grid.add_column(ratio=1, min_width=4)
    grid.add_column(width=12, justify="right", no_wrap=True)
    grid.add_column(width=8, justify="right", no_wrap=True)
    grid.add_column(width=11, justify="right", no_wrap=True, style="dim")
    return grid


def _columns(values: list[float | None], width: int) -> list[float | None]:
    """The values in at most so many columns, of which each shows its largest."""
    if len(values) <= width:
        return values
    edges = [round(i * len(values) / width) for i in range(width + 1)]
    groups = (values[a:b] for a, b in pairwise(edges))
    return [max((value for value in group if value is not None), default=None) for group in groups]


def _block(value: float | None, low: float, high: float, blocks: str) -> str:
    if not value:
        return " "
    place = math.log(value / low) / math.log(high / low)
    return blocks[min(int(place * len(blocks)), len(blocks) - 1)]


def _clock(snapshot: Snapshot) -> str:
    whole = int(known(snapshot.get("elapsed")) or 0)
    return f"{whole // 60}:{whole % 60:02d}"


def _one_line(text: str) -> str:
    """Text that cannot break the picture: no line breaks, no control characters."""
    return "".join(c if c.isprintable() else " " for c in text)
