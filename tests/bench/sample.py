"""A report as a demo might give it, made up but plausible: the views are tested, and looked at, with it.

``python tests/bench/sample.py report.html`` writes the page.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

SLOT_S = 0.25
STEADY = {"p50_ms": 142.0, "p99_ms": 281.0, "max_ms": 322.0}
STATE = 98_300_000
MACHINE = {
    "processor": "AMD EPYC 7B13",
    "cores": 2,
    "memory_gb": 7.8,
    "system": "Linux-6.1.0-x86_64-with-glibc2.36",
    "load_average": [0.61, 0.43, 0.32],
    "master": "local[2]",
    "driver_memory": "1500m",
    "versions": {
        "python": "3.11.7",
        "java": "17.0.17",
        "pyspark": "4.3.0",
        "sterna": "0.1.0",
        "pyarrow": "26.0.1",
    },
}
# strategy, steps, how long it takes, the factor on latency while it lasts
STRATEGIES = [
    ("all at once", 1, 1.9, 8.5),
    ("fluid", 32, 8.4, 1.45),
    ("matched", 8, 4.6, 2.1),
    ("paced", 12, 6.8, 1.25),
]


def sample(seed: int = 7):
    random = np.random.default_rng(seed)
    runs = [
        _run(random, f"{strategy}, {way}", strategy, steps, took, factor)
        for strategy, steps, took, factor in STRATEGIES
        for way in ("there", "back")
    ]
    runs.append(_restart(random))
    return {
        "title": "A quarter of the state moves while the stream runs",
        "machine": MACHINE,
        "steady": dict(STEADY),
        "runs": runs,
        "outputs_match": True,
    }


def _run(random, name, strategy, steps, took, factor):
    start, length = 6.0, 22.0
    end = start + took * random.uniform(0.95, 1.05)
    timeline = []
    for t in np.arange(0, length, SLOT_S):
        p50 = STEADY["p50_ms"] * random.uniform(0.8, 1.2)
        p99 = STEADY["p99_ms"] * random.uniform(0.75, 1.0)
        if start <= t <= end:
            wave = factor * random.uniform(0.75, 1.0)
            p50, p99 = p50 * (1 + wave) / 2, p99 * wave
        elif end < t < end + factor / 4:
            p99 *= max(1.0, factor * (1 - (t - end) / (factor / 4)))
        timeline.append(_slot(t, p50, p99, p99 * random.uniform(1.01, 1.14)))
    chunks = np.linspace(0, 1, steps + 1)
    return {
        "name": name,
        "strategy": strategy,
        "bins": 32,
        "bytes": STATE,
        "steps": steps,
        "epochs": max(1, round(took / 0.2)) if steps > 1 else 1,
        "duration_s": end - start,
        **_over(timeline, start, end + 2),
        "timeline": timeline,
        "migration": {"start": start, "end": end},
        "gc": _collections(random, length),
        "memory": _memory(random, length),
        "moved": [(start + (end - start) * c, round(STATE * c)) for c in chunks.tolist()] + [(length, STATE)],
        "note": None,
    }


def _restart(random):
    """The stream stands still for a while, and then works off what has piled up."""
    start, back, caught_up, length = 6.0, 17.5, 22.5, 29.0
    timeline = []
    for t in np.arange(0, length, SLOT_S):
        p99 = STEADY["p99_ms"] * random.uniform(1.6, 2.0)
        if start < t < back:
            timeline.append({"t": float(t), "p50_ms": 0.0, "p99_ms": 0.0, "max_ms": 0.0, "records": 0})
            continue
        if back <= t < caught_up:
            p99 = max(p99, 1000 * (back - start) * (1 - (t - back) / (caught_up - back)) ** 1.5)
        timeline.append(_slot(t, p99 * 0.6, p99, p99 * 1.05))
    return {
        "name": "stop, repartition offline, restart",
        "strategy": "Spark",
        "bins": None,
        "bytes": 412_000_000,
        "steps": None,
        "epochs": None,
        "duration_s": back - start,
        **_over(timeline, start, caught_up),
        "timeline": timeline,
        "migration": {"start": start, "end": back},
        "gc": _collections(random, length),
        "memory": _memory(random, length),
        "moved": [],
        "note": (
            "Spark's own way with RocksDB state: the query is stopped, its checkpoint is repartitioned "
            "offline, and the query is started again."
        ),
    }


def _slot(t, p50, p99, most):
    return {
        "t": float(t),
        "p50_ms": float(p50),
        "p99_ms": float(p99),
        "max_ms": float(most),
        "records": 5_000,
    }


def _over(timeline, start, end):
    during = [slot for slot in timeline if start <= slot["t"] <= end and slot["records"]]
    return {
        "p50_ms": float(np.median([slot["p50_ms"] for slot in during])),
        "p99_ms": float(np.quantile([slot["p99_ms"] for slot in during], 0.97)),
        "max_ms": max(slot["max_ms"] for slot in during),
    }


def _collections(random, length):
    times = np.cumsum(random.uniform(1.2, 3.4, 20))
    return [(float(t), float(random.uniform(6, 40))) for t in times if t < length]


def _memory(random, length):
    return [
        {
            "t": float(t),
            "python_anonymous": int(2.3e8 + 2e7 * np.sin(t / 3) + random.uniform(0, 6e6)),
            "jvm_resident": int(1.1e9 + 9e6 * t + random.uniform(0, 2e7)),
        }
        for t in np.arange(0, length, 1.0)
    ]


if __name__ == "__main__":
    from sterna.bench.report import render

    Path(sys.argv[1]).write_text(render(sample()), encoding="utf-8")
