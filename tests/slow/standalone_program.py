"""A query on a standalone cluster whose executors dynamic allocation gives and takes.

It prints what was seen of it, as JSON. It begins with one executor. More come as tasks wait; their cores are
used. One is drained, the input ends for a while, and Spark takes the idle one; then the input goes on.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import functions as F

import sterna

MOST, ROWS, KEYS = 3, 600, 300
PATIENCE = 240.0
ELASTIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.timeout": "3s",
    "spark.dynamicAllocation.initialExecutors": "1",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": str(MOST),
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    "spark.dynamicAllocation.executorIdleTimeout": "20s",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


class Feed:
    """Text files, one an epoch, each with as many rows."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.files = folder, 0
        folder.mkdir(parents=True)

    def add(self) -> None:
        lines = "".join(f"{(self.files * ROWS + i) * 7919 % KEYS}\n" for i in range(ROWS))
        hidden = self.folder / f"_{self.files}"
        hidden.write_text(lines)
        hidden.rename(self.folder / f"{self.files:06d}.txt")
        self.files += 1


def main(master: str, folder: str) -> None:
    spark = sterna.session(
        master,
        **ELASTIC,
        **{
            "spark.driver.memory": "1g",
            "spark.local.dir": f"{folder}/local",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.ui.enabled": "false",
            "spark.log.level": "ERROR",
        },
    )
    feed = Feed(Path(folder) / "input")
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(feed.folder))
    counts = sterna.read(lines.select(F.col("value").alias("key"))).key_by("key").aggregate(n=sterna.count())
    query = counts.start(checkpoint=f"{folder}/checkpoint", workers=2 * MOST, bins=64, share_host_state=False)

    def epochs_until(true: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + PATIENCE
        while not true() and time.monotonic() < deadline:
            feed.add()
            query.wait_for_epoch(query.status()["epoch"] + 1, PATIENCE)
        return true()

    def seated() -> dict[str, int]:
        return {name: one["slots"] for name, one in query.executors().items() if one["slots"]}

    epochs_until(lambda: bool(seated()))
    report: dict[str, Any] = {"first": seated()}
    report["came"] = epochs_until(lambda: len(seated()) == MOST) and seated()
    leaver = max(seated())
    for handle in query.drain(leaver, sterna.matched()):
        epochs_until(lambda: handle.done)  # noqa: B023 - called at once
    report["drained"] = epochs_until(lambda: bool(query.executors().get(leaver, {}).get("drained")))
    query.process_all_available()
    began = time.monotonic()
    while psutil.pid_exists(int(leaver.rsplit("/", 1)[1])) and time.monotonic() < began + PATIENCE:
        time.sleep(0.5)
    report["taken"] = not psutil.pid_exists(int(leaver.rsplit("/", 1)[1]))
    report["kept"] = [name for name in seated() if psutil.pid_exists(int(name.rsplit("/", 1)[1]))]
    last = query.status()["epoch"]
    epochs_until(lambda: query.status()["epoch"] >= last + 5)
    report["later"] = sorted(set(query._coordinator.last.hosts["aggregate"].values()))
    query.process_all_available()
    query.stop()
    report["leaver"] = leaver
    report["counted"] = {row["key"]: row["n"] for row in query.state().collect()}
    report["files"] = feed.files
    sys.stdout.write(json.dumps(report) + "\n")
    sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    main(*sys.argv[1:])
