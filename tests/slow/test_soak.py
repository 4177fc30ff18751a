"""Soak: thousands of small epochs with moves leave nothing behind.

``STERNA_SOAK_EPOCHS`` says how many (10,000).

What may grow by nature is left out: the history, which keeps the last thousand epochs in which something
moved.
"""

from __future__ import annotations

import contextlib
import os
import statistics
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import sterna

EPOCHS = int(os.environ.get("STERNA_SOAK_EPOCHS", "10000"))
SAMPLES = 60
MOVE_EVERY = 50
SECOND = pa.scalar(1_000_000, pa.duration("us"))

pytestmark = pytest.mark.slow

WISHES = [
    sterna.rescale(3),
    {0: 2, 9: 1},
    sterna.bins(256),
    sterna.rescale(1),
    sterna.bins(64),
    sterna.rescale(2),
]

# How much more than in the second quarter there may be in the last: a factor, and a little that is noise.
BOUNDS = {
    "heap": (1.3, 20e6),
    "driver": (1.2, 30e6),
    "workers": (1.3, 50e6),
    "descriptors": (1.2, 20),
    "threads": (1.2, 10),
    "temporary files": (1.5, 50),
    "temporary bytes": (1.5, 5e6),
    "checkpoint files": (1.3, 100),
    "checkpoint bytes": (1.5, 2e6),
    "spark files": (1.3, 100),
    "spark bytes": (1.5, 1e6),
}


def recent(rows, tables, later):
    """Keeps rows for some seconds, and hands each key back once time has passed it."""
    if rows.num_rows:
        tables.past.append(rows)
        later.notify_at(pc.add(rows["timestamp"], pc.multiply(SECOND, 3)), rows)
    return pa.table({"key": later.due["key"], "bucket": pc.subtract(later.due["key"], 1)})


def dataflow(spark):
    """Two operators over a source without files of its own, with event time that passes a second an epoch."""
    numbers = (
        spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 200).option("numPartitions", 2)
    )
    numbers = numbers.option("advanceMillisPerBatch", 1000).load()
    keys = numbers.select(F.pmod(F.xxhash64("value"), F.lit(500)).alias("key"), "timestamp", "value")
    seen = sterna.read(keys).key_by("key", time="timestamp")
    seen = seen.unary(
        recent,
        tables={"past": sterna.rows("value long", keep="5 seconds")},
        output="key long, bucket long",
        later="value long",
    )
    return seen.named("recent").key_by("bucket").aggregate(n=sterna.count()).named("counts")


def size(folder, without=()):
    files = [path for path in Path(folder).rglob("*") if path.relative_to(folder).parts[0] not in without]
    sizes = []
    for path in files:
        try:
            if path.is_file():
                sizes.append(path.stat().st_size)
        except FileNotFoundError:
            continue
    return len(sizes), sum(sizes)


def total(processes, what):
    """The sum over all processes that are still there: Hadoop starts one to set a file's permissions."""
    found = 0
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            found += what(one)
    return found


def _own_bytes(process):
    return process.memory_full_info().uss


def sample(spark, checkpoint):
    """What the query holds at this moment."""
    spark._jvm.System.gc()
    runtime = spark._jvm.Runtime.getRuntime()
    me = psutil.Process()
    family = [me, *me.children(recursive=True)]
    out = {
        "heap": runtime.totalMemory() - runtime.freeMemory(),
        "driver": me.memory_info().rss,
        "workers": total(family, lambda one: _own_bytes(one) if "pyspark.daemon" in one.cmdline() else 0),
        "descriptors": total(family, lambda one: one.num_fds()),
        "threads": me.num_threads(),
    }
    out["temporary files"], out["temporary bytes"] = size(spark.conf.get("spark.local.dir"))
    out["checkpoint files"], out["checkpoint bytes"] = size(checkpoint, without=("spark", "history"))
    out["spark files"], out["spark bytes"] = size(f"{checkpoint}/spark")
    return out


def text(figures):
    return ", ".join(
        f"{name} {value if isinstance(value, tuple) else f'{value:,}'}" for name, value in figures.items()
    )


def test_thousands_of_epochs_leave_nothing_behind(spark, tmp_path, say):
    checkpoint = str(tmp_path / "checkpoint")
    query = dataflow(spark).start(
        checkpoint=checkpoint, bins=64, workers=2, watermark_delay="1 second", share_host_state=False
    )
    samples, moves = [], 0
    every = max(1, EPOCHS // SAMPLES)
    try:
        for epoch in range(0, EPOCHS, min(every, MOVE_EVERY)):
            query.wait_for_epoch(epoch)
            if epoch // MOVE_EVERY >= moves:
                query.migrate(WISHES[moves % len(WISHES)])
                moves += 1
            if epoch >= every * len(samples):
                samples.append(sample(spark, checkpoint))
                say(f"epoch {epoch}: {text(samples[-1])}")
        query.wait_for_epoch(EPOCHS)
        assert query.state("counts").agg(F.sum("n")).collect()[0][0] > 150 * (EPOCHS - 20)
    finally:
        query.stop()
    assert query.exception() is None
    assert len([event for event in query.history() if event["kind"] == "moved"]) > 0.6 * min(moves, 1000)
    quarter = len(samples) // 4
    report = {}
    for name, (factor, noise) in BOUNDS.items():
        before = statistics.median(one[name] for one in samples[quarter : 2 * quarter])
        after = statistics.median(one[name] for one in samples[-quarter:])
        report[name] = (before, after, after <= factor * before + noise)
    say(f"second quarter, last quarter: {text(report)}")
    assert all(fine for *_, fine in report.values()), report
