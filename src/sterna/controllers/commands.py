"""``sterna advise``: what controllers would do with a query, asked from another process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from sterna.commands import Checkpoint, How, Operator, Order
from sterna.configuration import MAX_WORKERS
from sterna.controllers.advising import advise as ask
from sterna.controllers.advising import seen
from sterna.controllers.autoscaler import Autoscaler, autoscaler
from sterna.controllers.balancer import Balancer, balancer
from sterna.controllers.verdict import Controller
from sterna.controllers.view import View
from sterna.errors import InvalidInput
from sterna.readable import size
from sterna.remote import Remote
from sterna.spelt import strategy_of
from sterna.strategies import from_json
from sterna.terminal import Format, Output

MOST_MOVES_TOLD = 64


class Kind(str, Enum):
    """Which controller."""

    balancer = "balancer"
    autoscaler = "autoscaler"


def advise(
    checkpoint: Checkpoint,
    *,
    controller: Annotated[
        list[Kind] | None,
        typer.Option(help="Whom to ask; may be given several times.", show_default="both"),
    ] = None,
    above: Annotated[
        float, typer.Option(help="Balancer: more than so many times the mean is too much for a worker.")
    ] = Balancer.above,
    tau: Annotated[
        str, typer.Option(help="Balancer: how much more than the mean a plan leaves to a worker, or least.")
    ] = str(Balancer.tau),
    operator: Operator = None,
    least: Annotated[int, typer.Option(help="Autoscaler: so many workers at least.")] = 1,
    most: Annotated[
        int, typer.Option(help="Autoscaler: so many at most.", show_default="no limit")
    ] = MAX_WORKERS,
    utilisation: Annotated[
        float, typer.Option(help="Autoscaler: which part of their time workers should be busy at most.")
    ] = Autoscaler.utilisation,
    pays_back: Annotated[
        str | None,
        typer.Option(
            help="Within how long a move must make up for what it takes.",
            show_default=f"{Balancer.pays_back:g} and {Autoscaler.pays_back:g} seconds",
        ),
    ] = None,
    strategy: How = "all_at_once",
    output: Output = Format.table,
) -> None:
    """What a balancer and an autoscaler would do, by what the retained epochs tell. Changes nothing.

    The query may be running or stopped; the answer is as of its last epoch.
    """
    remote = Remote(checkpoint)
    view = seen(remote)
    if operator is not None and operator not in view.operators:
        raise InvalidInput(f"operator {operator!r} does not exist; there are {sorted(view.operators)}")
    how = from_json(strategy_of(strategy, Order.as_given.value, 0))
    wanted = controller or list(Kind)
    asked: dict[Kind, Controller] = {
        Kind.balancer: balancer(
            above=above,
            tau=_number(tau),
            epochs=max(1, min(Balancer.epochs, len(view.samples))),
            pays_back=Balancer.pays_back if pays_back is None else pays_back,
            strategy=how,
            operator=operator,
        ),
        Kind.autoscaler: autoscaler(
            most=most,
            least=least,
            utilisation=utilisation,
            window=_window(view),
            pays_back=Autoscaler.pays_back if pays_back is None else pays_back,
            strategy=how,
        ),
    }
    result = ask(remote, view, [asked[one] for one in dict.fromkeys(wanted)])
    if output is Format.json:
        typer.echo(json.dumps(result, indent=2))
        return
    console = Console(highlight=False)
    console.print(f"as of epoch {result['epoch']}, by the last {result['epochs_seen']} epochs")
    for one in result["controllers"]:
        console.print(*_lines(one), sep="\n", soft_wrap=True)


def _window(view: View) -> float:
    """As long as the retained epochs go back: others are not known here."""
    return max(view.now - view.since_start[0].time, 1e-3) if view.samples else 1.0


def _number(text: str) -> float | str:
    """A number where it is one; what is wrong with another text, the balancer says."""
    try:
        return float(text)
    except ValueError:
        return text


def _options(target: Mapping[str, Any]) -> str:
    """A target as ``sterna apply`` takes it.

    >>> _options({"kind": "explicit", "assignment": [[3, 1], [4, 1], [5, 0], [9, 0]]})
    '--move 3-4:1 --move 5:0 --move 9:0'
    >>> _options({"kind": "rescale", "workers": 8})
    '--workers 8'
    """
    if target["kind"] != "explicit":
        return f"--workers {target['workers']}"
    runs: list[list[int]] = []  # first bin, last bin, worker
    for bin_, worker in sorted(target["assignment"]):
        if runs and runs[-1][1:] == [bin_ - 1, worker]:
            runs[-1][1] = bin_
        else:
            runs.append([bin_, bin_, worker])
    if len(runs) > MOST_MOVES_TOLD:
        return f"{len(runs):,} runs of bins; --format json tells them all"
    return " ".join(
        f"--move {first}{'' if first == last else f'-{last}'}:{worker}" for first, last, worker in runs
    )


def _lines(one: dict[str, Any]) -> list[str]:
    lines = [f"[bold]{one['controller']}[/bold]  {one['verdict']}: {escape(one['why'])}"]
    for name, planned in one.get("operators", {}).items():
        told = (
            f"  {name}: {planned['bins']:,} bins, {size(planned['bytes'])}, {planned['steps']:,} steps, "
            f"{planned['workers'][0]} → {planned['workers'][1]} workers"
        )
        lines.append(escape(told))
    if "target" in one:
        operator = "" if one["operator"] is None else f" --operator {one['operator']}"
        lines.append(escape(f"  target:{operator} {_options(one['target'])}"))
    return lines
