"""Made-up files of figures, laid out as the benchmarks write them."""

from __future__ import annotations

import json
import math

from bench import steady_samples as steady
from bench.steady_samples import MACHINE

QUIET_MS = 1000.0


def spread(middle, low=0.9, high=1.2):
    return {"median": middle, "least": middle * low, "greatest": middle * high}


def latencies(most):
    return {"records": 1000, "p50_ms": most / 3, "p99_ms": most * 0.9, "max_ms": most}


def one_round(during, seconds, steps, second=40.0, bins=64, moved=64_000_000):
    return {
        "way": "there",
        "before": latencies(QUIET_MS),
        "during": latencies(during),
        "after": latencies(QUIET_MS),
        "max_ratio": during / QUIET_MS,
        "p99_ratio": during / QUIET_MS,
        "increase_ms": during - QUIET_MS,
        "second": second,
        "seconds": seconds,
        "ended": True,
        "recovered_seconds": 3.0,
        "steps": steps,
        "bins": bins,
        "bytes": moved,
        "operators": ["binary", "aggregate"],
        "state_bytes": 4 * moved,
        "epoch_ms": {
            "before": {"epochs": 9, "p50_ms": 200.0},
            "during": {"epochs": steps, "p50_ms": 300.0},
        },
        "limit_ms": 500.0,
        "within_latency": 0.99,
        "within_trigger": 0.98,
    }


def line(strategy, during, seconds, steps, *, keys=1_000_000, bins=256, rate=50_000, before=QUIET_MS, **more):
    """A line of ``sterna bench migrate``, with two rounds."""
    extra = more.pop("extra_mb", 40.0)
    ended = more.pop("ended", True)
    second = more.pop("second", 40.0)
    return {
        "strategy": strategy,
        "keys": keys,
        "bins": bins,
        "rate": rate,
        **more,
        "before_max_ms": spread(before),
        "during_max_ms": spread(during),
        "max_ratio": spread(during / before),
        "p99_ratio": spread(during / before),
        "increase_ms": spread(during - before),
        "seconds": spread(seconds),
        "within_latency": spread(0.98, 0.97, 1.0),
        "within_trigger": spread(0.98, 0.97, 1.0),
        "worker_anonymous_extra_mb": spread(extra),
        "jvm_resident_extra_mb": {"median": 3.0, "least": -9.0, "greatest": 12.0},
        "bin_bytes": 8 * 2**20,
        "extra_bins": spread(extra / 8),
        "ended": ended,
        "rounds_measured": 2,
        "after_max_ms": spread(before),
        "steps": steps,
        "bytes": 64_000_000,
        "rounds": [one_round(during * f, seconds * f, steps, second) for f in (0.9, 1.2)],
    }


def migrate(name, results, **more):
    found = {"results": results, "goals": {}, **more}
    return {
        "benchmark": "migrate",
        "rounds": 2,
        "failures": [],
        "workers": 4,
        "experiments": {name: found},
        "machine": MACHINE,
    }


def slots(until, spike_at=20.0, spike=5000.0):
    return [
        {
            "second": t / 4,
            "t": t / 4,
            "records": 250,
            "p50_ms": 300.0,
            "p99_ms": 700.0 + 50 * math.sin(t),
            "max_ms": spike if abs(t / 4 - spike_at) < 2 else 900.0 + 80 * math.sin(t),
        }
        for t in range(until * 4)
    ]


def headline(*, spike=5000.0, gentle=1100.0, timelines=False, offline=True):
    """All strategies at one size, and Spark's way."""
    results = [
        line("all_at_once", spike, 3.0, 1),
        line("matched", gentle * 1.2, 60.0, 128),
        line("paced", gentle, 30.0, 50),
    ]
    way = {
        "before": latencies(1900.0),
        "during": latencies(30_000.0),
        "max_ratio": 15.8,
        "seconds": 40.0,
    }
    more = {
        "goals": {
            "matched_max_ratio": 1.3,
            "matched_within_1.5": True,
            "paced_within_latency": 0.98,
            "paced_keeps_it_and_ends": False,
        },
        "offline": {"rate": 24_000, "there": way, "back": way} if offline else {"reason": "Spark 4.1 can't"},
    }
    if timelines:
        more["runs"] = [
            {
                "name": one["strategy"],
                "strategy": one["strategy"],
                "timeline": slots(50 + i * 40, spike=5000.0 if not i else 1200.0),
                "migration": {"start": 20.0, "end": 24.0 + i * 30},
            }
            for i, one in enumerate(results)
        ]
    return migrate("headline", results, **more)


def sweep(name, sizes, latency):
    """A sweep over sizes, (keys, bins) each.

    ``latency(strategy, index)`` gives the longest latency during.
    """
    results = [
        line(strategy, latency(strategy, i), 2.0 * steps, steps, keys=keys, bins=bins)
        for i, (keys, bins) in enumerate(sizes)
        for strategy, steps in (
            ("all_at_once", 1),
            ("matched", bins // 8),
            ("paced", 6),
            *([("fluid", bins // 4)] if bins <= 256 else []),
        )
    ]
    return migrate(name, results)


def load():
    results = [
        line(strategy, base + 4000 * share, 10.0, 16, rate=round(100_000 * share), load_share=share)
        for share in (0.125, 0.25, 0.5, 0.75)
        for strategy, base in (("all_at_once", 3000.0), ("matched", 1200.0), ("fluid", 1100.0))
    ]
    return migrate("load", results)


def memory():
    results = [
        line(strategy, 2000.0, seconds, 8, keys=keys, bins=32, extra_mb=extra, second=second)
        for keys in (1_000_000, 4_000_000)
        for strategy, seconds, extra, second in (
            ("all_at_once", 1.0, 400.0, 20.0),
            ("matched", 5.0, 40.0, 45.0),
            ("paced", 9.0, -3.0, 75.0),
        )
    ]
    samples = [
        {"second": float(t), "worker_anonymous_mb": 400 + 20 * math.sin(t), "jvm_resident_mb": 5000.0}
        for t in range(100)
    ]
    return migrate("memory", results, over_time={"1000000": samples, "4000000": samples})


def afterwards(change=-0.01, low=-0.05, high=0.03):
    pairs = [{"control": 100_000.0, "moved": 101_000.0}, {"control": 99_000.0, "moved": 98_500.0}]
    result = {
        "keys": 4_000_000,
        "bins": 256,
        "strategy": "matched",
        "steps": 64,
        "before": pairs,
        "after": pairs,
        "change": change,
        "interval": [low, high],
    }
    return migrate("afterwards", [result])


def nexmark(query, *, moved=50_000_000, spike=4000.0, fine=1050.0):
    migrations = [
        {
            "name": f"{strategy} {way}",
            "strategy": strategy,
            **one_round(during, seconds, steps, second, moved=moved),
        }
        for strategy, way, during, seconds, steps, second in (
            ("all_at_once", "there", spike, 3.0, 1, 40.0),
            ("all_at_once", "and back", spike, 3.0, 1, 140.0),
            ("matched", "there", fine, 40.0, 64, 40.0),
            ("matched", "and back", fine, 45.0, 64, 140.0),
        )
    ]
    return {
        "benchmark": "nexmark",
        "query": query,
        "rate": 60_000,
        "searched": True,
        "search": {
            "latency_ms": 2000.0,
            "found": 70_000,
            "converged": True,
            "tries": [
                {"events_per_epoch": 60_000, "epoch_ms": 800.0, "longest_ms": 1900.0, "windows_full": True}
            ],
            "reductions": 1,
            "refused": [{"rate": 70_000, "longest_ms": 2400.0}],
            "kept": True,
            "checked_ms": 1200.0,
        },
        "workers": 4,
        "bins": 256,
        "paper_bins": 4096,
        "operators": ["binary", "aggregate"],
        "dilation": 1.0,
        "in_flight": 2_000_000,
        "warm_up_seconds": 120.0,
        "quiet_seconds": 60.0,
        "steady": latencies(QUIET_MS),
        "migrations": migrations,
        "runs": {
            strategy: {"checked_ms": 1200.0, "timeline": slots(200, spike_at=at, spike=most)}
            for strategy, at, most in (("all_at_once", 140.0, spike), ("matched", 60.0, fine))
        },
        "machine": MACHINE,
    }


def every():
    """All files, by name."""
    powers = [(16_000_000, 2**p) for p in (4, 6, 8, 10)]
    keys = [(2**n * 1_000_000, 256) for n in (2, 3, 4)]
    both = [(2**n * 1_000_000, 2 ** (n + 3)) for n in (2, 3, 4)]
    high = {"all_at_once": 4000.0, "matched": 1500.0, "paced": 1300.0, "fluid": 1200.0}
    return {
        "migrate-headline": headline(timelines=True),
        "migrate-bins": sweep(
            "bins", powers, lambda s, i: high[s] / (1 if s == "all_at_once" else 1 + i / 4)
        ),
        "migrate-keys": sweep("keys", keys, lambda s, i: high[s] * (1 + i)),
        "migrate-proportional": sweep(
            "proportional", both, lambda s, i: high[s] * (1 + i if s == "all_at_once" else 1)
        ),
        "migrate-load": load(),
        "migrate-memory": memory(),
        "migrate-afterwards": afterwards(),
        **{f"nexmark-q{n}": nexmark(f"q{n}", moved=0 if n < 3 else 50_000_000) for n in range(1, 9)},
        "quiet": steady.quiet(),
        "bins": steady.bins(),
        "throughput": steady.throughput(),
        "state": steady.state(),
        **steady.peers(),
    }


def written(folder, files):
    """The files in a folder."""
    folder.mkdir(exist_ok=True)
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder
