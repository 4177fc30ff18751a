"""Reads the state of an operator at a committed epoch as a batch DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from sterna.engine.coordinator import Coordinator
from sterna.engine.process import settle
from sterna.errors import InvalidInput
from sterna.state.caches import cache_for
from sterna.state.manifest import Manifest
from sterna.state.refs import RunRef
from sterna.state.spec import TableSpec
from sterna.state.store import Store
from sterna.state.tables import Table


class _Reader:
    def __init__(
        self, store: Store, local: str | None, spec: TableSpec, refs: list[list[RunRef]], horizon: int | None
    ) -> None:
        self.store, self.local, self.spec, self.refs, self.horizon = store, local, spec, refs, horizon

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        cache = cache_for(self.store, self.local)
        names = [item.name for item in self.spec.schema() if item.name.startswith(("k.", "v."))]
        for batch in batches:
            for worker in batch.column(0).to_pylist():
                live = Table(self.spec, self.refs[worker], cache, self.horizon).scan()
                yield from live.select(names).rename_columns([name[2:] for name in names]).to_batches()


def state_frame(
    spark: Any,
    flow: Any,
    coordinator: Coordinator,
    manifest: Manifest,
    operator: str,
    table: str | None,
    local: str | None,
) -> Any:
    """A lazy DataFrame over the runs that a manifest names, one partition a worker."""
    specs = flow.operators[flow.index(operator)].tables
    spec = next((one for one in specs if table in (None, one.name)), None)
    if spec is None:
        raise InvalidInput(
            f"operator {operator!r} has no table {table!r}; it has {[one.name for one in specs]}"
        )
    workers = manifest.state.get(operator, {})
    refs = [tables.get(spec.name, []) for _, tables in sorted(workers.items())] or [[]]
    schema = from_arrow_schema(pa.schema([*spec.keys, *spec.values]))
    horizon = coordinator.horizons(manifest, flow.index(operator))[spec.name]
    reader = _Reader(coordinator.store, local, spec, refs, horizon)
    return spark.range(0, len(refs), 1, len(refs)).mapInArrow(reader, schema)
