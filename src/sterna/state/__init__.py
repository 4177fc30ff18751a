"""State: runs, the tables over them, and their compaction. Knows nothing of Spark."""

from __future__ import annotations

from sterna.state.caches import cache_for
from sterna.state.compaction import compact
from sterna.state.refs import END, RunRef, coalesce, drop, keep
from sterna.state.runs import Run, RunCache
from sterna.state.store import Store, encode_document
from sterna.state.tables import Located, Table, TableSpec

__all__ = [
    "END",
    "Located",
    "Run",
    "RunCache",
    "RunRef",
    "Store",
    "Table",
    "TableSpec",
    "cache_for",
    "coalesce",
    "compact",
    "drop",
    "encode_document",
    "keep",
]
