"""A query of two operators whose state keeps moving, made to be killed. Run by ``test_exactly_once.py``.

Arguments: a folder, Spark's master, a seed for the moves (0 for none), whether state is ``linked`` or
``shipped``, and whether the query is to ``end`` (with exit code 0, when all input is processed) or ``stay``.
While a file ``linger`` is in the folder, the next call of the second operator's fold takes it, says who it is
in ``lingering``, and takes its time.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time

import pyarrow as pa
import pyarrow.compute as pc

import sterna

SCHEMA = "word string, amount long"


def running(key, record, state):
    """The running total of a word, and the bucket it is in."""
    total = (state or 0) + record["amount"]
    return total, [(key, total % 7, total)]


def buckets(folder):
    """Of each bucket: how many totals came, their sum, and the greatest.

    None of these depends on an order.
    """

    def fold(rows, tables, later):
        linger(folder)
        fresh = rows.group_by("bucket").aggregate([([], "count_all"), ("total", "sum"), ("total", "max")])
        fresh = fresh.sort_by("bucket")
        known = tables.sums.get(fresh)
        out = pa.table(
            {
                "bucket": fresh["bucket"],
                "n": pc.add(fresh["count_all"], pc.fill_null(known["n"], 0)),
                "total": pc.add(fresh["total_sum"], pc.fill_null(known["total"], 0)),
                "most": pc.max_element_wise(fresh["total_max"], known["most"]),
            }
        )
        tables.sums.put(out)
        return out

    return fold


def linger(folder):
    """Gives the test time to kill this very process, or its executor."""
    try:
        os.unlink(f"{folder}/linger")
    except FileNotFoundError:
        return
    with open(f"{folder}/lingering.part", "w") as file:
        file.write(str(os.getpid()))
    os.rename(f"{folder}/lingering.part", f"{folder}/lingering")
    time.sleep(3)


def moving(query, seed, times):
    """Every other epoch or so, something moves; a query that is to end needs an end of that too."""
    dice = random.Random(seed)
    while query.is_active and times:
        times -= 1
        try:
            query.wait_for_epoch(query.status()["epoch"] + dice.randint(1, 3))
            operator = dice.choice(["words", "buckets"])
            shape = query.configuration(operator)
            target = dice.choice(
                [
                    sterna.rescale(dice.randint(1, 4)),
                    sterna.bins(2 ** dice.randint(3, 6)),
                    {b: dice.randrange(shape.workers) for b in dice.sample(range(shape.bins), 4)},
                ]
            )
            strategy = dice.choice(
                [
                    sterna.all_at_once(),
                    sterna.fluid(),
                    sterna.batched(5, order="largest"),
                    sterna.matched(order="hottest"),
                    sterna.paced(latency="2 seconds"),
                ]
            )
            at = dice.choice([None, query.status()["frozen"] + 2])
            query.migrate(
                target, strategy, at, operator=operator, if_busy=dice.choice(["refuse", "queue", "merge"])
            )
        except Exception as error:  # noqa: BLE001 - the query ends, or the wish can't be granted
            sys.stderr.write(f"no move: {str(error)[:200]}\n")


def main(folder, master, seed, sharing, ending):
    spark = sterna.session(
        master,
        **{
            "spark.driver.memory": "800m",
            "spark.executor.memory": "512m",
            "spark.local.dir": f"{folder}/local",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.ui.enabled": "false",
            "spark.log.level": "FATAL",
            "spark.task.maxFailures": "8",
            "spark.stage.maxConsecutiveAttempts": "10",
        },
    )
    lines = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{folder}/input")
    words = sterna.read(lines).key_by("word")
    words = words.state_machine(running, state="total long", output="word string, bucket long, total long")
    sums = words.named("words").key_by("bucket")
    sums = sums.unary(
        buckets(folder),
        tables={"sums": sterna.value("n long, total long, most long")},
        output="bucket long, n long, total long, most long",
    )
    query = sums.named("buckets").start(
        sink=sterna.sinks.parquet(f"{folder}/out"),
        checkpoint=f"{folder}/checkpoint",
        bins=16,
        workers=2,
        trigger={"availableNow": True} if ending == "end" else {"processingTime": "0 seconds"},
        share_host_state=sharing == "linked",
        retain=4,
    )
    if int(seed):
        times = 15 if ending == "end" else 10**6
        threading.Thread(target=moving, args=(query, int(seed), times), daemon=True).start()
    query.await_termination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
