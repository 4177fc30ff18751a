from __future__ import annotations

import ctypes
import itertools
import os
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterna.errors import StateError
from sterna.state import END, Run, RunCache, RunRef, Store, TableSpec, coalesce, drop, files, keep
from sterna.state.libc import c_function

SPEC = TableSpec("t", "rows", pa.schema([("id", pa.int64())]), pa.schema([("text", pa.string())]))


def batch(hashes, times=None, gone=None):
    rows = len(hashes)
    columns = [
        pa.array(hashes, pa.uint64()),
        pa.array(range(rows), pa.int64()),
        pa.array(range(rows) if times is None else times, pa.int64()),
        pa.array([str(h) for h in hashes], pa.string()),
        pa.array([False] * rows if gone is None else gone, pa.bool_()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SPEC.schema())


def test_a_run_comes_back_as_written(cache, store):
    one = batch([3, 3, 9, END - 1], times=[5, 7, 6, 99], gone=[False, False, False, True])
    ref = cache.write("runs/op/x.arrow", one, age=4, level=0, timed=True)
    assert (ref.lo, ref.hi, ref.rows, ref.age, ref.level) == (3, END, 4, 4, 0)
    assert (ref.deletes, ref.oldest, ref.newest) == (True, 5, 7)
    assert ref.size == os.path.getsize(store.local_path(ref.name))
    for opened in (cache.open(ref), RunCache(store).open(ref)):
        assert opened.batch.equals(one)
        assert opened.hashes.tolist() == [3, 3, 9, END - 1]
        assert opened.span(3, 9) == (0, 2)
        assert opened.span(4, END) == (2, 4)
        assert opened.span(0, 3) == (0, 0)
    assert RunRef.from_list(ref.to_list()) == ref


def test_damage_is_detected_when_a_process_first_opens_a_file(cache, store):
    ref = cache.write("runs/op/x.arrow", batch(range(1000)), age=1, level=0, timed=True)
    path = store.local_path(ref.name)
    good = store.read(ref.name)
    cases = {
        "damaged": good[:5000] + bytes([good[5000] ^ 1]) + good[5001:],
        "bytes": good[:-100],
        "0 bytes": b"",
    }
    for reason, bad in cases.items():
        with open(path, "wb") as file:
            file.write(bad)
        with pytest.raises(StateError, match=rf"x\.arrow.*{reason}"):
            RunCache(store).open(ref)
    os.unlink(path)
    with pytest.raises(StateError, match=r"x\.arrow is missing"):
        RunCache(store).open(ref)


def test_a_remote_run_is_kept_locally_and_fetched_again_when_the_copy_is_damaged(tmp_path):
    store = Store.open("base", filesystem=pafs._MockFileSystem())
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    ref = RunCache(store, here).write("runs/op/x.arrow", batch(range(100)), age=1, level=0, timed=True)
    assert os.path.getsize(os.path.join(here, ref.name)) == ref.size
    assert RunCache(store, there).open(ref).rows == 100
    copy = os.path.join(there, ref.name)
    for damage in (b"", b"x" * ref.size):
        with open(copy, "wb") as file:
            file.write(damage)
        assert RunCache(store, there).open(ref).rows == 100
    with open(copy, "wb") as file:
        file.write(b"x" * ref.size)
    store.write(ref.name, b"y" * ref.size)
    with pytest.raises(StateError, match=r"base/runs/op/x\.arrow is damaged in the store"):
        RunCache(store, there).open(ref)
    store.delete([ref.name])
    with pytest.raises(StateError, match=r"base/runs/op/x\.arrow is missing"):
        RunCache(store, there).open(ref)
    with pytest.raises(StateError, match="local directory"):
        RunCache(store)


def test_the_least_recently_used_file_is_closed_first(store, namer):
    cache = RunCache(store, limit=2, in_use=0)
    refs = [cache.write(namer(), batch([i]), age=1, level=0, timed=True) for i in range(3)]
    first = cache.open(refs[0])
    cache.open(refs[1])
    assert cache.open(refs[0]) is first
    cache.open(refs[2])
    assert cache.open(refs[0]) is first
    assert len(cache._open) == 2


def test_what_is_in_use_stays_open_beyond_the_limit_but_not_beyond_all(store, namer):
    cache = RunCache(store, limit=2, in_use=3600, most=4)
    refs = [cache.write(namer(), batch([i]), age=1, level=0, timed=True) for i in range(5)]
    runs = [cache.open(ref) for ref in refs[:4]]
    assert [cache.open(ref) for ref in refs[:4]] == runs
    cache.open(refs[4])
    assert len(cache._open) == 4
    assert cache.open(refs[1]) is runs[1]
    assert cache.open(refs[0]) is not runs[0]


def test_files_that_are_deleted_are_closed_and_those_in_use_are_not(store, namer, monkeypatch):
    cache = RunCache(store)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    now = 100.0
    refs = [cache.write(namer(), batch([i]), age=1, level=0, timed=True) for i in range(4)]
    held = cache.open(refs[0])
    for ref in refs[1:3]:
        cache.open(ref)
    store.delete([refs[0].name, refs[1].name, refs[3].name])
    now = 101.5
    cache.close_deleted()
    assert list(cache._open) == [refs[2].name]
    assert held.batch.num_rows == 1  # whoever has it keeps it
    with pytest.raises(StateError, match="is missing"):
        cache.open(refs[1])

    store.delete([refs[2].name])
    now = 102.0
    cache.close_deleted()
    assert list(cache._open) == [refs[2].name]  # it has looked just now
    now = 103.0
    cache.open(refs[2])
    cache.close_deleted()
    assert list(cache._open) == [refs[2].name]  # asked for just now
    now = 104.5
    cache.close_deleted()
    assert not cache._open


def test_large_runs_are_split_between_hashes(cache, namer):
    hashes = np.sort(np.random.default_rng(0).integers(0, 50, 2000)).tolist()
    one = batch(hashes)
    refs = cache.write_split(namer, one, age=1, level=2, timed=True, limit=4000)
    assert len(refs) > 5
    assert all(a.hi <= b.lo for a, b in itertools.pairwise(refs))
    assert sum(ref.rows for ref in refs) == 2000
    assert pa.Table.from_batches(
        [cache.open(ref).batch for ref in refs]
    ).combine_chunks() == pa.Table.from_batches([one])
    alone = cache.write_split(namer, batch([7] * 500), age=1, level=2, timed=True, limit=100)
    assert [ref.rows for ref in alone] == [500]
    assert cache.write_split(namer, batch([]), age=1, level=2, timed=True) == []


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=6),
    st.sets(st.integers(0, 70), max_size=8),
)
def test_keep_and_drop_part_the_references(spans, edges):
    refs = [RunRef(f"f{i}", lo, lo + n, i, 0, 1, 1, 1, False, None, None) for i, (lo, n) in enumerate(spans)]
    cuts = sorted(edges)
    cuts = cuts[: len(cuts) // 2 * 2]
    ranges = list(zip(cuts[::2], cuts[1::2], strict=True))

    def points(some):
        return sorted((ref.name, p) for ref in some for p in range(ref.lo, ref.hi))

    inside = {p for lo, hi in ranges for p in range(lo, hi)}
    kept, left = keep(refs, ranges), drop(refs, ranges)
    assert points(kept) == [one for one in points(refs) if one[1] in inside]
    assert points(left) == [one for one in points(refs) if one[1] not in inside]
    assert coalesce(kept + left) == coalesce(refs)


@pytest.mark.skipif(sys.platform != "linux", reason="the names of open files are looked up in /proc")
def test_only_files_that_last_begin_to_be_written_to_disk_at_once(cache, monkeypatch):
    begun = []

    def begin(descriptor, original=files.begin_writing):
        begun.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")).split(".")[1])
        original(descriptor)

    monkeypatch.setattr(files, "begin_writing", begin)
    for level in range(4):
        name = f"runs/op/level-{level}.arrow"
        ref = cache.write(name, batch([1, 2]), age=0, level=level, timed=True)
        assert cache.open(ref).batch.equals(batch([1, 2]))
    assert begun == ["level-2", "level-3"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can be asked to begin writing")
def test_linux_begins_to_write_what_it_is_given(tmp_path):
    begin = c_function("sync_file_range", ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    with open(tmp_path / "file", "wb") as file:
        file.write(b"x" * 10_000)
        assert begin(file.fileno(), 0, 0, files.SYNC_FILE_RANGE_WRITE) == 0
    assert begin(-1, 0, 0, files.SYNC_FILE_RANGE_WRITE) == -1


@given(
    st.lists(st.integers(0, 99), max_size=60), st.lists(st.tuples(*2 * [st.integers(0, 110)]), max_size=200)
)
def test_counts_that_are_remembered_are_right(hashes, ranges):
    run = Run(batch(sorted(hashes)))
    for lo, hi in [*ranges, *ranges]:
        assert run.count(lo, hi) == sum(lo <= one < hi for one in hashes)
