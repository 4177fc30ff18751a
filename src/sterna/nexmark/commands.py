"""``sterna nexmark``: run a query, write the events.

What takes seconds to import is imported when a command runs.
"""

# ruff: noqa: PLC0415  -- see the docstring

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sterna.terminal import Folder, Format, Master, Memory, Output, Quick, failures, say, told

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
        from sterna.nexmark.generator import Shape

        shape = Shape(rate, seed, dilation=dilation, in_flight=in_flight, disorder=disorder)
        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("events", total=events)
            files = writing.write(
                shape, folder, events, each, lambda done: progress.update(task, completed=done)
            )
        typer.echo(f"{events:,} events in {folder}: {files} files written")


@app.command()
def lines(*, output: Output = Format.table) -> None:
    """Count the lines of code of each query, on Sterna and on Spark's own operators."""
    with failures():
        from sterna.nexmark.lines import lines as counted
        from sterna.nexmark.lines import show

        told({"lines": counted()}, show, output)
