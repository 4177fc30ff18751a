"""The ``sterna`` command.

Results go to standard output, and nothing else does: with ``--format json`` it is exactly one JSON document.
Everything about the way there goes to standard error (see ``terminal``). Exit codes: 0 when all went well, 1
when something failed (in one sentence, without a traceback, if it is a failure that Sterna knows), 2 for a
mistake in the command, 130 after Ctrl-C.
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
from sterna.bench.commands import app as bench
from sterna.controllers.commands import advise
from sterna.nexmark.commands import app as nexmark
from sterna.planning.commands import precompute
from sterna.terminal import Format, Output, failures


class Commands(TyperGroup):
    """Commands whose name may have two words: ``sterna plan``, ``sterna plan precompute``.

    The first word may be a command by itself. All of them take ``--json`` for ``--format json``.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments, with ``--json`` written out where it is an option."""
        end = args.index("--") if "--" in args else len(args)
        written_out = ["--format=json" if word == "--json" else word for word in args[:end]]
        return super().parse_args(ctx, [*written_out, *args[end:]])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments begin with, and the others."""
        name = " ".join(args[:2])
        if len(args) > 1 and name in self.commands:
            return name, self.commands[name], args[2:]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="sterna",
    cls=Commands,
    help="Stateful streams on PySpark whose state can move while the query runs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
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
    output: Output = Format.table,
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
    """Move a quarter of a running stream's state in every way, then rescale Spark's own query, and compare.

    Takes about three minutes on two cores, and leaves nothing behind but the page. Fails if a single key is
    counted wrong.
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
        if output is Format.json:
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


if __name__ == "__main__":
    app()
