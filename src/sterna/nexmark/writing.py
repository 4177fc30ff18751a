"""Events as parquet files, for other systems to read the very same ones.

They are in ``person/``, ``auction/`` and ``bid/`` below a folder. Files are named by their events, a fixed
number in each, so writing can be gone on with; each appears whole or not at all. A folder remembers what its
events look like: others are refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sterna.errors import InvalidInput, check_whole
from sterna.nexmark.generator import SCHEMAS, generate
from sterna.nexmark.shape import Shape

FILE_EVENTS = 1_000_000
ABOUT = "events.json"
BEGAN = 1_500_000_000


def write(
    shape: Shape,
    folder: Path,
    events: int,
    each: int = FILE_EVENTS,
    tell: Callable[[int], None] = lambda _: None,
    kinds: Sequence[str] = tuple(SCHEMAS),
) -> list[Path]:
    """Writes the events that are not there yet; returns the files that it wrote.

    ``tell`` gets the events done so far.

    Raises:
        InvalidInput: if the folder has other events, or they end with part of a file and more are asked for.
    """
    check_whole("events", events, 1)
    check_whole("each", each, 1)
    _remember(folder, {**asdict(shape), "each": each, "events": events if events % each else None})
    written = []
    for kind in kinds:
        (folder / kind).mkdir(parents=True, exist_ok=True)
    for start in range(0, events, each):
        stop = min(start + each, events)
        wanted = {kind: folder / kind / f"{start:015d}-{stop:015d}.parquet" for kind in kinds}
        missing = [kind for kind, path in wanted.items() if not path.exists()]
        made = dict(zip(SCHEMAS, generate(shape, start, stop, missing).batches, strict=True))
        for kind in missing:
            hidden = wanted[kind].with_name(f".{wanted[kind].name}")
            try:
                pq.write_table(pa.Table.from_batches([made[kind]]), hidden)
                # Spark takes files in the order of their times, to the millisecond.
                os.utime(hidden, (BEGAN + start / each, BEGAN + start / each))
                hidden.rename(wanted[kind])
            except BaseException:
                hidden.unlink(missing_ok=True)
                raise
            written.append(wanted[kind])
        tell(stop)
    return written


def _remember(folder: Path, wanted: dict[str, Any]) -> None:
    """Writes down what the events of a folder look like, or refuses others."""
    text, about = json.dumps(wanted, sort_keys=True), folder / ABOUT
    if about.exists():
        held = about.read_text(encoding="utf-8")
        if json.loads(held) != json.loads(text):
            raise InvalidInput(f"{folder} holds other events, made with {held}; write these elsewhere")
        return
    folder.mkdir(parents=True, exist_ok=True)
    about.write_text(text, encoding="utf-8")
