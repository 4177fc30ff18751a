"""Lines of code of each query, on Sterna and on Spark's own operators.

Both are counted in the same way (see ``sourcelines``). ``own`` are those of the query's own function;
``whole`` adds, once, every function, class and constant of the benchmark that it needs: the operators that
several queries share.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from sterna.nexmark.native import WHY_NOT
from sterna.nexmark.queries import QUERIES
from sterna.nexmark.sourcelines import Source

HERE = Path(__file__).parent
ROOM = "sterna.nexmark"
SIDES = ("sterna", "spark")


def lines(folder: Path = HERE) -> list[dict[str, Any]]:
    """A line for each query; the folder holds the source of ``sterna.nexmark``."""
    files = {f"{ROOM}.{path.stem}": path for path in sorted(folder.glob("*.py"))}
    files |= {f"{ROOM}.queries.{path.stem}": path for path in sorted(folder.glob("queries/*.py"))}
    source = Source(files)
    found = []
    for name in QUERIES:
        places = {"sterna": f"{ROOM}.queries.{name}", "spark": f"{ROOM}.native"}
        line: dict[str, Any] = {"query": name}
        for side, module in places.items():
            line[f"{side}_own"] = source.own(module, name)
            line[f"{side}_whole"] = source.lines(module, name)
        found.append({**line, "spark_note": WHY_NOT.get(name, "")})
    return found


def show(told: dict[str, Any], console: Console) -> None:
    """A table."""
    table = Table(title="Lines of code", caption="with what is shared in brackets")
    for name in ("query", "Sterna", "Spark", ""):
        table.add_column(name, justify="right" if name in {"Sterna", "Spark"} else "left")
    for line in told["lines"]:
        counts = (f"{line[f'{side}_own']} ({line[f'{side}_whole']})" for side in SIDES)
        table.add_row(line["query"], *counts, line["spark_note"])
    console.print(table)
