"""Starting a query: checks what was asked for, opens the checkpoint, and begins.

A checkpoint that belongs to another dataflow or to another running query is refused before anything has
changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sterna.configuration import bits_of, check_workers
from sterna.controllers.options import checked
from sterna.controllers.verdict import Controller
from sterna.durations import seconds
from sterna.engine.coordinator import Coordinator, Options
from sterna.engine.removal import Removal
from sterna.errors import InvalidInput, check_whole
from sterna.query import Query
from sterna.sinks import Sink, as_sink, noop
from sterna.sources.tick import spark_path
from sterna.state.store import Store
from sterna.stream import Stream

Trigger = Mapping[str, Any]


def start(
    stream: Stream,
    *,
    sink: Sink | Callable[[Any, int], Any] | None = None,
    checkpoint: str,
    bins: int = 4096,
    workers: int | None = None,
    trigger: Trigger | None = None,
    watermark_delay: str | float | None = None,
    idle_timeout: str | float | None = None,
    late: Sink | Callable[[Any, int], Any] | None = None,
    initial_state: Mapping[str, Any] | None = None,
    at_end: str = "keep",
    share_host_state: bool = True,
    combine: str = "auto",
    controllers: Iterable[Controller] = (),
    retain: int = 16,
    fsync: bool = False,
    local_state: str | None = None,
    spark_checkpoint: str | None = None,
    filesystem: Any = None,
    query_name: str | None = None,
) -> Query:
    """Starts a query.

    Args:
        stream: what to run.
        sink: one of ``sterna.sinks``, or a callable ``(df, epoch)``; ``noop()`` by default.
        checkpoint: a directory, or a URI that ``pyarrow.fs`` opens. It keeps the state, and makes a restart
            go on.
        bins: number of bins at the first start, a power of two up to 2^20.
        workers: number of workers at the first start, at most as many as bins; by default Spark's default
            parallelism.
        trigger: as for Spark's ``DataStreamWriter.trigger``, e.g. ``{"processingTime": "1 second"}`` or
            ``{"availableNow": True}``.
        watermark_delay: how far the watermark stays behind the newest event time; without it nothing is late
            and no time passes.
        idle_timeout: after so long without rows a source no longer holds the watermark back.
        late: where late rows go; they are counted and dropped without it.
        initial_state: for operators by name, a batch DataFrame with the key columns and the state columns.
        at_end: with ``availableNow``, whether pending notifications are kept (``"keep"``) or fired
            (``"flush"``) at the end.
        share_host_state: hand state over by reference between workers on one host.
        combine: ``auto``, or ``none``, ``router``, ``native``: whether and where rows are combined before the
            exchange.
        controllers: who decides when state moves: ``sterna.controllers.balancer()`` and others, asked after
            every epoch, in this order.
        retain: for how many epochs back state stays readable with ``query.state(operator, epoch)``.
        fsync: force local files to disk before an epoch commits. Without it, as with Spark's own checkpoints
            on a local disk, the death of any process loses nothing, but a loss of power may. Object stores
            and HDFS need no such thing.
        local_state: where executors keep copies of runs if the checkpoint is not on a local disk.
        spark_checkpoint: where Spark keeps its own offsets; by default ``spark/`` below the checkpoint.
        filesystem: a ``pyarrow.fs`` filesystem, if the checkpoint is a path on it rather than a URI.
        query_name: the name of Spark's query.
    """
    flow, frames, functions = stream.dataflow()
    spark = stream.spark
    bits_of(bins)
    count = check_workers(min(bins, spark.sparkContext.defaultParallelism) if workers is None else workers)
    if count > bins:
        raise InvalidInput(
            f"{count} workers are more than the {bins} bins, and some would have none; start with "
            f"bins={1 << (count - 1).bit_length()} or more"
        )
    _check_place(checkpoint)
    check_whole("retain", retain, 1)
    if trigger is not None and not isinstance(trigger, Mapping):
        raise InvalidInput(
            f"trigger must be a dict such as {{'processingTime': '1 second'}}, not {trigger!r}"
        )
    if initial_state is not None and not isinstance(initial_state, Mapping):
        raise InvalidInput(
            f"initial_state must be a dict of operator names to DataFrames, not {initial_state!r}"
        )
    if at_end not in ("keep", "flush"):
        raise InvalidInput(f"at_end must be 'keep' or 'flush', not {at_end!r}")
    if combine not in ("auto", "none", "router", "native"):
        raise InvalidInput(f"combine must be auto, none, router or native, not {combine!r}")
    if late is not None and len(flow.timed_edges()) != 1:
        raise InvalidInput(
            "late= needs exactly one timed input, because late rows are delivered with its columns"
        )
    if late is not None and flow.reader(flow.timed_edges()[0]) != 0:
        raise InvalidInput("late= needs the timed input to be read by the first operator")
    asked = checked(controllers, [operator.name for operator in flow.operators])
    options = Options(
        bins,
        count,
        None if watermark_delay is None else int(seconds(watermark_delay) * 1e6),
        None if idle_timeout is None else seconds(idle_timeout),
        share_host_state,
        retain,
        fsync,
    )
    store = Store.open(checkpoint, filesystem) if filesystem is not None else Store.open(checkpoint)
    if spark_checkpoint is None and filesystem is not None and not store.is_local:
        raise InvalidInput(
            "with filesystem=..., say where Spark keeps its own checkpoint: spark_checkpoint=..."
        )
    query = Query(
        flow,
        frames,
        functions,
        Coordinator(
            store,
            flow,
            options,
            as_sink(sink or noop()),
            as_sink(late) if late else None,
            removal=Removal(store),
        ),
        trigger=dict(trigger or {"processingTime": "0 seconds"}),
        combine=combine,
        at_end=at_end,
        local=local_state,
        spark_checkpoint=spark_checkpoint or spark_path(store, "spark"),
        name=query_name,
    )
    try:
        query.begin(dict(initial_state or {}), asked)
    except BaseException:
        query.release()
        raise
    return query


def _check_place(checkpoint: Any) -> None:
    if not isinstance(checkpoint, str | os.PathLike) or not os.fspath(checkpoint):
        raise InvalidInput(f"checkpoint must be a directory or a URI, not {checkpoint!r}")
