"""The figures of the planner benchmark as tables."""

from __future__ import annotations

from typing import Any

from rich.table import Table

TITLES = {
    "state": "By state",
    "gamma": "By discount",
    "tau": "By balance",
    "bins": "By number of bins",
}
PLANNERS = {
    "ssm": "single step",
    "mtm": "looking ahead",
    "consistent_bounded": "hashing, bounded",
    "consistent": "hashing",
    "ssm_as_even_as_consistent": "single step, as even as hashing",
    "redist": "Redist",
    "storm": "Storm",
}
SETTING = ("state", "bins", "tau", "gamma")


def tables(result: dict[str, Any]) -> list[Table]:
    """One for each experiment and trace; the times of plans, which depend on no trace, in one."""
    out = []
    for name, lines in result["experiments"].items():
        if name == "time":
            out.append(_times(lines))
            continue
        if name == "response":
            out.append(_responses(lines))
            continue
        traces = dict.fromkeys(line["trace"] for line in lines)
        out += [_costs(TITLES[name], one, [line for line in lines if line["trace"] == one]) for one in traces]
    return out


def _costs(title: str, trace: str, lines: list[dict[str, Any]]) -> Table:
    """What each planner moves; what is the same in all lines is in the title."""
    there = [one for one in SETTING if one in lines[0]]
    varied = [one for one in there if len({line[one] for line in lines}) > 1]
    fixed = ", ".join(f"{one} {_told(lines[0][one])}" for one in there if one not in varied)
    table = Table(
        title=f"{title}: percent of all state moved by a migration\n{trace}{', ' if fixed else ''}{fixed}"
    )
    known = [one for one in PLANNERS if any(one in line["planners"] for line in lines)]
    for column in (*varied, *(PLANNERS[one] for one in known)):
        table.add_column(column, justify="right", overflow="fold")
    for line in lines:
        costs = (_cost(line["planners"].get(one)) for one in known)
        table.add_row(*(_told(line[one]) for one in varied), *costs)
    return table


def _cost(figures: dict[str, Any] | None) -> str:
    return "" if figures is None else f"{figures['moved_percent']:.2f}"


def _times(lines: list[dict[str, Any]]) -> Table:
    table = Table(title="Milliseconds that a single-step plan takes, median")
    for column in ("bins", "tau", "ms"):
        table.add_column(column, justify="right")
    for line in lines:
        table.add_row(str(line["bins"]), _told(line["tau"]), f"{line['ssm_ms_p50']:.2f}")
    return table


def _responses(lines: list[dict[str, Any]]) -> Table:
    table = Table(
        title="How long answers take, in ms, before and after a migration began: medians of all rounds",
        caption=(
            f"{lines[0]['workers'][0]} to {lines[0]['workers'][1]} workers, {lines[0]['rate']:,.0f} texts a "
            "second"
        ),
    )
    for column in ("application", "window", "planner", "strategy", "MB", "mean", "longest"):
        table.add_column(
            column, justify="left" if column in ("application", "planner", "strategy") else "right"
        )
    for line in lines:
        window = "" if line["window_s"] is None else f"{line['window_s']} s"
        spans = (
            f"{line[f'before_{name}']:,.0f} → {line[f'during_{name}']:,.0f}" for name in ("mean_ms", "max_ms")
        )
        moved = f"{line['moved_mb']:,.2f}"
        table.add_row(line["application"], window, line["planner"], line["strategy"], moved, *spans)
    return table


def _told(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
