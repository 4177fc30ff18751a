"""``sterna plan precompute``: values for the plan that looks ahead.

What takes seconds to import is imported when the command runs.
"""

# ruff: noqa: PLC0415  -- see the docstring

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from sterna.configuration import MAX_WORKERS
from sterna.errors import InvalidInput
from sterna.terminal import Folder, Format, Master, Memory, Output, told

if TYPE_CHECKING:
    from sterna.planning.matrix import Matrix
    from sterna.planning.values import Values

BINS = 64


def precompute(
    file: Annotated[Path, typer.Argument(dir_okay=False, help="Where the values go, an .npz file.")],
    *,
    checkpoint: Annotated[
        str | None,
        typer.Option(help="A query's checkpoint: its bins, and its migrations, if nothing else is given."),
    ] = None,
    operator: Annotated[
        str | None, typer.Option(help="The query's operator.", show_default="the only one")
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="CSV: a time, at a constant step, and how many workers there were.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="CSV with the columns size and load, a line for each bin."
        ),
    ] = None,
    bins: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="So many bins, all alike; of a query, so many groups of neighbouring bins.",
            show_default=str(BINS),
        ),
    ] = None,
    workers: Annotated[
        str | None,
        typer.Option(
            help="The worker counts there may be: 8-16, or 2,4,8.", show_default="those in the history"
        ),
    ] = None,
    tau: Annotated[float, typer.Option(help="How much more than the mean load a worker may have.")] = 0.2,
    gamma: Annotated[float, typer.Option(help="What a migration counts against the one before it.")] = 0.8,
    output: Output = Format.table,
    master: Master = "local[2]",
    memory: Memory = "1g",
    folder: Folder = None,
) -> None:
    """Compute beforehand, on Spark, what ways to place the bins will cost in later migrations.

    It goes by how worker counts followed each other. All ways are looked at where they are few, else some
    hundreds for each worker count.
    """
    from sterna.planning.inputs import Inputs
    from sterna.planning.precompute import on_spark
    from sterna.planning.search import search
    from sterna.planning.values import Values
    from sterna.session import interruptible, workplace

    matrix = _matrix_of(checkpoint, operator, history, workers)
    sizes, loads = _bins_of(checkpoint, operator, state, bins)
    inputs = Inputs.of(sizes, loads, matrix, tau, gamma)
    if not file.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {file.parent}", param_hint="FILE")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise typer.BadParameter(f"{file} can't be written", param_hint="FILE")
    start = time.monotonic()
    with (
        workplace(master, memory, str(folder) if folder else None) as (spark, _),
        Progress(console=Console(stderr=True), transient=True) as bar,
    ):
        task = bar.add_task("values", total=1.0)
        found = interruptible(
            lambda: search(inputs, each=on_spark(spark), tell=lambda part: bar.update(task, completed=part)),
            spark.stop,
        )
    values = Values(inputs, found)
    values.save(file)
    told(
        {"file": str(file), **_facts(values), "seconds": round(time.monotonic() - start, 1)},
        _show,
        output,
    )


def counts_of(text: str) -> list[int]:
    """Worker counts as people write them.

    >>> counts_of("8-10"), counts_of("2,4,8")
    ([8, 9, 10], [2, 4, 8])
    """
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", part)
        if match is None:
            raise InvalidInput(f"{text!r} are no worker counts; write 8-16, or 2,4,8")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise InvalidInput(f"{part.strip()!r} goes down; write {last}-{first}")
        if last > MAX_WORKERS:
            raise InvalidInput(f"{part.strip()!r} is too many; there are at most {MAX_WORKERS} workers")
        found += range(first, last + 1)
    return found


def _matrix_of(
    checkpoint: str | None, operator: str | None, history: Path | None, workers: str | None
) -> Matrix:
    from sterna.planning import history as past
    from sterna.planning.matrix import Matrix

    if history is not None:
        changes = past.changes(past.counts(history))
    elif checkpoint is not None:
        changes = past.changes_of_query(checkpoint, operator)
    else:
        raise InvalidInput("name a history to learn from: --history or --checkpoint")
    return Matrix.learnt(changes, counts_of(workers) if workers is not None else None)


def _bins_of(
    checkpoint: str | None, operator: str | None, state: Path | None, bins: int | None
) -> tuple[list[float], list[float]]:
    """Sizes and loads."""
    if state is not None:
        if bins is not None:
            raise InvalidInput("--state says how many bins there are: leave --bins out")
        return _bins_of_file(state)
    if checkpoint is not None:
        return _bins_of_query(checkpoint, operator, bins or BINS)
    return [1.0] * (bins or BINS), [1.0] * (bins or BINS)


def _bins_of_file(path: Path) -> tuple[list[float], list[float]]:
    from sterna.planning.lines import Sheet

    sheet = Sheet.read(path)
    sizes, loads = (
        [
            line.amount(sheet.column(what), f"the {what} of bin {bin_}")
            for bin_, line in enumerate(sheet.lines)
        ]
        for what in ("size", "load")
    )
    return sizes, loads


def _bins_of_query(checkpoint: str, operator: str | None, groups: int) -> tuple[list[float], list[float]]:
    from sterna import asking
    from sterna.remote import Remote

    remote = Remote(checkpoint)
    last = remote.last()
    names = asking.operators(operator, last)
    if len(names) > 1:
        raise InvalidInput(f"the query has several operators: name one of {', '.join(names)} with --operator")
    known = remote.statistics(names[0], last)
    if len(known.bytes) % groups:
        raise InvalidInput(
            f"{len(known.bytes)} bins can't be put into {groups} groups alike; --bins must be a power of "
            "two, no more than that"
        )
    known = known.at(groups)
    sizes = known.bytes if known.bytes.any() else known.bytes + 1
    return sizes.tolist(), (known.rows if known.rows.any() else sizes).tolist()


def _facts(values: Values) -> dict[str, Any]:
    return {
        "bins": values.inputs.bins,
        "workers": list(values.inputs.matrix.counts),
        "tau": values.inputs.tau,
        "gamma": values.inputs.gamma,
        "exact": values.found.exact,
        "partitionings": {str(count): len(rows) for count, rows in values.found.candidates.items()},
    }


def _show(result: dict[str, Any], console: Console) -> None:
    kind = "all partitionings, so exact" if result["exact"] else "some partitionings of many"
    console.print(
        f"{result['file']}: the values of {kind}, in {result['seconds']:,.1f} s",
        soft_wrap=True,
        highlight=False,
    )
    table = Table()
    table.add_column("workers", justify="right")
    table.add_column("partitionings", justify="right")
    for count, many in result["partitionings"].items():
        table.add_row(count, f"{many:,}")
    console.print(table)
