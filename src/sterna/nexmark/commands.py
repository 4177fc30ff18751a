"""``sterna nexmark``: run a query, write the events.

What takes seconds to import is imported when a command runs.
"""

# ruff: noqa: PLC0415  -- see the docstring

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from sterna.errors import InvalidInput
from sterna.terminal import Folder, Format, Master, Memory, Output, Quick, failures, say, told

if TYPE_CHECKING:
    from sterna.nexmark.shape import Shape

app = typer.Typer(help="The NEXMark benchmark: its queries, and its events.", no_args_is_help=True)


@app.command()
def run(
    query: Annotated[str, typer.Argument(help="q1 to q8, nbq5, nbq8 or nbqx.")],
    *,
    rate: Annotated[
        float | None,
        typer.Option(min=1, help="Events a second.", show_default="the highest that is kept up with"),
    ] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "How state moves: all_at_once, fluid, batched:16, matched, paced (by what is usual), "
                "paced:200ms or paced:8MB; may be given several times."
            ),
            show_default="all_at_once and matched",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=2, help="Sterna's workers.")] = 4,
    bins: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Sterna's bins, a power of two; matched takes an epoch for every eighth.",
            show_default="256, or 64 with --quick",
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            min=1, help="Quiet seconds before each migration.", show_default="60, or 3 with --quick"
        ),
    ] = None,
    warm_up: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Seconds until the state is what it should be.",
            show_default="until the query's windows are full",
        ),
    ] = None,
    in_flight: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Auctions open at a time, about: the state of q4 and q6.",
            show_default="as many as begin in 80 s for q4 and q6, else 100",
        ),
    ] = None,
    dilation: Annotated[
        float | None,
        typer.Option(
            min=1e-9,
            help="Seconds of event time in a second.",
            show_default="540 for q8 and nbq8, 180 for nbqx, else 1",
        ),
    ] = None,
    quick: Quick = False,
    output: Output = Format.table,
    report: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Where to write a page with the timelines.")
    ] = None,
    master: Master = "local[2]",
    memory: Memory = "4g",
    folder: Folder = None,
) -> None:
    """Run a query in an open loop and move a quarter of its state there and back.

    Each strategy has a run of its own.
    """
    with failures():
        from dataclasses import replace

        from sterna.bench.leg import strategy_of
        from sterna.bench.report import render
        from sterna.configuration import bits_of
        from sterna.nexmark import running, telling
        from sterna.nexmark.shape import Shape

        for text in strategy or ():
            strategy_of(text, latency_ms=1.0)  # raises where it is none
        if report is not None and not report.parent.is_dir():
            raise typer.BadParameter(f"there is no folder {report.parent}", param_hint="--report")
        plan = running.Plan.of(query, rate=rate, workers=workers, warm_up=warm_up)
        plan = running.quick(plan) if quick else plan
        if bins is not None:
            bits_of(bins)  # raises where it is no power of two
            plan = replace(plan, bins=bins)
        if seconds is not None:
            plan = replace(plan, course=replace(plan.course, quiet=seconds))
        plan = plan.with_events(in_flight, dilation)
        with _options_named():
            speed = rate or Shape.rate
            Shape(speed, dilation=plan.setting.dilation, in_flight=plan.setting.auctions(speed))
        if strategy:
            plan = replace(plan, strategies=tuple(dict.fromkeys(strategy)))
        figures, page = running.run(say(), plan, master, memory, str(folder) if folder else None)
        if report is not None:
            report.write_text(render(page), encoding="utf-8")
        told(figures, telling.show, output)


@app.command()
def write(
    folder: Annotated[Path, typer.Argument(file_okay=False, help="Where the files go.")],
    *,
    output: Output = Format.table,
    events: Annotated[int, typer.Option(min=1, help="How many events.")] = 10_000_000,
    each: Annotated[int, typer.Option(min=1, help="Events in a file of each kind.")] = 1_000_000,
    rate: Annotated[float, typer.Option(help="Events for each second of event time.")] = 10_000.0,
    seed: Annotated[int, typer.Option(min=0, help="Another one gives other events.")] = 0,
    dilation: Annotated[float, typer.Option(help="Seconds of event time in a second.")] = 1.0,
    in_flight: Annotated[int, typer.Option(min=1, help="Auctions open at a time, about.")] = 100,
    disorder: Annotated[int, typer.Option(min=1, help="Events in a group that is out of order.")] = 1,
) -> None:
    """Write the events as parquet, for other systems to read; what is there already is not written again."""
    with failures():
        from rich.progress import Progress

        from sterna.nexmark import writing
        from sterna.nexmark.shape import Shape

        with _options_named():
            shape = Shape(rate, seed, dilation=dilation, in_flight=in_flight, disorder=disorder)
            shape.check(events)
        _refuse_a_part(folder, shape, events, each)
        with (
            _folder_named(folder),
            Progress(console=Console(stderr=True), transient=True) as progress,
        ):
            task = progress.add_task("events", total=events)
            files = writing.write(
                shape, folder, events, each, lambda done: progress.update(task, completed=done)
            )
        if output is Format.json:
            result = {"events": events, "folder": str(folder), "files": [str(path) for path in files]}
            typer.echo(json.dumps(result, indent=2))
        else:
            typer.echo(f"{events:,} events in {folder}: {len(files):,} files written")


@app.command()
def lines(*, output: Output = Format.table) -> None:
    """Count the lines of code of each query, on Sterna and on Spark's own operators."""
    with failures():
        from sterna.nexmark.lines import lines as counted
        from sterna.nexmark.lines import show

        told({"lines": counted()}, show, output)


@contextmanager
def _options_named() -> Iterator[None]:
    """What can't be about the events, named as the option that it is."""
    from sterna.nexmark.shape import UnfitShape

    try:
        yield
    except UnfitShape as error:
        raise InvalidInput(f"--{error.field.replace('_', '-')} {error.reason}") from None


@contextmanager
def _folder_named(folder: Path) -> Iterator[None]:
    """What the disk refuses, as a sentence."""
    try:
        yield
    except OSError as error:
        raise InvalidInput(
            f"can't write events to {folder}: {error.strerror or error}; name a folder that can be written to"
        ) from error


def _refuse_a_part(folder: Path, shape: Shape, events: int, each: int) -> None:
    """Tells of the same events, of which there can't be more or fewer: files are never written again."""
    from dataclasses import asdict

    from sterna.nexmark.writing import ABOUT

    try:
        held = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return  # nothing is known of the folder, or it is looked at when it is written to
    same = json.loads(json.dumps({**asdict(shape), "each": each}))
    wanted = events if events % each else None
    if (
        not isinstance(held, dict)
        or held != {**same, "events": held.get("events")}
        or held["events"] == wanted
    ):
        return
    if held["events"] is not None:
        raise InvalidInput(
            f"{folder} is for the first {held['events']} of these events, and its last file is only part of "
            f"one: none can be added. Ask for {held['events']} events, or write {events} to another folder"
        )
    raise InvalidInput(
        f"{folder} has these events in whole files of {each}, and {events} would end with part of one. "
        f"Ask for a multiple of {each}, or write {events} to another folder"
    )
