"""The commands that look at and steer a running query from another process.

They are plan, apply, status, history, cancel, pause, resume and rollback. Results go to standard output: a
table, or one JSON document with ``--format json``. What can't be done is one sentence on standard error and
exit code 1.
"""

from __future__ import annotations

import json
import time
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from sterna import control as controls
from sterna import strategies
from sterna.control import Entry, new_name
from sterna.errors import SternaError
from sterna.migration import PAUSED, RUNNING
from sterna.remote import Remote
from sterna.spelt import strategy_of, target_of, when_of
from sterna.terminal import Format, Output, plain


class IfBusy(str, Enum):
    """What to do if another migration is under way."""

    refuse = "refuse"
    queue = "queue"
    merge = "merge"


class Order(str, Enum):
    """Which bins go first."""

    as_given = "as_given"
    hottest = "hottest"
    coldest = "coldest"
    largest = "largest"


Checkpoint = Annotated[str, typer.Argument(help="The query's checkpoint location.")]
Name = Annotated[str, typer.Argument(help="The migration's name, as status and history print it.")]
Workers = Annotated[int | None, typer.Option("--workers", help="Target: so many workers.")]
Bins = Annotated[int | None, typer.Option("--bins", help="Target: so many bins, a power of two.")]
Planner = Annotated[
    str | None,
    typer.Option(
        help="With --workers or --balance: ssm (bins stay in intervals) or general; the least state moves.",
        show_default="as few bins as possible",
    ),
]
Tau = Annotated[
    str | None,
    typer.Option(
        help="With --planner: how much more than the mean load a worker may have, or least.",
        show_default="0.2",
    ),
]
Balance = Annotated[bool, typer.Option("--balance", help="Target: about as much work for every worker.")]
Move = Annotated[
    list[str] | None,
    typer.Option("--move", help="Target: bins to a worker, as 0-31:2 or 7:0; may be given several times."),
]
File = Annotated[
    Path | None,
    typer.Option(
        "--target", help="Target: a JSON file, as the control stream has it.", exists=True, dir_okay=False
    ),
]
How = Annotated[
    str,
    typer.Option(
        help="all_at_once, fluid, batched:16, matched, paced:200ms, paced:8MB, or the name of your own."
    ),
]
OrderOption = Annotated[Order, typer.Option(help="Which bins go first.")]
Gap = Annotated[int, typer.Option(min=0, help="Epochs between two steps.")]
Operator = Annotated[str | None, typer.Option(help="The operator.", show_default="all")]

LONG_AGO_SECONDS = 10.0
MOST_WORKERS_TOLD = 16


def plan(
    checkpoint: Checkpoint,
    *,
    workers: Workers = None,
    count: Bins = None,
    even: Balance = False,
    move: Move = None,
    target: File = None,
    planner: Planner = None,
    tau: Tau = None,
    strategy: How = "all_at_once",
    order: OrderOption = Order.as_given,
    gap: Gap = 0,
    operator: Operator = None,
    output: Output = Format.table,
) -> None:
    """What a migration would move, in how many steps and epochs, and how long the longest epoch may be.

    Changes nothing.
    """
    remote = Remote(checkpoint)
    wish = target_of(workers, count, even, move, target, planner, tau)
    result = remote.plan(wish, strategy_of(strategy, order.value, gap), operator)
    if output is Format.json:
        typer.echo(json.dumps(result, indent=2))
        return
    table = Table(title=f"{strategies.describe(result['strategy'])}, as of epoch {result['epoch']}")
    for name in ("operator", "workers", "bins to move", "bytes", "steps", "epochs", "longest epoch"):
        table.add_column(name, justify="left" if name == "operator" else "right")
    for name, one in result["operators"].items():
        peak = (
            "unknown"
            if one["peak_ms"] is None
            else f"{one['peak_ms']:,.0f} ms{' (a guess)' if one['assumed'] else ''}"
        )
        table.add_row(
            name,
            f"{one['workers'][0]} → {one['workers'][1]}",
            f"{one['bins']:,}",
            _size(one["bytes"]),
            f"{one['steps']:,}",
            f"{one['epochs']:,}",
            peak,
        )
    Console().print(table)


def apply(
    checkpoint: Checkpoint,
    *,
    workers: Workers = None,
    count: Bins = None,
    even: Balance = False,
    move: Move = None,
    target: File = None,
    planner: Planner = None,
    tau: Tau = None,
    strategy: How = "all_at_once",
    order: OrderOption = Order.as_given,
    gap: Gap = 0,
    operator: Operator = None,
    at: Annotated[
        str | None,
        typer.Option(
            help="An epoch, a time such as 2026-12-01T03:00:00Z, or event: and a time, for event time.",
            show_default="at once",
        ),
    ] = None,
    if_busy: Annotated[IfBusy, typer.Option(help="If another migration is under way.")] = IfBusy.refuse,
    cause: Annotated[str, typer.Option(help="Why, for the history.")] = "command line",
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is over, with a progress bar.")] = False,
    output: Output = Format.table,
) -> None:
    """Ask a running query for a migration. Prints the migration's name."""
    remote = Remote(checkpoint)
    wish = target_of(workers, count, even, move, target, planner, tau)
    when = when_of(at)
    written = strategy_of(strategy, order.value, gap)
    entry = Entry(
        new_name(),
        wish,
        when,
        operator,
        cause,
        written,
        if_busy.value,
        query=remote.query,
        written=time.time(),
    )
    name = remote.apply(entry)
    outcome = {"name": name, "status": "waiting"}
    if wait:
        try:
            outcome = _watch(remote, name)
        except KeyboardInterrupt:
            typer.echo(f"no longer waiting; {name} goes on: sterna cancel {checkpoint} {name}", err=True)
            raise
    if output is Format.json:
        typer.echo(json.dumps(outcome, indent=2))
    else:
        typer.echo(f"{name} {outcome['status']}")
    if outcome["status"] in ("refused", "failed"):
        raise SternaError(f"migration {name} {outcome['status']}: {outcome.get('reason', '')}")


def _watch(remote: Remote, name: str) -> dict[str, Any]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} bins"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task, silent = bar.add_task("waiting", total=None), not bar.console.is_terminal
        while True:
            found = remote.migration(name)
            if found is not None and found["status"] not in ("running", "paused"):
                return found
            if found is not None:
                done = found["bins"]
                bar.update(task, description=found["status"], completed=done, total=done + found["bins_left"])
            else:
                ago = remote.status()["seconds_ago"] or 0.0
                hint = f"; the last epoch ended {ago:,.0f} s ago" if ago > LONG_AGO_SECONDS else ""
                bar.update(task, description=f"waiting{hint}")
                if hint and silent:
                    silent = False
                    typer.echo(f"waiting for {name}{hint}: does the query run?", err=True)
            time.sleep(0.25)


def status(checkpoint: Checkpoint, *, output: Output = Format.table) -> None:
    """Where the state of a query is, and what is under way."""
    found = Remote(checkpoint).status()
    if output is Format.json:
        typer.echo(json.dumps(found, indent=2))
        return
    console = Console()
    if found["epoch"] < 0:
        console.print("no epoch has ended yet")
    else:
        console.print(
            f"epoch {found['epoch']}, {found['seconds_ago'] or 0:,.0f} s ago, "
            f"took {found['epoch_ms'] or 0:,.0f} ms; "
            f"{found['rows']:,} rows so far, {found['late']:,} of them late"
        )
    for name, one in found["operators"].items():
        table = Table(title=f"{name}: {one['bins']:,} bins")
        for column in ("worker", "bins", "state"):
            table.add_column(column, justify="right")
        for worker, (held, size) in enumerate(
            zip(one["bins_by_worker"], one["bytes_by_worker"], strict=True)
        ):
            table.add_row(str(worker), f"{held:,}", _size(size))
        console.print(table)
    for one in found["migrations"]:
        console.print(
            plain(
                f"migration {one['name']}: {_state(one)}, {strategies.describe(one['strategy'])}, "
                f"{one['bins']:,} bins moved, {one['bins_left']:,} left"
                f"{'; ' + one['reason'] if one['reason'] else ''}"
            )
        )
    for one in found["pending"]:
        when = f"queued behind {', '.join(one['behind'])}" if one["behind"] else controls.told(one["when"])
        console.print(plain(f"waiting: {one['name']}, {when}"), soft_wrap=True)
    for name in found["unseen"]:
        console.print(plain(f"asked for since the last epoch: {name}"))


def history(checkpoint: Checkpoint, *, output: Output = Format.table) -> None:
    """All migrations of a query: why, how, how much, how long, and what epochs took.

    These are the epochs before, during and after each migration.
    """
    remote = Remote(checkpoint)
    found, damaged = remote.history(), remote.damaged()
    if damaged:
        files = "1 file is" if len(damaged) == 1 else f"{len(damaged):,} files are"
        told = ascii(damaged[0])[1:-1]
        typer.echo(f"{files} damaged, and what is in there is missing here: {told}", err=True)
    if output is Format.json:
        typer.echo(json.dumps(found, indent=2))
        return
    console = Console(highlight=False)
    if not found:
        console.print("no migration that can be read" if damaged else "no migration yet")
    for one in found:
        console.print(*_told(one), sep="\n", soft_wrap=True)


def _told(one: dict[str, Any]) -> list[str]:
    """A migration in a few lines."""
    began = datetime.fromtimestamp(one["started"], timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")
    head = (
        f"[bold]{plain(one['name'])}[/bold]  {began}, epoch {one['started_epoch']}  "
        f"[bold]{_state(one)}[/bold]"
    )
    if one["reason"]:
        head += f": {plain(one['reason'])}"
    if "latency" not in one:
        return [head]
    took = "" if one["ended"] is None else f" in {one['ended'] - one['started']:.1f} s"
    ways = [f"{name}: {_where(way['from'])} → {_where(way['to'])}" for name, way in one["operators"].items()]
    peaks = [one["latency"][when].get("max_ms") for when in ("before", "during", "after")]
    told = " → ".join("?" if peak is None else f"{peak:,.0f}" for peak in peaks)
    how = plain(f"{strategies.describe(one['strategy'])}, cause: {one['cause']}")
    return [
        head,
        f"  {plain('; '.join(ways))}",
        f"  {how}; {one['bins']:,} bins, {_size(one['bytes'])}, {one['steps']:,} steps{took}",
        f"  longest epoch before → during → after: {told} ms",
    ]


def _state(one: dict[str, Any]) -> str:
    """How far a migration is, and whether it is on its way back.

    >>> _state({"status": "paused", "back": True}), _state({"status": "rolled back", "back": True})
    ('paused, going back', 'rolled back')
    """
    under_way = one["status"] in (RUNNING, PAUSED)
    return f"{one['status']}, going back" if under_way and one.get("back") else str(one["status"])


def _where(placement: dict[str, Any]) -> str:
    """How many bins each worker has; of many workers only how many there are."""
    held = placement["bins_by_worker"]
    told = f"{len(held)} workers" if len(held) > MOST_WORKERS_TOLD else "/".join(map(str, held))
    return f"{told} of {placement['bins']:,} bins"


def control(action: str) -> Any:
    """A command that does something with a migration."""

    def command(checkpoint: Checkpoint, name: Name, *, output: Output = Format.table) -> None:
        remote = Remote(checkpoint)
        entry = Entry(
            new_name(),
            None,
            action=action,
            migration=name,
            cause="command line",
            query=remote.query,
            written=time.time(),
        )
        remote.apply(entry)
        if output is Format.json:
            typer.echo(json.dumps({"name": name, "asked": action}))
        else:
            typer.echo(f"asked to {action} {name}")

    return command


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1000
    raise AssertionError
