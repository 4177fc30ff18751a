"""What the comparison with the peers is made of; the peers themselves are in ``tests/cli/test_peers.py``."""

from __future__ import annotations

import time
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from sterna.bench import ceiling
from sterna.bench.feeder import Schedule
from sterna.bench.openloop import Records
from sterna.bench.peers import better, telling
from sterna.bench.peers.flink import MANAGED, Cluster, FlinkError, settings
from sterna.bench.peers.flink_count import (
    CHUNK,
    COMBINING,
    LAP,
    RACE,
    SAMPLE,
    Seen,
    Watcher,
    counting,
    first_lines,
    in_turn,
    latencies,
    race,
    reading,
    record_of,
)
from sterna.bench.peers.lap import back
from sterna.bench.peers.on_flink import _View, slope
from sterna.bench.peers.on_spark import counts, wrong
from sterna.bench.source import Turns
from sterna.bench.subjects import SparkSubject, SternaSubject


@given(st.integers(0, 12), st.integers(0, 10_000))
def test_every_key_has_its_turn(power, start):
    keys = Turns(2**power)
    assert sorted(keys.key(start + i) for i in range(keys.count)) == list(range(keys.count))


@given(st.integers(0, 24), st.integers(0, 10**9))
def test_a_key_and_its_count_tell_the_record(power, record):
    keys = Turns(2**power)
    assert record_of(keys, keys.key(record), record // keys.count + 1) == record


@pytest.mark.parametrize("end", [0, 1, 63, 64, 200])
def test_spark_knows_keys_and_how_often_they_come(spark, end):
    keys = Turns(64)
    found = spark.range(end).select(keys.expression(F.col("id")).alias("key")).collect()
    assert [row.key for row in found] == [keys.key(record) for record in range(end)]
    often = spark.range(64).select("id", keys.times(F.col("id"), end).alias("n")).collect()
    counted = Counter(row.key for row in found)
    assert {row.id: row.n for row in often} == {key: counted[key] for key in range(64)}


@pytest.mark.parametrize(
    ("change", "many"),
    [([], 0), ([(1, 0)], 1), ([(1, 1)], 1), ([(9, 1)], 1), ([(None, 1)], 1), ([(2, 5), (9, 1)], 2)],
)
def test_a_key_in_two_places_or_from_nowhere_is_wrong(spark, change, many):
    held = [(0, 2), (1, 1), (2, 1), (3, 1), *change]
    assert wrong(spark.createDataFrame(held, "key long, n long"), Turns(4), 5) == many


def test_a_key_that_is_missing_is_wrong(spark):
    assert wrong(spark.createDataFrame([(0, 2), (1, 1)], "key long, n long"), Turns(4), 5) == 2


@pytest.mark.parametrize("system", ["sterna", "spark"])
def test_what_is_lost_or_doubled_shows_in_the_state(spark, tmp_path, system):
    checkpoint, keys = str(tmp_path / "checkpoint"), Turns(64)
    subject = SternaSubject(checkpoint, 2, 16) if system == "sterna" else SparkSubject(checkpoint, 2)
    end = ceiling.fill(spark, subject, str(tmp_path), Records(keys, 20))
    found = counts(spark, subject, checkpoint).cache()
    assert end == 64
    assert wrong(found, keys, end) == 0
    assert wrong(found, keys, end + 3) == 3  # as if three records had been lost
    assert wrong(found, keys, end - 3) == 3  # as if three had been counted twice


def watched(path, keys, lines):
    path.write_text("".join(f"2> {line}\n" for line in lines))
    watcher = Watcher(path, keys)
    with watcher:
        deadline = time.monotonic() + 10
        wanted = sum(line.startswith("+") for line in lines)
        while len(watcher.seen) < wanted and time.monotonic() < deadline:
            time.sleep(0.01)
    return watcher


def test_the_watcher_counts_what_was_told_once(tmp_path):
    keys = Turns(2 * SAMPLE)
    lines = ["+I[0, 1]", f"+I[{keys.key(SAMPLE)}, 1]", "-U[0, 1]", "+U[0, 2]"]
    watcher = watched(tmp_path / "out", keys, [*lines, lines[0], "Exception in thread", lines[3]])
    assert [one.newest for one in watcher.seen] == [0, SAMPLE, 2 * SAMPLE, 0, 2 * SAMPLE]
    assert watcher.records == 3
    assert watcher.wrong(2 * SAMPLE + 1) == 0
    assert watcher.wrong(2 * SAMPLE) == 1
    assert watcher.wrong(4 * SAMPLE) == 1


def test_a_record_that_is_forgotten_after_it_was_told_shows_in_the_next_one(tmp_path):
    keys = Turns(CHUNK)
    first = [f"+I[{keys.key(record)}, 1]" for record in range(0, CHUNK, SAMPLE)]
    whole = watched(tmp_path / "whole", keys, first)
    assert whole.wrong(CHUNK) == 0
    assert whole.wrong(CHUNK, probed=True) == CHUNK // SAMPLE
    again = [f"+U[{keys.key(record)}, {1 if record == SAMPLE else 2}]" for record in range(0, CHUNK, SAMPLE)]
    assert watched(tmp_path / "again", keys, [*first, *again]).wrong(CHUNK, probed=True) == 1


def test_a_record_counts_when_it_is_first_told():
    schedule = Schedule(begin=100.0, rate=256.0, first=256)
    seen = [Seen(99.0, 0, 1, 0), Seen(100.5, 0, 2, 256), Seen(103.0, 1, 1, 512), Seen(109.0, 0, 2, 256)]
    kept = first_lines([*seen, Seen(110.0, 1, 2, 768)], 256, 768)
    assert [one.at for one in kept] == [100.5, 103.0]
    assert latencies(kept, schedule, 100.0, 101.0).max == pytest.approx(0.5)
    assert latencies(kept, schedule, 101.0, 102.0).max == pytest.approx(2.0)


def test_the_job_of_flink_counts_the_same_records_and_nothing_else(tmp_path):
    text = " ".join(counting(tmp_path, Turns(2**10), 200, "1 s", shown=False))
    assert "MOD(record * 2654435761, 1024) AS key" in text
    assert text.count("SHA512") == 2
    assert (text.count("COUNT("), text.count("MAX(")) == (1, 1)
    bare = " ".join(counting(tmp_path, Turns(2**10), 0, "1 s", shown=True))
    assert (bare.count("COUNT("), bare.count("MAX("), bare.count("payload")) == (1, 0, 0)


def test_flink_prints_only_where_that_is_looked_at(tmp_path):
    *_, shown = counting(tmp_path, Turns(2**10), 0, "1 s", shown=True)
    *_, dropped = counting(tmp_path, Turns(2**10), 0, "1 s", shown=False)
    *_, source = reading(tmp_path, Turns(2**10), "1 s")
    assert "INTO seen" in shown
    assert dropped == "INSERT INTO dropped SELECT key, n FROM counts"
    assert "counts" not in source


def test_flink_shows_a_part_of_what_it_counts(tmp_path):
    """One state: a choice by the key alone would be made before anything is counted."""
    *_, shown = counting(tmp_path, Turns(2**10), 200, "1 s", shown=True)
    assert shown.count("INSERT") == 1
    assert "SIGN(n)" in shown.split("WHERE")[1]
    assert "payload" in shown


@pytest.mark.parametrize("tuning", [RACE, LAP])
def test_jobs_of_flink_have_checkpoints(tuning):
    """A job takes them from its client: with those of the cluster alone it had none."""
    assert tuning.options["execution.checkpointing.interval"] == tuning.checkpoint
    assert tuning.options["execution.checkpointing.incremental"] == "true"


def test_what_is_set_for_flink_is_told_of_what_it_is_for():
    told = telling.configuration("4g", 256, 4096)["flink"]
    assert LAP.job
    assert LAP.more
    for tuning, name in ((LAP, "for a rescale"), (RACE, "for the most records")):
        whole = told | told[name]
        assert (tuning.options | dict(tuning.more)).items() <= whole.items()
        assert whole["taskmanager.numberOfTaskSlots"] == tuning.slots
        assert ("state.backend.rocksdb.memory.fixed-per-tm" in whole) == (tuning is LAP)
    assert told.keys().isdisjoint(told["for a rescale"])


def test_rocksdb_has_the_memory_of_slots_that_are_not_used_yet(tmp_path):
    for slots, managed in ((2, True), (4, False)):
        given = settings(tmp_path, 1, 2, slots, "4g", "10 s")
        assert (MANAGED in given) == managed
        assert ("state.backend.rocksdb.memory.fixed-per-tm" in given) != managed
        # What is fixed for a process is not looked at while memory is managed.
        assert given.get("state.backend.rocksdb.memory.managed", True) == managed


def test_a_flink_whose_memory_is_too_small_is_not_measured(tmp_path):
    cluster = Cluster(tmp_path / "home", tmp_path, 2, 4, "4g", "10 s")
    cluster.rest = SimpleNamespace(check=lambda job: None)
    told = tmp_path / "log" / "task_manager.err"
    told.write_text("2026-11-18 WARN  TaskManagerRunner something else\n", encoding="utf-8")
    cluster.check("a job")
    told.write_text("WARN RocksDBStateBackend performance will be poor because of …", encoding="utf-8")
    with pytest.raises(FlinkError, match=r"too little memory: .*performance will be poor because"):
        cluster.check("a job")


@given(st.lists(st.floats(0, 100), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_no_order_has_a_shorter_longest_wait_than_the_one_that_lines_are_counted_in(moments, random):
    records = [SAMPLE * number for number in range(len(moments))]
    random.shuffle(records)
    seen = [Seen(at, 0, 1, record) for at, record in zip(moments, records, strict=True)]
    found = in_turn(seen)
    assert sorted(one.newest for one in found) == sorted(records)
    assert sorted(one.at for one in found) == sorted(moments)
    assert max(one.at - one.newest for one in found) <= max(one.at - one.newest for one in seen)


def test_a_lap_is_not_over_while_the_oldest_records_still_wait():
    """The newest come first where there is a backlog: what appeared lately says nothing of the others."""
    now = time.time()
    schedule = Schedule(now - 100.0, rate=SAMPLE, first=0)  # a sampled record a second
    lately = [Seen(now - 1.0, 0, 1, SAMPLE * 99), Seen(now - 0.5, 0, 1, SAMPLE * 99)]
    caught_up = _View(SimpleNamespace(seen=lately, records=100), schedule)
    behind = _View(SimpleNamespace(seen=lately, records=60), schedule)
    assert caught_up.usual(2.0, since=now - 10.0)
    assert not behind.usual(2.0, since=now - 10.0)


def test_mini_batches_are_large_where_they_combine():
    assert race(2**23) == RACE
    assert race(2**16) == COMBINING
    assert COMBINING.batch > 4 * 2**16


@given(
    st.integers(1, 10**6),
    st.integers(0, 10**9),
    st.lists(st.floats(0.01, 10.0), min_size=2, max_size=50),
)
def test_the_slope_of_an_even_pace_is_that_pace(rate, start, gaps):
    moments = [sum(gaps[:i]) for i in range(len(gaps) + 1)]
    samples = [(at, start + round(rate * 100_000 * at)) for at in moments]
    assert slope(samples) == pytest.approx(rate * 100_000, rel=0.01)


def test_the_slope_of_bursts_is_not_that_of_a_burst():
    samples = [(i / 4, 100_000 * (i // 8)) for i in range(120)]  # a batch every two seconds
    assert slope(samples) == pytest.approx(50_000, rel=0.01)


@pytest.mark.parametrize(
    ("samples", "says"),
    [([], "no records"), ([(0.0, 5), (1.0, 5)], "no records"), ([(0.0, 5), (1.0, 3)], "anew")],
)
def test_what_says_nothing_about_a_rate_is_an_error(samples, says):
    with pytest.raises(FlinkError, match=says):
        slope(samples)


def test_latency_is_back_when_the_last_record_waits_as_before():
    slots = [{"second": i / 4, "max_ms": 100.0} for i in range(40)]
    assert back(slots, (0.0, 5.0), 6.0) == 0.0
    slots[30]["max_ms"] = 111.0
    assert back(slots, (0.0, 5.0), 6.0) == pytest.approx(1.75)
    slots[30]["max_ms"] = 109.0
    slots[21]["max_ms"] = 5_000.0  # due before the change
    assert back(slots, (0.0, 5.0), 6.0) == 0.0


def line(system, **figures):
    usual = dict.fromkeys(("before_p50_ms", "before_p99_ms", "before_max_ms", "during_max_ms"), 10.0)
    return {
        "system": system,
        "keys": 4,
        "state_mb": 1,
        "completed_seconds": 1.0,
        "back_seconds": 1.0,
        "wrong_keys": 0,
        **usual,
        **figures,
    }


def test_where_a_peer_is_better_it_is_said():
    found = {
        "queries": [
            {
                "query": "q5",
                "rows_per_epoch": 4,
                "ratio": 0.8,
                "spark_rows_per_second": 10,
                "sterna_rows_per_second": 8,
            }
        ],
        "throughput": {
            "keys": 8192,
            "ratio_to_flink": 0.9,
            "flink_records_per_second": 10,
            "sterna_records_per_second": 9,
            "few_keys": {
                "keys": 64,
                "ratio_to_spark": 0.5,
                "spark_records_per_second": 40,
                "sterna_records_per_second": 20,
            },
        },
        "rescale": {"results": [line("sterna"), line("flink", before_p50_ms=1.0, during_max_ms=100.0)]},
    }
    assert better.peer_better(found) == [
        "q5, 4 rows an epoch: Spark's own version takes 10 rows a second, Sterna 8",
        "count by key, 8,192 keys: flink takes 10 records a second, Sterna 9",
        "count by key, 64 keys: spark takes 40 records a second, Sterna 20",
        "1 MB: the median latency before: flink 1, Sterna 10",
    ]
    assert telling.goals(found) == {
        "rate_to_flink": 0.9,
        "rate_to_flink_at_least_1.5": False,
        "longest_wait_to_flink": 0.1,
        "longest_wait_to_flink_at_most_0.2": True,
        "nothing_lost_or_doubled": True,
    }


def test_a_key_that_is_wrong_anywhere_is_told():
    found = {"rescale": {"results": [line("sterna", wrong_keys=1), line("flink")]}}
    assert telling.goals(found)["nothing_lost_or_doubled"] is False


def test_states_of_different_sizes_are_not_compared():
    sizes = [line("sterna"), line("flink"), line("sterna", keys=2**22)]
    assert "longest_wait_to_flink" not in telling.goals({"rescale": {"results": sizes}})
    both = telling.goals({"rescale": {"results": [*sizes, line("flink", keys=2**22, during_max_ms=1e6)]}})
    assert both["longest_wait_to_flink_at_most_0.2"] is True
