"""Events as parquet files, for other systems to read the very same ones: ``person/``, ``auction/`` and ``bid/`` below a folder.

Files are named by their first event and hold the events of a fixed range, so writing can be gone on with; each appears whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sterna.errors import check_whole
from sterna.nexmark.generator import SCHEMAS, Shape, generate

FILE_EVENTS = 1_000_000


def write(
    shape: Shape,
    folder: Path,
    events: int,
    each: int = FILE_EVENTS,
    tell: Callable[[int], None] = lambda _: None,
    kinds: Sequence[str] = tuple(SCHEMAS),
) -> int:
    """Writes the events that are not there yet; returns how many files it wrote. ``tell`` gets the events done so far."""
    check_whole("events", events, 1)
    check_whole("each", each, 1)
    written = 0
    for kind in kinds:
        (folder / kind).mkdir(parents=True, exist_ok=True)
    for start in range(0, events, each):
        stop = min(start + each, events)
        wanted = {kind: folder / kind / f"{start:015d}-{stop:015d}.parquet" for kind in kinds}
        missing = [kind for kind, path in wanted.items() if not path.exists()]
        made = dict(zip(SCHEMAS, generate(shape, start, stop, missing).batches, strict=True))
        for kind in missing:
            hidden = wanted[kind].with_name(f".{wanted[kind].name}")
            pq.write_table(pa.Table.from_batches([made[kind]]), hidden)
            hidden.rename(wanted[kind])
            written += 1
        tell(stop)
    return written
