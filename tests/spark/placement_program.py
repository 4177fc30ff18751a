"""A query on a Spark of four executors that rescales 4, 8, 3; prints where its workers ran, as JSON. Run by ``test_placement.py``."""

from __future__ import annotations

import json
import sys

from pyspark.sql import functions as F

import sterna

PHASES = [(4, 8), (8, 8), (3, 8)]
"""So many workers for at least so many epochs."""


def main(folder: str, share: bool) -> None:
    spark = sterna.session(
        "local-cluster[4,1,512]",
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
        spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 500).option("numPartitions", 2)
    )
    keys = numbers.load().select(F.pmod(F.xxhash64("value"), F.lit(300)).alias("key"))
    query = (
        sterna.read(keys)
        .key_by("key")
        .aggregate(n=sterna.count())
        .start(checkpoint=f"{folder}/checkpoint", workers=4, bins=64, share_host_state=share)
    )
    seen = []
    epoch = -1
    for number, (workers, epochs) in enumerate(PHASES):
        if number:
            query.migrate(sterna.rescale(workers))
        while len([one for one in seen if one["workers"] == workers]) < epochs:
            query.wait_for_epoch(epoch + 1)
            manifest = query._coordinator.last
            epoch = manifest.epoch
            hosts = manifest.hosts["aggregate"]
            seen.append({"epoch": epoch, "workers": len(hosts), "hosts": hosts})
    query.stop()
    total = query.state().agg(F.sum("n")).collect()[0][0]
    report = {
        "epochs": seen,
        "rows": query.status()["rows"],
        "last": query.status()["epoch"],
        "counted": total,
        "moved": [event for event in query.history() if event["kind"] == "moved"],
    }
    sys.stdout.write(json.dumps(report) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], share=sys.argv[2] == "linked")
