"""What a comparison with peers comes to: goals, where a peer is better, how each was set up, and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from sterna.bench.peers import flink, queries, sides
from sterna.bench.peers.better import SYSTEMS, counts, sizes
from sterna.bench.peers.flink_count import COMBINING, LAP, RACE
from sterna.bench.peers.lap import BEFORE
from sterna.bench.systems import SPARK_STATE
from sterna.readable import count
from sterna.session import FILE_MANAGER, LOCAL_FILE_MANAGER

TO_FLINK_LATENCY, TO_FLINK_RATE = 0.2, 1.5


def goals(found: dict[str, Any]) -> dict[str, Any]:
    """What was wanted, and what it came to."""
    out: dict[str, Any] = {}
    if "router" in found:
        out["packed_per_second_and_core"] = found["router"]["packed_per_second_and_core"]
        out["packed_at_least_a_million"] = found["router"]["at_least_a_million"]
    for line in found.get("queries", []):
        if "at_least_5_times" in line:
            out[f"{line['query']}_ratio"] = line["ratio"]
            out[f"{line['query']}_at_least_{queries.LEAST_RATIO:g}"] = line["at_least_5_times"]
    rate = found.get("throughput", {}).get("ratio_to_flink")
    if rate is not None:
        out["rate_to_flink"] = rate
        out[f"rate_to_flink_at_least_{TO_FLINK_RATE}"] = rate >= TO_FLINK_RATE
    lines = found.get("rescale", {}).get("results", [])
    most = max((line["keys"] for line in lines), default=0)
    largest = {line["system"]: line for line in lines if line["keys"] == most}
    if {"sterna", "flink"} <= set(largest):
        share = largest["sterna"]["during_max_ms"] / max(largest["flink"]["during_max_ms"], 1e-9)
        out["longest_wait_to_flink"] = round(share, 3)
        out[f"longest_wait_to_flink_at_most_{TO_FLINK_LATENCY}"] = share <= TO_FLINK_LATENCY
    if lines:
        out["nothing_lost_or_doubled"] = all(not line["wrong_keys"] for line in lines)
    return out


def configuration(memory: str, bins: int, throughput_bins: int) -> dict[str, Any]:
    """How each system is set up; Sterna has so many bins while it rescales, and so many otherwise."""
    return {
        "sterna": {
            "workers": BEFORE,
            "bins": throughput_bins,
            "for a rescale": {"bins": bins, "share_host_state": False, "strategy": "matched"},
        },
        "spark": {
            **SPARK_STATE,
            FILE_MANAGER: LOCAL_FILE_MANAGER,
            "spark.sql.shuffle.partitions": str(BEFORE),
            "for the queries": {sides.JOIN_FORMAT: f"{' or '.join(sides.JOIN_FORMATS)}, whichever is faster"},
        },
        "flink": _flink(memory),
    }


def _flink(memory: str) -> dict[str, Any]:
    """How Flink is set up: what is the same for everything, and what is not."""
    lap, race = (
        {
            **{
                key: value
                for key, value in flink.settings(
                    Path("/"), 0, BEFORE, tuning.slots, memory, tuning.checkpoint, tuning.more
                ).items()
                if not key.endswith(("port", "address", "host", "dir", "dirs"))
            },
            **tuning.options,
            "source.monitor-interval": tuning.look,
        }
        for tuning in (LAP, RACE)
    )
    same = {key: value for key, value in lap.items() if race.get(key) == value}
    return {
        "package": flink.PACKAGE,
        **same,
        "for a rescale": {key: value for key, value in lap.items() if key not in same},
        "for the most records": {key: value for key, value in race.items() if key not in same},
        "for the most records over few keys": {
            key: value for key, value in COMBINING.options.items() if RACE.options[key] != value
        },
    }


def show(result: dict[str, Any], console: Console) -> None:
    """Print the figures as tables."""
    if "router" in result:
        told = result["router"]
        for way in ("packed", "rows"):
            console.print(
                f"NEXMark into the router, {way}: {told[f'{way}_per_second_and_core']:,} events a second and "
                "core"
            )
    if "queries" in result:
        console.print(_queries(result["queries"]))
    if "throughput" in result:
        for told in counts(result["throughput"]):
            console.print(_throughput(told))
    if "rescale" in result:
        console.print(_rescale(result["rescale"]))
    if result["peer_better"]:
        console.print("Where a peer is better:")
        for sentence in result["peer_better"]:
            console.print(f"- {sentence}", markup=False)
    for failure in result["failures"]:
        console.print(f"failed: {failure}", markup=False)


def _queries(lines: list[dict[str, Any]]) -> Table:
    table = Table(title="NEXMark: Sterna and Spark's own operators")
    heads = (
        "query",
        "rows/epoch",
        "Sterna: state rows",
        "Spark: state rows",
        "Sterna rows/s",
        "Spark rows/s",
        "ratio",
    )
    for name in heads:
        table.add_column(name, justify="left" if name == "query" else "right")
    for line in sizes(lines):
        table.add_row(
            line["query"],
            f"{line['rows_per_epoch']:,}",
            *(count(line[f"{side}_state_rows"]) for side in queries.SIDES),
            *(f"{line[f'{side}_rows_per_second']:,}" for side in queries.SIDES),
            f"{line['ratio']:.2f}×",
        )
    return table


def _throughput(told: dict[str, Any]) -> Table:
    table = Table(title=f"Counting by key: {told['keys']:,} keys")
    for name in ("", "records/s", "Sterna's ratio to it"):
        table.add_column(name, justify="right" if name else "left")
    for name in SYSTEMS:
        if f"{name}_records_per_second" in told:
            ratio = told.get(f"ratio_to_{name}")
            table.add_row(
                name, f"{told[f'{name}_records_per_second']:,}", "" if ratio is None else f"{ratio:.2f}×"
            )
    return table


def _rescale(told: dict[str, Any]) -> Table:
    table = Table(title=f"From {told['from']} workers to {told['to']}", caption="waits in ms")
    for name in (
        "MB",
        "",
        "p99 before",
        "longest before",
        "longest during",
        "complete",
        "back to usual",
        "wrong keys",
    ):
        table.add_column(name, justify="right" if name else "left")
    for line in told["results"]:
        table.add_row(
            f"{line['state_mb']:,}",
            line["system"],
            *(f"{line[name]:,.0f}" for name in ("before_p99_ms", "before_max_ms", "during_max_ms")),
            f"{line['completed_seconds']:,.1f} s",
            "not seen" if line["back_seconds"] is None else f"{line['back_seconds']:,.1f} s",
            str(line["wrong_keys"]),
        )
    return table
