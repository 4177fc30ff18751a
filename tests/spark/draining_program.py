"""A query on a Spark of three executors, one of which is drained, killed, and comes back as another; prints what was seen, as JSON. Run by ``test_draining.py``."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

from pyspark.sql import functions as F

import sterna
from sterna.errors import InvalidInput

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
    numbers = (
        spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 500).option("numPartitions", 3)
    )
    keys = numbers.load().select(F.pmod(F.xxhash64("value"), F.lit(300)).alias("key"))
    query = (
        sterna.read(keys)
        .key_by("key")
        .aggregate(n=sterna.count())
        .start(checkpoint=f"{folder}/checkpoint", workers=3, bins=64, share_host_state=False)
    )
    report = {"refused": []}

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

    report["before"] = epochs(EPOCHS)[-1]
    leaver = report["before"][0]
    migrations = query.drain(leaver, sterna.batched(8))
    report["moved"] = [one.wait(PATIENCE)["bins"] for one in migrations]
    report["left"] = int(
        query.configuration().owned()[[w for w, at in report["before"].items() if at == leaver]].sum()
    )
    until(lambda: query.executors().get(leaver, {}).get("drained"))
    report["leaver"] = leaver
    report["drained"] = epochs(EPOCHS)
    report["executors"] = query.executors()
    for wrong in (leaver, "nowhere/1", leaver.rsplit("/", 1)[0]):
        try:
            query.drain(wrong)
        except InvalidInput as error:
            report["refused"].append(str(error))
    os.kill(int(leaver.rsplit("/", 1)[1]), signal.SIGKILL)
    until(lambda: len(set(query._coordinator.last.hosts["aggregate"].values())) == 3)
    report["after"] = epochs(EPOCHS)[-1]
    query.stop()
    report["counted"] = query.state().agg(F.sum("n")).collect()[0][0]
    report["rows"] = query.status()["rows"]
    sys.stdout.write(json.dumps(report) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
