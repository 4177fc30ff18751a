"""Heat: how many rows reach each part of the hash space, as receipts tell it.

A worker counts the rows of the epoch in as many cells as there are bins, 16,384 at most. A receipt holds only
the cells that had rows, on a logarithmic scale, and a worker has rows only in its own bins: so the receipts
of an epoch hold each cell about once, all together 10 kB at most. Counts are right to a twentieth; where it
is known how many rows a worker got they are scaled to that. Where bins are finer than cells, heavy keys
(``sterna.keys``) are put into the bins that they fall into, and what is left of a cell is spread evenly.
Everything here is pure but ``Heat``.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sterna.hashing import Hashes, bins_of
from sterna.keys import Keys, heaviest_of

Floats = npt.NDArray[np.float64]
Owners = npt.NDArray[np.int32]

CELL_BITS = 14
"""Heat is counted in at most 2^CELL_BITS cells: it must fit into a receipt."""

MOST_CELLS = 1 << 20
STEPS_AN_OCTAVE = 8
FORGETTING = 0.2


def count_cells(hashes: Hashes, bits: int) -> npt.NDArray[np.int64]:
    """How many hashes fall into each cell."""
    cells = min(bits, CELL_BITS)
    return np.bincount(bins_of(hashes, cells), minlength=1 << cells)


def encode_heat(counts: npt.NDArray[np.int64]) -> str:
    """Counts as a short text.

    It holds how many cells there are, which of them had rows, and the logarithm of these, to a ninth,
    compressed.
    """
    there = counts > 0
    levels = np.minimum(np.round(np.log2(counts[there] + 1.0) * STEPS_AN_OCTAVE), 255).astype(np.uint8)
    # Neighbours are alike or chance: looking for longer repetitions takes time and room.
    pack = zlib.compressobj(strategy=zlib.Z_RLE)
    packed = pack.compress(np.packbits(there).tobytes() + levels.tobytes()) + pack.flush()
    return f"{len(counts)}:{base64.b85encode(packed).decode()}"


def decode_heat(text: str) -> Floats:
    """The counts, about; ``ValueError`` if it is no such text.

    One without the number of cells, as earlier versions wrote it, has a level for each.
    """
    head, _, body = text.rpartition(":")
    try:
        raw = np.frombuffer(zlib.decompress(base64.b85decode(body)), np.uint8)
    except zlib.error as error:
        raise ValueError(f"this is no count of rows: {error}") from error
    if not head:
        return _amounts(raw)
    cells = int(head)
    if not 0 < cells <= MOST_CELLS:
        raise ValueError(f"this is no count of rows: it has {cells} cells")
    which = -(-cells // 8)
    there = np.unpackbits(raw[:which], count=cells).astype(np.bool_)
    counts = np.zeros(cells)
    counts[there] = _amounts(raw[which:])
    return counts


def _amounts(levels: npt.NDArray[np.uint8]) -> Floats:
    return np.asarray(np.exp2(levels / STEPS_AN_OCTAVE) - 1, np.float64)


def counted(heat: Sequence[str | None], rows: Sequence[int]) -> Floats:
    """For each worker the rows of each cell, scaled to the rows that it got.

    Args:
        heat: the text of each worker. As earlier versions wrote them down they are in no order: then they are
            added up, for all workers together.
        rows: how many rows each worker got.
    """
    known = [_read(text) for text in heat]
    most = max((len(cells) for cells in known if cells is not None), default=1)
    table = np.array([np.zeros(most) if cells is None else spread(cells, most) for cells in known])
    if len(heat) != len(rows) or not all(text is None or ":" in text for text in heat):
        table, rows = table.reshape(-1, most).sum(axis=0, keepdims=True), [sum(rows)]
    return np.array([_scaled(cells, got) for cells, got in zip(table, rows, strict=True)])


def _scaled(cells: Floats, rows: float) -> Floats:
    """The same cells with so many rows in all, if they have any."""
    found = float(cells.sum())
    return cells * (rows / found) if found > 0 else cells


def _read(text: str | None) -> Floats | None:
    """The counts; ``None`` where there are none that can be read."""
    try:
        return decode_heat(text) if text else None
    except ValueError:
        return None


def spread(cells: Floats, bins: int) -> Floats:
    """The same amounts over another number of bins, both powers of two."""
    if bins >= len(cells):
        factor = bins // len(cells)
        return np.repeat(cells, factor) / factor
    return np.asarray(cells.reshape(bins, -1).sum(axis=1))


def parted(cells: Floats, bins: int, keys: Keys) -> Floats:
    """As ``spread``, but heavy keys weigh on the bins that they fall into.

    That is so where there are more bins than cells.
    """
    if bins <= len(cells):
        return spread(cells, bins)
    return laid_out(cells[np.newaxis], np.zeros(bins, np.int32), keys)


def laid_out(cells: Floats, owners: Owners, keys: Keys) -> Floats:
    """The rows of each bin where there are more bins than cells.

    Args:
        cells: for each worker, the rows that it got in each cell.
        owners: the worker of each bin.
        keys: of the same rows; never more of them than their cell has.

    Returns:
        What each worker got in a cell, over its own bins there: heavy keys in the bin that they fall into,
        the rest evenly.
    """
    bins, count = len(owners), cells.shape[1]
    flat = cells.ravel()
    place = np.arange(bins) // (bins // count) + owners.astype(np.int64) * count
    held = np.bincount(place, minlength=len(flat))
    at = bins_of(keys.hashes, (bins - 1).bit_length())
    known = np.bincount(place[at], keys.rows, len(flat))
    heavy = keys.rows * np.minimum(1.0, flat[place[at]] / np.maximum(known[place[at]], 1e-300))
    rest = np.maximum(flat - np.bincount(place[at], heavy, len(flat)), 0.0)
    return np.asarray(rest[place] / held[place] + np.bincount(at, heavy, bins), np.float64)


def remembered(operator: str, facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the workers of an operator told of its rows, as far as the facts of a manifest keep it."""
    told: list[dict[str, Any]] = [{"heat": text} for text in facts.get("heat", {}).get(operator, ()) if text]
    if told:
        told[0]["heavy"] = facts.get("heavy", {}).get(operator)
        told[0]["combined"] = operator in facts.get("combining", ())
    return told


class Heat:
    """The rows an epoch of each cell and of the heaviest keys, averaged over the last epochs.

    Rows that were combined before the exchange are others than rows as they come, and fewer: once it changes
    which of them workers get, what was learnt before says nothing.

    Attributes:
        keys: the heaviest keys.
    """

    def __init__(self) -> None:
        self._cells: Floats | None = None
        self._combined = False
        self.keys = Keys.none()

    def learn(self, receipts: Iterable[Mapping[str, Any]]) -> None:
        """Takes in the receipts of one operator and epoch.

        What a receipt does not tell, or what can't be read, is left out.
        """
        told = [(one, cells) for one in receipts if (cells := _read(one.get("heat"))) is not None]
        known = [_scaled(cells, one.get("rows", cells.sum())) for one, cells in told]
        if not known:
            return
        most = max(len(cells) for cells in known)
        total = np.sum([spread(cells, most) for cells in known], axis=0)
        keys = heaviest_of(one.get("heavy") for one, _ in told)
        combined = any(one.get("combined") for one, _ in told)
        if self._cells is None or len(self._cells) != most or combined != self._combined:
            self._cells, self.keys, self._combined = total, keys, combined
        else:
            self._cells = (1 - FORGETTING) * self._cells + FORGETTING * total
            self.keys = self.keys.scaled(1 - FORGETTING).after(keys.scaled(FORGETTING))

    def rows(self, bins: int) -> Floats:
        """About how many rows an epoch each bin gets."""
        return np.zeros(bins) if self._cells is None else parted(self._cells, bins, self.keys)
