"""``sterna bench``: what can be measured. What takes seconds to import is imported when a command runs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from sterna.errors import SternaError
from sterna.terminal import (
    Folder,
    Format,
    Master,
    Memory,
    Output,
    Quick,
    Rounds,
    Workers,
    check_known,
    failures,
    say,
    told,
)

app = typer.Typer(
    help="Measure: real queries on a real Spark, in temporary folders that are removed afterwards.",
    no_args_is_help=True,
)


@app.command()
def throughput(
    *,
    output: Output = Format.table,
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
    with failures():
        from sterna.bench import throughput as benchmark

        result = benchmark.run(
            say(),
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
        told(result, benchmark.show, output)


@app.command()
def state(
    *,
    output: Output = Format.table,
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
    with failures():
        from sterna.bench import state as benchmark

        result = benchmark.run(
            say(),
            growth=benchmark.QUICK if quick else benchmark.FULL,
            rounds=rounds or (1 if quick else 2),
            workers=workers,
            bins=bins,
            master=master,
            memory=memory,
            folder=str(folder) if folder else None,
        )
        told(result, benchmark.show, output)


@app.command()
def bins(
    *,
    output: Output = Format.table,
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
    with failures():
        from sterna.bench import bins as benchmark

        result = benchmark.run(
            say(),
            sweep=benchmark.QUICK if quick else benchmark.FULL,
            rounds=rounds or (1 if quick else 4),
            workers=workers,
            master=master,
            memory=memory,
            folder=str(folder) if folder else None,
        )
        told(result, benchmark.show, output)


@app.command()
def quiet(
    *,
    output: Output = Format.table,
    quick: Quick = False,
    rounds: Rounds = None,
    workers: Workers = None,
    master: Master = "local[2]",
    memory: Memory = "4g",
    folder: Folder = None,
) -> None:
    """How long records wait while nothing moves, with 2^4 to 2^20 bins, and in Spark's own count beside it.

    Records come in an open loop at half of what the slower of the two keeps up with. The full run takes about
    twenty minutes, and gigabytes of disk while it runs.
    """
    with failures():
        from sterna.bench import quiet as benchmark

        result = benchmark.run(
            say(),
            sweep=benchmark.QUICK if quick else benchmark.FULL,
            rounds=rounds or (1 if quick else 3),
            workers=workers,
            master=master,
            memory=memory,
            folder=str(folder) if folder else None,
        )
        told(result, benchmark.show, output)


@app.command()
def migrate(
    *,
    output: Output = Format.table,
    quick: Quick = False,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="How often the strategies take turns.", show_default="5")
    ] = None,
    experiment: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "headline, bins, keys, proportional, load, memory or afterwards; may be given several times."
            ),
            show_default="all",
        ),
    ] = None,
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
    """What moving a quarter of the state costs in latency and memory, by strategy.

    Spark's offline way is measured beside it. The headline, 1 GiB of state in 4096 bins, takes about an hour
    with five rounds; all experiments together take the better part of a day, and tens of gigabytes of disk
    while they run. --quick takes some minutes and leaves out what is slow. Ctrl-C ends it after the run under
    way, with what was measured by then; a second one at once. What fails costs only itself, and makes it exit
    with 1.
    """
    with failures():
        from sterna.bench import migrate as benchmark

        check_known(experiment or (), benchmark.EXPERIMENTS, "--experiment")
        result = benchmark.run(
            say(),
            experiments=experiment or benchmark.EXPERIMENTS,
            sizes=benchmark.QUICK if quick else benchmark.FULL,
            rounds=rounds,
            minutes=minutes,
            master=master,
            memory=memory,
            folder=str(folder) if folder else None,
            report=str(report) if report else None,
        )
        told(result, benchmark.show, output)


@app.command()
def peers(
    *,
    output: Output = Format.table,
    quick: Quick = False,
    rounds: Rounds = None,
    part: Annotated[
        list[str] | None,
        typer.Option(
            help="router, queries, throughput or rescale; may be given several times.", show_default="all"
        ),
    ] = None,
    query: Annotated[
        list[str] | None,
        typer.Option(help="A NEXMark query; may be given several times.", show_default="all"),
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(help="sterna, spark or flink; may be given several times.", show_default="all"),
    ] = None,
    flink: Annotated[
        Path | None,
        typer.Option(
            file_okay=False, help="Where Flink is, or is installed.", show_default="a temporary folder"
        ),
    ] = None,
    flink_memory: Annotated[
        str | None,
        typer.Option(help="Memory of Flink's TaskManager, all of it, such as 4g.", show_default="8g"),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            help="An earlier output of --part queries: what it has of queries that are not measured now.",
            show_default="nothing",
        ),
    ] = None,
    master: Master = "local[2]",
    folder: Folder = None,
) -> None:
    """Sterna beside Spark's own operators and Apache Flink: events a second, and what a rescale costs.

    The rescale is one from two workers to four. Flink is installed into a folder of its own, from the package
    that PyFlink is made of. The full run takes about two and a half hours: a few minutes for router, half an
    hour for throughput, three quarters of an hour for queries, an hour for rescale. What fails costs only
    itself, and makes it exit with 1.
    """
    with failures():
        from sterna.bench.peers import again, running

        check_known(part or (), running.PARTS, "--part")
        check_known(system or (), running.SYSTEMS, "--system")
        if keep is not None and (quick or part != ["queries"]):
            raise typer.BadParameter(
                "only --part queries can be measured bit by bit, and not with --quick", param_hint="--keep"
            )
        if flink_memory is not None and not re.fullmatch(r"[1-9]\d*[mg]", flink_memory):
            raise typer.BadParameter(
                f"{flink_memory!r} is no memory: write 4g or 4096m", param_hint="--flink-memory"
            )
        before = None if keep is None else again.earlier(keep)
        sizes = running.QUICK if quick else running.FULL
        result = running.run(
            say(),
            parts=part or running.PARTS,
            systems=system or running.SYSTEMS,
            names=query or running.NAMES,
            sizes=replace(sizes, flink_memory=flink_memory or sizes.flink_memory),
            rounds=rounds,
            master=master,
            folder=str(folder) if folder else None,
            flink_home=flink,
        )
        result = result if before is None else again.joined(result, before)
        told(result, running.show, output)


@app.command()
def page(
    *,
    output: Output = Format.table,
    figures: Annotated[
        Path, typer.Option(file_okay=False, help="The folder with what benchmarks print with --json.")
    ] = Path("docs/figures"),
    file: Annotated[
        Path,
        typer.Option("--page", dir_okay=False, help="The page; its pictures go to the folder beside it."),
    ] = Path("docs/evaluation.md"),
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 if the page is not up to date.")
    ] = False,
) -> None:
    """Make the evaluation page from the figures that are there, and the tables of the README above it.

    The page has everything the Megaphone paper measures, beside what it says. Making it measures nothing, and
    takes a moment. What is not measured yet is in the page, with the command that measures it.
    """
    with failures():
        from sterna.bench.evaluation.page import made, stale, write

        whole = made(figures, tables_in=file.resolve().parent.parent / "README.md")
        changed = stale(whole, file) if check else write(whole, file)
        if output is Format.json:
            typer.echo(json.dumps({"written": not check, "files": [str(path) for path in changed]}, indent=2))
        else:
            for path in changed:
                typer.echo(path)
        if check and changed:
            raise SternaError("these are not what the figures say: run `sterna bench page`")


@app.command()
def planner(
    *,
    output: Output = Format.table,
    quick: Quick = False,
    traces: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            help="A folder of CSV files, each a time and a load at a constant step.",
            show_default="a made-up trace: days, weeks, noise and spikes",
        ),
    ] = None,
    experiment: Annotated[
        list[str] | None,
        typer.Option(
            help="state, gamma, tau, bins, time or response; may be given several times.", show_default="all"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of skewed state and the made-up trace.")] = 0,
    master: Master = "local[2]",
    memory: Memory = "1g",
    folder: Folder = None,
) -> None:
    """How much state planners move while a load comes and goes.

    The planners are Sterna's, consistent hashing, Redist and Storm's default. Plans only, but for response:
    there, queries run, and it tells how long answers take while state moves. The full run takes ten minutes
    or more for each trace, most of it computing beforehand.
    """
    with failures():
        from sterna.bench import planner as benchmark

        check_known(experiment or (), benchmark.EVERY, "--experiment")
        result = benchmark.run(
            say(),
            experiments=experiment or benchmark.EVERY,
            sizes=benchmark.QUICK if quick else benchmark.FULL,
            traces=str(traces) if traces else None,
            seed=seed,
            master=master,
            memory=memory,
            folder=str(folder) if folder else None,
        )
        told(result, benchmark.show, output)
