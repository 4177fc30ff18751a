"""The figures of the migration experiments as tables."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

COLUMNS = ("strategy", "keys", "bins", "rec/s", "steps", "s", "before", "during", "ratio", "within", "MB")


def show(result: dict[str, Any], console: Console) -> None:
    """Print the figures as tables, and what the goals come to."""
    for name, found in result["experiments"].items():
        if name == "afterwards":
            console.print(_afterwards(found))
        else:
            console.print(_migrations(name, found))
        for goal, value in found["goals"].items():
            console.print(f"  {goal}: {value}", highlight=False)


def _migrations(name: str, found: dict[str, Any]) -> Table:
    rounds = max((len(line["rounds"]) for line in found["results"]), default=0)
    caption = (
        f"medians of {rounds} rounds; before, during: largest latency in ms; within: epochs within 1.25 "
        "times the 99th percentile before; MB: more anonymous memory of the Python workers"
    )
    table = Table(title=f"Migrations: {name}", caption=caption)
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "strategy" else "right", overflow="fold")
    for line in found["results"]:
        table.add_row(*_row(line))
    offline = found.get("offline", {})
    for way in ("there", "back"):
        if way in offline:
            one = offline[way]
            cells = [f"Spark, offline, {way}", "", "", f"{offline['rate']:,}", "", f"{one['seconds']:,.0f}"]
            cells += [f"{one[when]['max_ms']:,.0f}" for when in ("before", "during")]
            table.add_row(*cells, f"{one['max_ratio']:.2f}×", "", "")
    if "reason" in offline:
        table.add_row(offline["reason"], *[""] * (len(COLUMNS) - 1))
    return table


def _row(one: dict[str, Any]) -> list[str]:
    extra = one["worker_anonymous_extra_mb"]["median"]
    return [
        one["strategy"],
        f"{one['keys']:,}",
        f"{one['bins']:,}",
        f"{one['rate']:,}",
        f"{one['steps']:,.0f}{'' if one['ended'] else ' …'}",
        f"{one['seconds']['median']:,.1f}",
        f"{one['before_max_ms']['median']:,.0f}",
        f"{one['during_max_ms']['median']:,.0f}",
        f"{one['max_ratio']['median']:.2f}×",
        f"{one['within_latency']['median']:.1%}",
        "unknown" if extra is None else f"{extra:+,.1f}",
    ]


def _afterwards(found: dict[str, Any]) -> Table:
    table = Table(title="Rows a second before and after a migration there and back")
    for column in ("when", "control", "migrated", "lead"):
        table.add_column(column, justify="right")
    (result,) = found["results"]
    for when in ("before", "after"):
        for one in result[when]:
            lead = one["moved"] / one["control"] - 1
            table.add_row(when, f"{one['control']:,.0f}", f"{one['moved']:,.0f}", f"{lead:+.1%}")
    low, high = result["interval"]
    table.caption = f"change of the lead: {result['change']:+.1%}, 95 % interval {low:+.1%} to {high:+.1%}"
    return table
