"""The harness on a real Spark: every record that was fed is accounted for, in the phase it was due in."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import functions as F

from sterna.bench import offline
from sterna.bench.ceiling import fill, maximum_rate
from sterna.bench.feeder import write_range
from sterna.bench.harness import run
from sterna.bench.openloop import Records
from sterna.bench.phases import Phase
from sterna.bench.source import Keys
from sterna.bench.subjects import SparkSubject, SternaSubject

KEYS = 300


@pytest.mark.parametrize("files", [2, 5])
def test_the_files_of_an_epoch_are_dealt_out_evenly(spark, tmp_path, files):
    for number in range(files):
        write_range(str(tmp_path), number * 1000, (number + 1) * 1000)
    frame = Records(Keys(KEYS), payload=20).of(spark.read.schema("value string").text(str(tmp_path)))
    counts = frame.groupBy(F.spark_partition_id()).count().collect()
    assert sorted(row["count"] for row in counts) == [files // 2 * 1000, (files + 1) // 2 * 1000]
    assert {len(row.payload) for row in frame.select("payload").distinct().collect()} == {20}
    assert frame.select("payload").distinct().count() == KEYS == frame.select("key").distinct().count()


def move(under_way):
    under_way.notes.update(under_way.subject.rescale(3))


def check(spark, folder, subject, *phases):
    """Runs phases at 2,000 records a second and accounts for every record; gives the result."""
    records = Records(Keys(KEYS), payload=20)
    first = fill(spark, subject, folder, records)
    assert first == KEYS
    result = run(
        spark, subject, folder, phases, rate=2000, records=records, first=first, every=0.05, window=0.5
    )
    assert json.loads(json.dumps(result)) == result
    assert [phase["name"] for phase in result["phases"]] == [phase.name for phase in phases]
    for phase in result["phases"]:
        assert phase["records"] == pytest.approx(2000 * phase["seconds"], abs=200)
        assert 0 < phase["p50_ms"] <= phase["p99_ms"] <= phase["max_ms"]
    slots = result["timeline"]
    assert sum(slot["records"] for slot in slots) == pytest.approx(
        result["next_record"] - first, abs=len(slots)
    )
    assert any(sample["jvm_resident_mb"] > 0 for sample in result["memory"])
    assert spark.streams.active == []
    return result


def test_phases_account_for_every_record_and_a_migration_is_one(spark, tmp_path):
    subject = SternaSubject(str(tmp_path / "checkpoint"), workers=2, bins=16)
    result = check(
        spark, str(tmp_path), subject, Phase("steady", 0.5), Phase("migrate", move), Phase("settle", 0.5)
    )
    assert list(result["notes"]) == ["migrate"]
    assert subject.handle.configuration().workers == 3


def test_phases_of_a_query_of_spark_s_own(spark, tmp_path):
    check(
        spark, str(tmp_path), SparkSubject(str(tmp_path / "checkpoint"), partitions=2), Phase("steady", 0.5)
    )


@pytest.mark.slow
def test_records_that_come_while_spark_rescales_offline_wait_all_the_time(spark, tmp_path):
    if not offline.available(spark):
        pytest.skip("this Spark can't repartition a checkpoint")
    subject = SparkSubject(str(tmp_path / "checkpoint"), partitions=2)
    result = check(
        spark, str(tmp_path), subject, Phase("steady", 1.0), Phase("rescale", move), Phase("settle", 1.0)
    )
    assert {"stop", "repartition", "first_epoch"} <= result["notes"].keys()
    outage = sum(result["notes"].values())
    assert result["phases"][1]["max_ms"] >= 1000 * result["notes"]["repartition"]
    assert result["phases"][1]["seconds"] >= outage * 0.99


def test_the_maximum_rate_is_of_epochs_back_to_back(spark, tmp_path):
    subject = SternaSubject(str(tmp_path / "checkpoint"), workers=2, bins=16)
    ceiling = maximum_rate(
        spark, subject, str(tmp_path), Records(Keys(KEYS)), epoch_seconds=0.2, warm=0.5, seconds=2.0
    )
    assert ceiling.rate > 0
    assert ceiling.next_record >= sum(epoch.rows for epoch in ceiling.epochs)
    assert all(epoch.ended > epoch.began for epoch in ceiling.epochs)


def test_an_old_spark_says_that_it_cannot_repartition():
    class Old:
        version = "4.1.1"

    with pytest.raises(offline.NotInThisSpark, match=r"since Spark 4\.2"):
        offline.check(Old())
