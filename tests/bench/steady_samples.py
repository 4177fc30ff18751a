"""Made-up files of figures of epochs without migrations, and of the comparison with peers.

They are laid out as the benchmarks write them.
"""

from __future__ import annotations

MACHINE = {
    "processor": "AMD EPYC",
    "cores": 2,
    "memory_gb": 23.5,
    "system": "Linux",
    "load_average": [0.25, 1.0, 2.0],
    "versions": {"python": "3.11.7", "pyspark": "4.3.0"},
}


def quiet(percentiles=(300.0, 310.0, 305.0), native=500.0):
    """Latencies with 2^4, 2^12 and 2^20 bins, and of a native operator: their 99th percentiles."""
    names = [{"system": "sterna", "bins": 2**power, "power": power} for power in (4, 12, 20)]
    results = [
        {
            **name,
            "records": 1_000_000,
            "p50_ms": 0.6 * p99,
            "p90_ms": 0.9 * p99,
            "p99_ms": p99,
            "p9999_ms": 1.5 * p99,
            "max_ms": 1.6 * p99,
            "rounds": [p99 - 5.0, p99, p99 + 5.0],
            "beyond": [[0.3 * p99, 1.0], [0.6 * p99, 0.5], [p99, 0.01], [1.5 * p99, 1e-4], [1.6 * p99, 0.0]],
        }
        for name, p99 in zip([*names, {"system": "spark"}], [*percentiles, native], strict=True)
    ]
    return {
        "benchmark": "quiet",
        "keys": 10_000_000,
        "workers": 2,
        "rounds": 3,
        "rate": 50_000,
        "seconds": 15.0,
        "maximum": {"sterna": 1_000_000, "spark": 100_000},
        "results": results,
        "machine": MACHINE,
    }


def bins(ratios=(1.02, 1.0, 0.99)):
    results = [
        {
            "bins": 2**power,
            "power": power,
            "keys": 10_000_000,
            "rows_per_second": round(1_000_000 * ratio),
            "epoch_ms_p50": 200.0 / ratio,
            "epoch_ms_max": 300.0,
            "ratio": ratio,
        }
        for power, ratio in zip((4, 12, 20), ratios, strict=True)
    ]
    return {
        "benchmark": "bins",
        "rows_per_epoch": 200_000,
        "rounds": 4,
        "results": results,
        "machine": MACHINE,
    }


def throughput(quick_logs=8000):
    result = {
        "rows_per_epoch": 1000,
        "keys": 10_000_000,
        "sterna_rows_per_second": 7000,
        "sterna_epoch_ms_p50": 130.0,
        "sterna_epoch_ms_min": 95.0,
        "spark_rows_per_second": 4000,
        "spark_epoch_ms_p50": 240.0,
        "ratio": 1.75,
        "spark_quick_logs_rows_per_epoch": 1000,
        "spark_quick_logs_rows_per_second": quick_logs,
        "spark_quick_logs_epoch_ms_p50": 110.0,
    }
    return {"benchmark": "throughput", "rounds": 3, "results": [result], "machine": MACHINE}


def state():
    results = [
        {
            "keys": keys,
            "rows_per_second": 800_000,
            "epoch_ms_p50": 240.0,
            "control_epoch_ms_p50": 200.0,
            "epoch_ratio": ratio,
            "python_anonymous_mb_p50": None,
            "checkpoint_mb": 300.0,
        }
        for keys, ratio in ((1_000_000, 1.0), (64_000_000, 1.2))
    ]
    return {
        "benchmark": "state",
        "rows_per_epoch": 200_000,
        "bins": 4096,
        "results": results,
        "machine": MACHINE,
    }


def peers():
    """The files of ``sterna bench peers``, one a part, by name."""
    whole = all_peers()
    about = {"router": (), "queries": ("q",), "throughput": ("rate",), "rescale": ("longest",)}
    return {
        f"peers-{part}": {
            part: whole[part],
            "goals": {name: value for name, value in whole["goals"].items() if name.startswith(starts)},
            "configuration": whole["configuration"],
            "failures": [],
        }
        for part, starts in about.items()
    }


def all_peers():
    """What ``sterna bench peers`` prints, of the parts that the page reads."""
    rescaled = {
        "before_p50_ms": 300.0,
        "before_max_ms": 900.0,
        "completed_seconds": 20.0,
        "back_seconds": 0.5,
    }
    lines = {
        "sterna": {**rescaled, "during_max_ms": 1_100.0},
        "spark": {**rescaled, "during_max_ms": 1_100.0},
        "flink": {**rescaled, "before_p50_ms": 200.0, "during_max_ms": 9_000.0},
    }
    return {
        "router": {"packed_per_second_and_core": 1_500_000, "rows_per_second_and_core": 90_000},
        "queries": [
            {
                "query": "q3",
                "rows_per_epoch": 500_000,
                "sterna_state_rows": 2_200_000,
                "sterna_rows_per_second": 900_000,
                "spark_state_rows": 2_200_000,
                "spark_rows_per_second": 100_000,
                "ratio": 9.0,
                "other_sizes": [
                    {
                        "query": "q3",
                        "rows_per_epoch": 123_000,
                        "sterna_state_rows": 700_000,
                        "sterna_rows_per_second": 450_000,
                        "spark_state_rows": 700_000,
                        "spark_rows_per_second": 100_000,
                        "ratio": 4.5,
                    }
                ],
            },
            {
                "query": "q5",
                "rows_per_epoch": 200_000,
                "sterna_state_rows": 30_000,
                "sterna_rows_per_second": 500_000,
                "spark_state_rows": None,
                "spark_rows_per_second": 250_000,
                "ratio": 2.0,
            },
        ],
        "throughput": {
            "keys": 8_388_608,
            **{
                f"{name}_{what}": value
                for name, rate in (("sterna", 800_000), ("spark", 100_000), ("flink", 200_000))
                for what, value in (("records_per_second", rate), ("rounds", [rate]))
            },
            "ratio_to_flink": 4.0,
            "flink_source_records_per_second": 3_000_000,
            "few_keys": {
                "keys": 65_536,
                **{
                    f"{name}_{what}": value
                    for name, rate in (("sterna", 4_000_000), ("spark", 5_000_000), ("flink", 2_000_000))
                    for what, value in (
                        ("records_per_second", rate),
                        ("rounds", [rate, rate - 1_000_000, rate + 1_000_000]),
                    )
                },
                "ratio_to_spark": 0.8,
            },
        },
        "rescale": {
            "from": 2,
            "to": 4,
            "results": [
                {"system": name, "state_mb": 1024, "wrong_keys": 0, **line} for name, line in lines.items()
            ],
        },
        "goals": {
            "q3_ratio": 9.0,
            "q3_at_least_5": True,
            "q8_ratio": 4.0,
            "q8_at_least_5": False,
            "rate_to_flink": 4.0,
            "rate_to_flink_at_least_1.5": True,
            "longest_wait_to_flink": 0.3,
            "longest_wait_to_flink_at_most_0.2": False,
        },
        "configuration": {"sterna": {"bins": 4096, "for a rescale": {"bins": 256}}},
        "failures": [],
    }
