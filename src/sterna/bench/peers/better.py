"""Where a peer is better than Sterna, in words.

In: what ``bench peers`` has found, or a file of it. Out: a sentence for each figure that is better of a peer.
Nothing here needs Spark.
"""

from __future__ import annotations

from typing import Any

SYSTEMS = ("sterna", "spark", "flink")
WORDS = {
    "before_p50_ms": "the median latency before",
    "before_p99_ms": "the 99th percentile before",
    "before_max_ms": "the longest wait before",
    "during_p50_ms": "the median latency while it rescales",
    "during_p99_ms": "the 99th percentile while it rescales",
    "during_max_ms": "the longest wait while it rescales",
    "increase_ms": "what the rescale adds to the longest wait",
    "completed_seconds": "the seconds until it is complete",
    "back_seconds": "the seconds until latency is what it was",
}
"""The figures of a rescale, all of which are the better the less they are."""


def peer_better(found: dict[str, Any]) -> list[str]:
    """In words, wherever a peer has the better figure."""
    out = [
        (
            f"{line['query']}, {line['rows_per_epoch']:,} rows an epoch: Spark's own version takes "
            f"{line['spark_rows_per_second']:,} rows a second, Sterna {line['sterna_rows_per_second']:,}"
        )
        for line in sizes(found.get("queries", []))
        if line["ratio"] < 1
    ]
    out += [
        (
            f"count by key, {rates['keys']:,} keys: {name} takes {rates[f'{name}_records_per_second']:,} "
            f"records a second, Sterna {rates['sterna_records_per_second']:,}"
        )
        for rates in counts(found.get("throughput", {}))
        for name in SYSTEMS[1:]
        if rates.get(f"ratio_to_{name}", 1.0) < 1
    ]
    lines = found.get("rescale", {}).get("results", [])
    mine = {line["state_mb"]: line for line in lines if line["system"] == "sterna"}
    for line in lines:
        ours = mine.get(line["state_mb"])
        if line["system"] == "sterna" or ours is None:
            continue
        for name, what in WORDS.items():
            if name not in line or name not in ours:
                continue
            if line[name] is not None and (ours[name] is None or line[name] < ours[name]):
                out.append(
                    f"{line['state_mb']:,} MB: {what}: {line['system']} {line[name]:,g}, Sterna "
                    f"{_number(ours[name])}"
                )
    return out


def sizes(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines of the queries, each followed by those of other sizes of its epochs."""
    return [one for line in lines for one in (line, *line.get("other_sizes", []))]


def counts(told: dict[str, Any]) -> list[dict[str, Any]]:
    """The counts over many keys and over few, as far as they were measured."""
    return [one for one in (told, told.get("few_keys", {})) if "keys" in one]


def _number(value: float | None) -> str:
    return "not seen" if value is None else f"{value:,g}"
