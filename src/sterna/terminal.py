"""What the commands share: options, a teller of progress, the printing of results, what a failure becomes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from sterna.errors import SternaError


class Format(str, Enum):
    """How results are printed."""

    table = "table"
    json = "json"


Output = Annotated[
    Format, typer.Option("--format", help="A table, or one JSON document, for which --json is short.")
]
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


def plain(text: str, keep: str = "") -> str:
    r"""Somebody's text as it may be printed: no markup, and nothing that steers a terminal.

    >>> plain("a[b]c\x1b[2J\nd")
    'a\\[b]c\\x1b[2J\\nd'
    """
    return escape("".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text))


def say() -> Callable[[str], None]:
    """A teller of progress, on standard error, with the seconds since the start."""
    console, start = Console(stderr=True, highlight=False), time.monotonic()
    return lambda line: console.print(f"[dim]{time.monotonic() - start:7.1f} s[/dim]  {line}", soft_wrap=True)


def check_known(given: Iterable[str], known: Iterable[str], hint: str) -> None:
    """Refuses what is none of the known words."""
    known = list(known)
    for name in given:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(known)}", param_hint=hint)


def told(result: dict[str, Any], show: Callable[[dict[str, Any], Console], None], output: Format) -> None:
    """Prints a result, as one JSON document or as a table; exits with 1 if it tells of failures."""
    if output is Format.json:
        typer.echo(json.dumps(result, indent=2))
    else:
        show(result, Console())
    if result.get("failures"):
        raise typer.Exit(1)


@contextmanager
def failures() -> Iterator[None]:
    """Turn failures into exit codes; a traceback is for mistakes of ours."""
    try:
        yield
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted")
        raise typer.Exit(130) from None
    except SternaError as error:
        said = plain(str(error), keep="\n\t")
        Console(stderr=True, highlight=False).print(f"[red]error:[/red] {said}", soft_wrap=True)
        raise typer.Exit(1) from error
