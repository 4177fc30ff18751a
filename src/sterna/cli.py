"""The ``sterna`` command.

Results go to standard output, and nothing else does: with ``--json`` it is exactly one JSON document. Everything
about the way there goes to standard error. Exit codes: 0 when all went well, 1 when something failed (in one
sentence, without a traceback, if it is a failure that Sterna knows), 2 for a mistake in the command, 130 after Ctrl-C.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from sterna import commands
from sterna.errors import SternaError

app = typer.Typer(
    name="sterna",
    help="Stateful streams on PySpark whose state can move while the query runs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
bench = typer.Typer(
    help="Measure: real queries on a real Spark, in temporary folders that are removed afterwards.",
    no_args_is_help=True,
)
app.add_typer(bench, name="bench")
nexmark = typer.Typer(help="The NEXMark benchmark: its queries, and its events.", no_args_is_help=True)
app.add_typer(nexmark, name="nexmark")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]
Quick = Annotated[
    bool,
    typer.Option("--quick", help="Small sizes, a few minutes at most: shows that it works, not how fast."),
]
Rounds = Annotated[
    int | None, typer.Option(min=1, help="How often the sides take turns.", show_default="a few")
]
Workers = Annotated[int | None, typer.Option(min=1, help="Sterna's workers.", show_default="cores")]
Master = Annotated[str, typer.Option(help="Spark's master.")]
Memory = Annotated[str, typer.Option(help="Heap of Spark's JVM.")]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--dir",
        exists=True,
        file_okay=False,
        writable=True,
        help="Where to put the temporary folder: on the disk that you want to measure.",
        show_default="the system's temporary folder",
    ),
]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sterna {version('sterna')} (pyspark {version('pyspark')})")
        raise typer.Exit


@app.callback()
def main(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Stateful streams on PySpark whose state can move while the query runs."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without arrows gets question marks
            stream.reconfigure(errors="replace")


@app.command()
def demo(
    *,
    as_json: Json = False,
    report: Annotated[
        Path, typer.Option(dir_okay=False, help="Where to write the page with all timelines.")
    ] = Path("report.html"),
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A small state and short phases, without Spark: well under a minute."),
    ] = False,
    spark: Annotated[
        bool | None,
        typer.Option(
            "--spark/--no-spark", help="Rescale Spark's own query too.", show_default="unless --quick"
        ),
    ] = None,
) -> None:
    """Move a quarter of the state of a running stream in every way, then rescale Spark's own query, and compare.

    Takes some three minutes on two cores, and leaves nothing behind but the page. Fails if a single key is counted wrong.
    """
    with _failures():
        from dataclasses import replace

        from sterna.bench.report import render
        from sterna.demo import FULL, QUICK, run
        from sterna.live import summary_table

        setup = QUICK if quick else FULL
        if spark is not None:
            setup = replace(setup, spark=spark)
        if not report.parent.is_dir():
            raise typer.BadParameter(f"there is no folder {report.parent}", param_hint="--report")
        told, figures = run(setup, Console(stderr=True, highlight=False))
        report.write_text(render(told), encoding="utf-8")
        if as_json:
            typer.echo(json.dumps({**figures, "report": str(report)}, indent=2))
        else:
            console = Console(highlight=False)
            console.print(summary_table(told, console.width))
            console.print(f"All timelines: {report.resolve()}", soft_wrap=True)
        if not told["outputs_match"]:
            raise typer.Exit(1)


def _failing_well(function: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(function)
    def command(*args: Any, **kwargs: Any) -> None:
        with _failures():
            function(*args, **kwargs)

    return command


for _name, _command in {
    "plan": commands.plan,
    "apply": commands.apply,
    "status": commands.status,
    "history": commands.history,
}.items():
    app.command(_name)(_failing_well(_command))
for _name, _help in {
    "cancel": "End a migration: what has moved stays where it is.",
    "pause": "Move nothing more until resume.",
    "resume": "Go on with a paused migration.",
    "rollback": "Move back what a migration has moved.",
}.items():
    app.command(_name, help=_help)(_failing_well(commands.control(_name)))


@bench.command()
def throughput(
    *,
    as_json: Json = False,
    quick: Quick = False,
    rounds: Rounds = None,
    workers: Workers = None,
    partitions: Annotated[
        int | None, typer.Option(min=1, help="Spark's state partitions.", show_default="cores")
    ] = None,
    quick_logs: Annotated[
        bool,
        typer.Option("--quick-logs", help="Add Spark with its own logs written as Sterna has them written."),
    ] = False,
    transform_with_state: Annotated[
        bool,
        typer.Option(
            "--transform-with-state",
            help="Add transformWithStateInPandas (slow; smaller epochs, empty state).",
        ),
    ] = False,
    master: Master = "local[2]",
    memory: Memory = "4g",
    folder: Folder = None,
) -> None:
    """Sterna's count by key against Spark's groupBy().count(), taking turns, at several sizes of epoch.

    Ten million keys; both states are filled first. The full run takes some ten minutes and more.
    """
    with _failures():
        from sterna.bench import throughput as benchmark

        result = benchmark.run(
            _say(),
            cases=benchmark.QUICK if quick else benchmark.FULL,
            rounds=rounds or (1 if quick else 3),
            workers=workers,
            partitions=partitions,
            quick_logs=quick_logs,
            transform_with_state=transform_with_state,
            master=master,
            memory=memory,
            folder=str(folder) if folder else None,
        )
        _print(result, benchmark.show, as_json=as_json)


@bench.command()
def state(
    *,
    as_json: Json = False,
    quick: Quick = False,
    rounds: Rounds = None,
    workers: Workers = None,
    bins: Annotated[int, typer.Option(min=1, help="Sterna's bins, a power of two.")] = 4096,
    master: Master = "local[2]",
    memory: Memory = "4g",
    folder: Folder = None,
) -> None:
    """Epoch time and Python's memory while the state grows from 1M to 64M keys, 200k rows an epoch.

    The full run takes some ten minutes and more, and gigabytes of disk while it runs.
    """
    with _failures():
        from sterna.bench import state as benchmark

        result = benchmark.run(
            _say(),
            growth=benchmark.QUICK if quick else benchmark.FULL,
            rounds=rounds or (1 if quick else 2),
            workers=workers,
            bins=bins,
            master=master,
            memory=memory,
            folder=str(folder) if folder else None,
        )
        _print(result, benchmark.show, as_json=as_json)


@bench.command()
def bins(
    *,
    as_json: Json = False,
    quick: Quick = False,
    rounds: Rounds = None,
    workers: Workers = None,
    master: Master = "local[2]",
    memory: Memory = "4g",
    folder: Folder = None,
) -> None:
    """Rows a second with 2^4 to 2^20 bins, all taking turns, against 2^12.

    The full run takes some ten minutes and more, and gigabytes of disk while it runs.
    """
    with _failures():
        from sterna.bench import bins as benchmark

        result = benchmark.run(
            _say(),
            sweep=benchmark.QUICK if quick else benchmark.FULL,
            rounds=rounds or (1 if quick else 4),
            workers=workers,
            master=master,
            memory=memory,
            folder=str(folder) if folder else None,
        )
        _print(result, benchmark.show, as_json=as_json)


@bench.command()
def migrate(
    *,
    as_json: Json = False,
    quick: Quick = False,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="How often the strategies take turns.", show_default="5")
    ] = None,
    experiment: Annotated[
        str, typer.Option(help="headline, bins, keys, proportional, load, memory, afterwards or all.")
    ] = "all",
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0, help="Begin no run later than this, and report what there is.", show_default="no limit"
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Where to write a page about the headline.")
    ] = None,
    master: Master = "local[2]",
    memory: Annotated[str | None, typer.Option(help="Heap of Spark's JVM.", show_default="4g")] = None,
    folder: Folder = None,
) -> None:
    """What moving a quarter of the state costs in latency and memory, by strategy, and Spark's offline way beside it.

    The headline, 1 GiB of state in 4096 bins, takes about an hour with five rounds; all experiments together take the
    better part of a day, and tens of gigabytes of disk while they run. --quick takes some minutes and leaves out what is slow.
    """
    with _failures():
        from sterna.bench import migrate as benchmark

        if experiment not in (*benchmark.EXPERIMENTS, "all"):
            raise typer.BadParameter(
                f"{experiment!r} is none of {', '.join(benchmark.EXPERIMENTS)}, all",
                param_hint="--experiment",
            )
        result = benchmark.run(
            _say(),
            experiments=list(benchmark.EXPERIMENTS) if experiment == "all" else [experiment],
            sizes=benchmark.QUICK if quick else benchmark.FULL,
            rounds=rounds,
            minutes=minutes,
            master=master,
            memory=memory,
            folder=str(folder) if folder else None,
            report=str(report) if report else None,
        )
        _print(result, benchmark.show, as_json=as_json)


@nexmark.command("run")
def nexmark_run(
    query: Annotated[str, typer.Argument(help="q1 to q8, nbq5, nbq8 or nbqx.")],
    *,
    rate: Annotated[
        float | None,
        typer.Option(min=1, help="Events a second.", show_default="the highest that is kept up with"),
    ] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            help="How state moves: all_at_once, fluid, matched or paced; may be given several times.",
            show_default="all_at_once and matched",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=2, help="Sterna's workers.")] = 4,
    bins: Annotated[int, typer.Option(min=1, help="Sterna's bins, a power of two.")] = 4096,
    seconds: Annotated[float, typer.Option(min=1, help="Quiet seconds before each migration.")] = 30.0,
    quick: Quick = False,
    as_json: Json = False,
    report: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Where to write a page with the timelines.")
    ] = None,
    master: Master = "local[2]",
    memory: Memory = "4g",
    folder: Folder = None,
) -> None:
    """Run a query in an open loop and move a quarter of its state there and back, with each strategy."""
    with _failures():
        from dataclasses import replace

        from sterna.bench.report import render
        from sterna.nexmark import running

        known = ("all_at_once", "fluid", "matched", "paced")
        for name in strategy or ():
            if name not in known:
                raise typer.BadParameter(f"{name!r} is none of {', '.join(known)}", param_hint="--strategy")
        if report is not None and not report.parent.is_dir():
            raise typer.BadParameter(f"there is no folder {report.parent}", param_hint="--report")
        plan = running.Plan(query, rate, workers=workers, bins=bins)
        plan = replace(plan, course=running.QUICK if quick else replace(plan.course, quiet=seconds))
        if strategy:
            plan = replace(plan, strategies=tuple(dict.fromkeys(strategy)))
        if quick:
            plan = replace(plan, rate=rate or 20_000.0, bins=min(bins, 64))
        figures, page = running.run(_say(), plan, master, memory, str(folder) if folder else None)
        if report is not None:
            report.write_text(render(page), encoding="utf-8")
        _print(figures, running.show, as_json=as_json)


@nexmark.command("write")
def nexmark_write(
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
    with _failures():
        from rich.progress import Progress

        from sterna.nexmark.generator import Shape
        from sterna.nexmark.writing import write

        shape = Shape(rate, seed, dilation=dilation, in_flight=in_flight, disorder=disorder)
        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("events", total=events)
            files = write(shape, folder, events, each, lambda done: progress.update(task, completed=done))
        typer.echo(f"{events:,} events in {folder}: {files} files written")


def _say() -> Callable[[str], None]:
    """A teller of progress, on standard error, with the seconds since the start."""
    console, start = Console(stderr=True, highlight=False), time.monotonic()
    return lambda line: console.print(f"[dim]{time.monotonic() - start:7.1f} s[/dim]  {line}", soft_wrap=True)


def _print(result: dict[str, Any], show: Callable[[dict[str, Any], Console], None], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(result, indent=2))
    else:
        show(result, Console())


@contextmanager
def _failures() -> Iterator[None]:
    """Turn failures into exit codes; a traceback is for mistakes of ours."""
    try:
        yield
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted")
        raise typer.Exit(130) from None
    except SternaError as error:
        Console(stderr=True, highlight=False).print(f"[red]error:[/red] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(1) from error


if __name__ == "__main__":
    app()
