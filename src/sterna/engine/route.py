"""Route (F): splits each batch of source rows into one chunk for each worker.

It splits them by the configuration at this epoch. In: batches of one source partition, with a hash column for
each edge (``_hash0`` …) and the source's columns under their wire names. The rows of an edge with a recipe
are made here, and hashed here. Out: messages with rows (or accumulators, where combining pays), addressed to
the slots of their workers, and one with statistics; the first partition greets every worker, so that one
without input applies the epoch too. Late rows are counted, and dropped or sent along for the late output.
Fails if a recipe does, with ``InvalidInput`` or ``FoldError``; a batch without the expected columns is a bug.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sterna.configuration import Configuration
from sterna.dataflow import Dataflow
from sterna.engine.messages import COMBINED, HELLO, LATE, ROWS, STATS, Message, in_pieces, json_body
from sterna.engine.where import executor
from sterna.operators.base import NEVER, Edge, Rows, contiguous, hash_name, microseconds
from sterna.sources.recipe import Recipe

COUNTED = "_rows"
"""Where Spark has combined rows: how many each combined row stands for."""

COUNTS = ("rows", "tasks", "sent")
"""Statistics that are added up."""


@dataclass(frozen=True)
class Routing:
    """What a routing task needs to know about one epoch.

    Attributes:
        configurations: for each operator.
        seats: for each operator, the slot of each worker.
        watermark: event times before this one are late.
        combine: numbers of edges whose rows are combined in the router.
        native: numbers of edges whose rows Spark has combined already.
        keep_late: whether late rows are sent along for the late output.
        members: the operators of this phase; ``None`` for all.
    """

    epoch: int
    configurations: tuple[Configuration, ...]
    seats: tuple[tuple[int, ...], ...]
    watermark: int | None
    combine: frozenset[int] = frozenset()
    native: frozenset[int] = frozenset()
    keep_late: bool = False
    members: tuple[int, ...] | None = None


@dataclass
class _Seen:
    rows: int = 0
    newest: dict[int, int] = field(default_factory=dict)
    late: dict[int, int] = field(default_factory=dict)
    combined: dict[int, list[int]] = field(default_factory=dict)


def route(
    flow: Dataflow, task: Routing, partition: int, batches: Iterable[pa.RecordBatch], sent: int = 0
) -> Iterator[Message]:
    """Messages for one source partition; see the module's docstring.

    The statistics also tell how many parts of moving state this task has sent.
    """
    seen = _Seen()
    sequence = itertools.count()
    began = time.perf_counter()
    first = task.members[0] if task.members else 0
    if partition == 0:
        yield from hellos(task)
    for batch in batches:
        if not batch.num_rows:
            continue
        source = (batch.column("_source")[0].as_py() or 0) if "_source" in batch.schema.names else 0
        real = source < flow.sources
        if real and first == 0:
            seen.rows += _count(batch, source, flow)
        for operator, edge in flow.readers(source):
            if task.members is not None and operator not in task.members:
                continue
            kind = COMBINED if edge.number in task.native else ROWS
            if edge.recipe is None:
                rows, late = _rows(batch, source, edge, task, flow), None
                if kind == ROWS and edge.time is not None and real:
                    rows, late = _on_time(rows, edge, task.watermark, seen)
            else:
                rows, late = _made(_given(batch, source, edge.recipe, flow), edge, task, seen)
            if late is not None and task.keep_late:
                like = Message(task.seats[0][0], LATE, 0, edge.number, partition)
                yield from in_pieces(like, late.wire(), sequence)
            if kind == ROWS and edge.number in task.combine and rows.count:
                before = rows.count
                rows, kind = flow.operators[operator].combine(rows), COMBINED
                tally = seen.combined.setdefault(edge.number, [0, 0])
                tally[0] += before
                tally[1] += rows.count
            for worker, chunk in split(rows, task.configurations[operator]):
                like = Message(task.seats[operator][worker], kind, operator, edge.number, partition)
                yield from in_pieces(like, chunk.wire(), sequence)
    stats = {
        "tasks": 1,
        "sent": sent,
        "rows": seen.rows,
        "newest": seen.newest,
        "late": seen.late,
        "combined": seen.combined,
        "executors": [executor()],
        "ms": round((time.perf_counter() - began) * 1e3, 2),
    }
    yield Message(task.seats[first][0], STATS, first, source=partition, body=json_body(stats))


def hellos(task: Routing) -> Iterator[Message]:
    """A greeting for every worker of every operator of the phase."""
    for operator in range(len(task.seats)) if task.members is None else task.members:
        for worker in range(task.configurations[operator].workers):
            yield Message(task.seats[operator][worker], HELLO, operator, worker)


def split(rows: Rows, configuration: Configuration) -> Iterator[tuple[int, Rows]]:
    """(worker, its rows), order preserved."""
    if not rows.count:
        return
    if configuration.workers == 1:
        yield 0, rows
        return
    owners = configuration.route(rows.hashes)
    counts = np.bincount(owners, minlength=configuration.workers)
    if counts.max() == rows.count:
        yield int(owners[0]), rows
        return
    # A stable sort of 16-bit integers is a radix sort.
    gathered = rows.take(np.argsort(owners.astype(np.uint16), kind="stable"))
    stops = np.cumsum(counts)
    for worker in np.flatnonzero(counts):
        yield int(worker), gathered.slice(int(stops[worker] - counts[worker]), int(stops[worker]))


def _count(batch: pa.RecordBatch, source: int, flow: Dataflow) -> int:
    """How many rows of the source a batch stands for."""
    if COUNTED in batch.schema.names:
        return int(batch.column(COUNTED).sum().as_py())
    edges = [edge for _, edge in flow.readers(source)]
    packed = {edge.recipe.columns: edge.recipe for edge in edges if edge.recipe and edge.recipe.packed}
    plain = batch.num_rows if any(edge.recipe is None or not edge.recipe.packed for edge in edges) else 0
    return plain + sum(recipe.count(_given(batch, source, recipe, flow)) for recipe in packed.values())


def _given(batch: pa.RecordBatch, source: int, recipe: Recipe, flow: Dataflow) -> pa.RecordBatch:
    """The source's columns that a recipe reads, under their own names."""
    columns = [batch.column(flow.wire_name(source, name)) for name in recipe.columns]
    return pa.RecordBatch.from_arrays(columns, names=list(recipe.columns))


def _made(given: pa.RecordBatch, edge: Edge, task: Routing, seen: _Seen) -> tuple[Rows, Rows | None]:
    """The rows of an edge with a recipe, and the late ones.

    No function sees the late ones together with others: it might keep those.
    """
    assert edge.recipe is not None
    opened, late = edge.recipe.opened(given), None
    early = edge.time is not None and edge.time in opened.schema.names
    if early:
        mask = _late(microseconds(contiguous(opened.column(edge.time))), edge, task.watermark, seen)
        if mask is not None:
            late = edge.rows(edge.recipe.made(opened.filter(pa.array(mask))))
            opened = opened.filter(pa.array(~mask))
    rows = edge.rows(edge.recipe.made(opened))
    if edge.time is not None and not early:
        return _on_time(rows, edge, task.watermark, seen)
    return rows, late


def _rows(batch: pa.RecordBatch, source: int, edge: Edge, task: Routing, flow: Dataflow) -> Rows:
    hashes = batch.column(hash_name(edge)).to_numpy(zero_copy_only=False).view(np.uint64)
    schema = edge.schema
    if edge.number in task.native:
        combined = flow.operators[flow.reader(edge)].combined_schema()
        assert combined is not None
        schema = combined
        names = [flow.wire_name(source, key) for key in edge.keys]
        names += [f"a{position}" for position in range(len(schema) - len(names))]
    else:
        names = [flow.wire_name(source, item.name) for item in schema]
    columns = [batch.column(name) for name in names]
    columns = [
        c if c.type == item.type else c.cast(item.type) for c, item in zip(columns, schema, strict=True)
    ]
    return Rows(hashes, pa.RecordBatch.from_arrays(columns, schema=schema))


def _on_time(rows: Rows, edge: Edge, watermark: int | None, seen: _Seen) -> tuple[Rows, Rows | None]:
    late = _late(microseconds(rows.batch.column(edge.time)), edge, watermark, seen)
    return (rows, None) if late is None else (rows.take(~late), rows.take(late))


def _late(
    times: npt.NDArray[np.int64], edge: Edge, watermark: int | None, seen: _Seen
) -> npt.NDArray[np.bool_] | None:
    """Which rows are late, by their times; ``None`` if none is."""
    if not len(times):
        return None
    newest = int(times.max())
    if newest > NEVER:  # rows without a time tell nothing about time
        seen.newest[edge.number] = max(seen.newest.get(edge.number, newest), newest)
    if watermark is None:
        return None
    late = times < watermark
    count = int(late.sum())
    if not count:
        return None
    seen.late[edge.number] = seen.late.get(edge.number, 0) + count
    return np.asarray(late)


def merge_stats(parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The statistics of all routing tasks of an epoch, added up."""
    total: dict[str, Any] = {"newest": {}, "late": {}, "combined": {}, "executors": []}
    total.update(dict.fromkeys(COUNTS, 0))
    for part in parts:
        total.update({name: total[name] + part[name] for name in COUNTS})
        total["executors"] = sorted({*total["executors"], *part["executors"]})
        for edge, newest in part["newest"].items():
            total["newest"][edge] = max(total["newest"].get(edge, newest), newest)
        for edge, late in part["late"].items():
            total["late"][edge] = total["late"].get(edge, 0) + late
        for edge, (before, after) in part["combined"].items():
            tally = total["combined"].setdefault(edge, [0, 0])
            tally[0] += before
            tally[1] += after
    return total
