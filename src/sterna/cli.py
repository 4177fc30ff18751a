"""The ``sterna`` command.

Results go to standard output, and nothing else does: with ``--json`` it is exactly one JSON document. Everything
about the way there goes to standard error (see ``terminal``). Exit codes: 0 when all went well, 1 when something failed (in one
sentence, without a traceback, if it is a failure that Sterna knows), 2 for a mistake in the command, 130 after Ctrl-C.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from sterna import commands
from sterna.controllers.commands import advise
from sterna.errors import SternaError
from sterna.nexmark.commands import app as nexmark
from sterna.planning.commands import precompute
from sterna.terminal import (
    Folder,
    Json,
    Master,
    Memory,
    Quick,
    Rounds,
    Workers,
    failures,
    say,
    told,
)


class TwoWords(TyperGroup):
    """Commands whose name may have two words, the first of which may be a command by itself: ``sterna plan``, ``sterna plan precompute``."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments begin with, and the others."""
        name = " ".join(args[:2])
        if len(args) > 1 and name in self.commands:
            return name, self.commands[name], args[2:]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="sterna",
    cls=TwoWords,
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
app.add_typer(nexmark, name="nexmark")


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
    with failures():
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
        with failures():
            function(*args, **kwargs)

    return command


_COMMANDS: dict[str, Callable[..., None]] = {
    "plan": commands.plan,
    "advise": advise,
    "plan precompute": precompute,
    "apply": commands.apply,
    "status": commands.status,
    "history": commands.history,
}
for _name, _command in _COMMANDS.items():
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
        told(result, benchmark.show, as_json=as_json)


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
        told(result, benchmark.show, as_json=as_json)


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
        told(result, benchmark.show, as_json=as_json)


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
    with failures():
        from sterna.bench import migrate as benchmark

        if experiment not in (*benchmark.EXPERIMENTS, "all"):
            raise typer.BadParameter(
                f"{experiment!r} is none of {', '.join(benchmark.EXPERIMENTS)}, all",
                param_hint="--experiment",
            )
        result = benchmark.run(
            say(),
            experiments=list(benchmark.EXPERIMENTS) if experiment == "all" else [experiment],
            sizes=benchmark.QUICK if quick else benchmark.FULL,
            rounds=rounds,
            minutes=minutes,
            master=master,
            memory=memory,
            folder=str(folder) if folder else None,
            report=str(report) if report else None,
        )
        told(result, benchmark.show, as_json=as_json)


@bench.command()
def peers(
    *,
    as_json: Json = False,
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
    master: Master = "local[2]",
    folder: Folder = None,
) -> None:
    """Sterna beside Spark's own operators and Apache Flink: events a second, and what a rescale from two workers to four costs.

    Flink is installed into a folder of its own, from the package that PyFlink is made of. The full run takes about two hours.
    """
    with failures():
        from sterna.bench.peers import running

        for given, known, hint in (
            (part, running.PARTS, "--part"),
            (system, running.SYSTEMS, "--system"),
        ):
            for name in given or ():
                if name not in known:
                    raise typer.BadParameter(f"{name!r} is none of {', '.join(known)}", param_hint=hint)
        result = running.run(
            say(),
            parts=part or running.PARTS,
            systems=system or running.SYSTEMS,
            names=query or running.NAMES,
            sizes=running.QUICK if quick else running.FULL,
            rounds=rounds,
            master=master,
            folder=str(folder) if folder else None,
            flink_home=flink,
        )
        told(result, running.show, as_json=as_json)


@bench.command()
def page(
    *,
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
    """Make the evaluation page from the figures that are there: everything the Megaphone paper measures, beside what it says.

    Measures nothing, and takes a moment. What is not measured yet is in the page, with the command that measures it.
    """
    with failures():
        from sterna.bench.evaluation.page import made, stale, write

        whole = made(figures)
        changed = stale(whole, file) if check else write(whole, file)
        for path in changed:
            typer.echo(path)
        if check and changed:
            raise SternaError("these are not what the figures say: run `sterna bench page`")


@bench.command()
def planner(
    *,
    as_json: Json = False,
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
    experiment: Annotated[str, typer.Option(help="state, gamma, tau, bins, time or all.")] = "all",
    seed: Annotated[int, typer.Option(min=0, help="Of skewed state and the made-up trace.")] = 0,
    master: Master = "local[2]",
    memory: Memory = "1g",
    folder: Folder = None,
) -> None:
    """How much state planners move while a load comes and goes: Sterna's, consistent hashing, Redist and Storm's default.

    Plans only; no query runs. The full run takes some twenty minutes for each trace, most of it computing beforehand.
    """
    with failures():
        from sterna.bench import planner as benchmark

        if experiment not in (*benchmark.EXPERIMENTS, "all"):
            raise typer.BadParameter(
                f"{experiment!r} is none of {', '.join(benchmark.EXPERIMENTS)}, all",
                param_hint="--experiment",
            )
        result = benchmark.run(
            say(),
            experiments=list(benchmark.EXPERIMENTS) if experiment == "all" else [experiment],
            sizes=benchmark.QUICK if quick else benchmark.FULL,
            traces=str(traces) if traces else None,
            seed=seed,
            master=master,
            memory=memory,
            folder=str(folder) if folder else None,
        )
        told(result, benchmark.show, as_json=as_json)


if __name__ == "__main__":
    app()
