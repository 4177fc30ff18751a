"""The columns of a table of runs: each name, and what it says of a run.

They are the same on the page and in the terminal.
"""

from __future__ import annotations

from collections.abc import Callable

from sterna.bench.report_data import Run
from sterna.readable import count, duration, milliseconds, size

COLUMNS: dict[str, Callable[[Run], str]] = {
    "bins": lambda run: count(run.get("bins")),
    "state": lambda run: size(run.get("bytes")),
    "steps": lambda run: count(run.get("steps")),
    "epochs": lambda run: count(run.get("epochs")),
    "took": lambda run: duration(run.get("duration_s")),
    "p99": lambda run: milliseconds(run.get("p99_ms")),
    "max": lambda run: milliseconds(run.get("max_ms")),
}
