"""What a report is made of: plain dictionaries and lists, ready for JSON.

``sterna.bench.report.render`` makes a page of it and ``sterna.live.summary_table`` a table. Times called
``t``, ``start`` and ``end`` are seconds since the run's own beginning; latencies are milliseconds; amounts of
memory and state are bytes. Whatever was not measured is left out, ``None`` or empty: the views then show a
dash, or nothing.
"""

from __future__ import annotations

from typing import Any, TypedDict


class Latencies(TypedDict, total=False):
    """Latencies of all records of a time, in milliseconds."""

    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None


class Slot(Latencies, total=False):
    """One slot of a timeline, usually 250 ms; a slot without records says nothing about latency."""

    t: float
    """When the slot begins."""
    records: int


class Span(TypedDict):
    """From the first epoch of a migration to the end of its last one."""

    start: float
    end: float


class Memory(TypedDict, total=False):
    """Memory at one moment."""

    t: float
    python_anonymous: int | None
    """Memory of all Python workers that is backed by no file."""
    jvm_resident: int | None


class RunName(TypedDict):
    """What every run has."""

    name: str
    """A heading, such as ``fluid, there``."""
    strategy: str
    """How the state moved: ``fluid``, ``paced``, ``restart``."""


class Run(RunName, Latencies, total=False):
    """One run: what was moved and what its records noticed; the latencies are those while it moved."""

    bins: int | None
    bytes: int | None
    steps: int | None
    epochs: int | None
    duration_s: float | None
    timeline: list[Slot]
    migration: Span | None
    gc: list[tuple[float, float]]
    """The JVM's garbage collections: when, and how many milliseconds."""
    memory: list[Memory]
    moved: list[tuple[float, float]]
    """When, and how many bytes had been moved by then."""
    steady_max_ms: float | None
    """The largest latency while nothing moved before this run; if it is missing, the report's is meant."""
    note: str | None
    """A sentence about this run."""


class Report(TypedDict, total=False):
    """The whole."""

    title: str
    summary: str
    """Two sentences below the title; made from the figures where it is missing."""
    machine: dict[str, Any]
    """Facts, as ``sterna.bench.machine.facts`` gives them."""
    steady: Latencies
    """The stream while nothing moves: what runs are compared with that have nothing of their own."""
    runs: list[Run]
    outputs_match: bool | None
    """Whether every run gave the output that the input implies."""
