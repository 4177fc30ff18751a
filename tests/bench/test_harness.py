"""The harness on a real Spark: every record that was fed is accounted for, in the phase in which it was due."""

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


@pytest.mark.parametrize("files", [2, 5, 8])
def test_the_files_of_an_epoch_are_dealt_out_evenly(spark, tmp_path, files):
    for number in range(files):
        write_range(str(tmp_path), number * 1000, (number + 1) * 1000)
    frame = Records(Keys(KEYS), payload=20).of(spark.read.schema("value string").text(str(tmp_path)))
    counts = frame.groupBy(F.spark_partition_id()).count().collect()
    assert sorted(row["count"] for row in counts) == [files // 2 * 1000, (files + 1) // 2 * 1000]
    assert {len(row.payload) for row in frame.select("payload").distinct().collect()} == {20}
    assert frame.select("payload").distinct().count() == KEYS == frame.select("key").distinct().count()


@pytest.fixture(params=["sterna", "spark"])
def subject(request, tmp_path):
    checkpoint = str(tmp_path / "checkpoint")
    if request.param == "sterna":
        return SternaSubject(checkpoint, workers=2, bins=16)
    return SparkSubject(checkpoint, partitions=2)


def test_phases_account_for_every_record_and_a_rescale_is_one(spark, tmp_path, subject):
    records = Records(Keys(KEYS), payload=20)
    first = fill(spark, subject, str(tmp_path), records)
    assert first == KEYS
    phases = [Phase("steady", 1.0)]
    if subject.name == "sterna" or offline.available(spark):
        phases.append(
            Phase("rescale", lambda under_way: under_way.notes.update(under_way.subject.rescale(3)))
        )
    phases.append(Phase("settle", 1.0))
    result = run(
        spark, subject, str(tmp_path), phases, rate=2000, records=records, first=first, every=0.05, window=0.5
    )
    assert json.loads(json.dumps(result)) == result
    assert [phase["name"] for phase in result["phases"]] == [phase.name for phase in phases]
    for phase in result["phases"]:
        assert phase["records"] == pytest.approx(2000 * phase["seconds"], abs=200)
        assert 0 < phase["p50_ms"] <= phase["p99_ms"] <= phase["max_ms"]
    fed = result["next_record"] - first
    assert sum(slot["records"] for slot in result["timeline"]) == pytest.approx(
        fed, abs=len(result["timeline"])
    )
    assert any(sample["workers"] or sample["jvm_resident_mb"] for sample in result["memory"])
    if len(phases) == 3:
        assert result["notes"]
    assert spark.streams.active == []


def test_the_maximum_rate_is_of_epochs_back_to_back(spark, tmp_path, subject):
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
