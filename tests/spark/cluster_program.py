"""Two queries, one after the other, on a Spark of three executors.

It prints what was seen of each, as JSON, and is run once for all tests that ask for ``cluster``. The first
rescales 4, 8, 3. An executor of the second is drained, killed, and comes back as another.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import sterna
from sterna.errors import InvalidInput

PHASES = [(4, 8), (8, 8), (3, 8)]
"""So many workers for at least so many epochs."""
EPOCHS, PATIENCE = 3, 120


def main(folder: str) -> None:
    spark = sterna.session(
        "local-cluster[3,1,512]",
        **{
            "spark.driver.memory": "1g",
            "spark.executor.memory": "512m",
            "spark.local.dir": f"{folder}/local",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.ui.enabled": "false",
            "spark.log.level": "ERROR",
        },
    )
    report = {"placed": placed(spark, f"{folder}/placed"), "drained": drained(spark, f"{folder}/drained")}
    sys.stdout.write(json.dumps(report) + "\n")
    spark.stop()


def started(spark: SparkSession, checkpoint: str, workers: int) -> sterna.Query:
    numbers = (
        spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 500).option("numPartitions", 3)
    )
    keys = numbers.load().select(F.pmod(F.xxhash64("value"), F.lit(300)).alias("key"))
    counts = sterna.read(keys).key_by("key").aggregate(n=sterna.count())
    return counts.start(checkpoint=checkpoint, workers=workers, bins=64, share_host_state=False)


def totals(query: sterna.Query) -> dict[str, Any]:
    """Stops the query; what it read, and what it has counted."""
    query.stop()
    status = query.status()
    counted = query.state().agg(F.sum("n")).collect()[0][0]
    return {"rows": status["rows"], "last": status["epoch"], "counted": counted}


def placed(spark: SparkSession, checkpoint: str) -> dict[str, Any]:
    query = started(spark, checkpoint, PHASES[0][0])
    seen = []
    epoch = -1
    for number, (workers, epochs) in enumerate(PHASES):
        if number:
            query.migrate(sterna.rescale(workers))
        while len([one for one in seen if one["workers"] == workers]) < epochs:
            query.wait_for_epoch(epoch + 1, PATIENCE)
            manifest = query._coordinator.last
            epoch = manifest.epoch
            hosts = manifest.hosts["aggregate"]
            seen.append({"epoch": epoch, "workers": len(hosts), "hosts": hosts})
    moved = [event for event in query.history() if event["kind"] == "moved"]
    return {"epochs": seen, "moved": moved, **totals(query)}


def drained(spark: SparkSession, checkpoint: str) -> dict[str, Any]:
    query = started(spark, checkpoint, 3)

    def epochs(count: int) -> list[dict[str, str]]:
        """Where the workers ran in the next epochs."""
        seen = []
        for _ in range(count):
            query.wait_for_epoch(query.status()["epoch"] + 1, PATIENCE)
            seen.append(query._coordinator.last.hosts["aggregate"])
        return seen

    def until(true) -> None:
        deadline = time.monotonic() + PATIENCE
        while not true() and time.monotonic() < deadline:
            epochs(1)

    report: dict[str, Any] = {"refused": [], "before": epochs(EPOCHS)[-1]}
    leaver = report["leaver"] = report["before"][0]
    migrations = query.drain(leaver, sterna.batched(8))
    report["moved"] = [one.wait(PATIENCE)["bins"] for one in migrations]
    theirs = [worker for worker, at in report["before"].items() if at == leaver]
    report["left"] = int(query.configuration().owned()[theirs].sum())
    until(lambda: query.executors().get(leaver, {}).get("drained"))
    report["epochs"] = epochs(EPOCHS)
    report["executors"] = query.executors()
    for wrong in (leaver, "nowhere/1", leaver.rsplit("/", 1)[0]):
        try:
            query.drain(wrong)
        except InvalidInput as error:
            report["refused"].append(str(error))
    os.kill(int(leaver.rsplit("/", 1)[1]), signal.SIGKILL)
    until(lambda: len(set(query._coordinator.last.hosts["aggregate"].values())) == 3)
    report["after"] = epochs(EPOCHS)[-1]
    return {**report, **totals(query)}


if __name__ == "__main__":
    main(sys.argv[1])
