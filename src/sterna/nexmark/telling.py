"""What ``sterna nexmark run`` tells: figures for JSON, a report for the page, a table for the terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from sterna.bench.report_data import Report
from sterna.bench.traces import run_of
from sterna.bench.trial import latencies
from sterna.nexmark.settings import PAPER_BINS

if TYPE_CHECKING:
    from sterna.nexmark.highest import Found
    from sterna.nexmark.running import Fitted, Plan


def figures(plan: Plan, found: Found | None, fitted: Fitted, facts: dict[str, Any]) -> dict[str, Any]:
    """All figures; ``facts`` are those of the machine before anything ran."""
    migrations = [one for done in fitted.rounds.values() for one in done.migrations]
    steady = latencies([phase for done in fitted.rounds.values() for phase in done.quiet])
    return {
        "benchmark": "nexmark",
        "query": plan.query,
        "rate": round(fitted.rate),
        "searched": found is not None,
        "search": _search(plan, found, fitted, steady),
        "workers": plan.workers,
        "bins": plan.bins,
        "paper_bins": PAPER_BINS,
        "operators": migrations[0]["operators"] if migrations else [],
        "dilation": plan.setting.dilation,
        "in_flight": plan.setting.auctions(fitted.rate),
        "warm_up_seconds": round(plan.needed(fitted.rate) + plan.check, 1),
        "quiet_seconds": plan.course.quiet,
        "steady": steady,
        "migrations": migrations,
        "runs": {
            name: {"checked_ms": _ms(done.checked), "timeline": done.result["timeline"]}
            for name, done in fitted.rounds.items()
        },
        "machine": facts,
    }


def _search(
    plan: Plan, found: Found | None, fitted: Fitted, steady: dict[str, float]
) -> dict[str, Any] | None:
    """How the rate came about.

    ``kept`` tells whether no record of any run waited longer than it may, neither in its check nor in its
    quiet times.
    """
    if found is None:
        return None
    longest = max(done.checked for done in fitted.rounds.values())
    return {
        "latency_ms": _ms(plan.search.latency),
        "found": round(found.rate),
        "converged": found.converged,
        "tries": [one.to_json() for one in found.tries],
        "reductions": len(fitted.refused),
        "refused": [{"rate": round(rate), "longest_ms": _ms(waited)} for rate, waited in fitted.refused],
        "kept": longest <= plan.search.latency and steady["max_ms"] <= 1e3 * plan.search.latency,
        "checked_ms": _ms(longest),
    }


def _ms(seconds: float) -> float | None:
    return None if math.isinf(seconds) else round(seconds * 1e3, 1)


def report(plan: Plan, fitted: Fitted, told: dict[str, Any]) -> Report:
    """What a page is made of, with a run for each migration."""
    steady = told["steady"]
    return {
        "title": f"NEXMark {plan.query}: what moving state costs",
        "steady": {"p50_ms": steady["p50_ms"], "p99_ms": steady["p99_ms"], "max_ms": steady["max_ms"]},
        "runs": [
            {**run_of(name, one, done.result), "name": one["name"]}
            for name, done in fitted.rounds.items()
            for one in done.migrations
        ],
        "machine": told["machine"],
    }


def show(told: dict[str, Any], console: Console) -> None:
    """A table."""
    title = (
        f"NEXMark {told['query']}, {told['rate']:,} events a second, {told['bins']:,} bins of "
        f"{', '.join(told['operators'])}"
    )
    table = Table(title=title, caption=_how(told["search"]))
    for name in ("", "steps", "seconds", "state MB", "moved MB", "p99", "longest", "longest before"):
        table.add_column(name, justify="left" if not name else "right")
    for one in told["migrations"]:
        table.add_row(
            one["name"],
            str(one["steps"]),
            f"{one['seconds']:.1f}",
            f"{one['state_bytes'] / 1e6:,.1f}",
            f"{one['bytes'] / 1e6:,.1f}",
            f"{one['during']['p99_ms']:,.0f} ms",
            f"{one['during']['max_ms']:,.0f} ms",
            f"{one['before']['max_ms']:,.0f} ms",
        )
    console.print(table)


def _how(search: dict[str, Any] | None) -> str:
    if search is None:
        return "rate given"
    ended = "converged" if search["converged"] else "did not converge"
    kept = "kept" if search["kept"] else "not kept"
    return f"the search {ended}, reduced {search['reductions']} times, {search['latency_ms']:,.0f} ms {kept}"
