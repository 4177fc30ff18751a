"""Precomputed values as a file: written whole or not at all, and read only if it is what it should be.

The file is NumPy's ``.npz``: the inputs, and for each worker count the candidates, their values and the
prices of intervals. Every part is read to its end, which compares its checksum; then each array must have its
type, its shape and its range. What is damaged or wrong raises one ``InvalidInput`` that names the file and
what is wrong with it.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sterna.errors import InvalidInput
from sterna.planning.inputs import Inputs
from sterna.planning.matrix import Matrix
from sterna.planning.priced import Pieces
from sterna.planning.search import Found

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

KIND, FORMAT = "sterna values", 1
WHOLE, REAL, TRUTH = "iu", "f", "b"
TYPES = {WHOLE: "whole numbers", REAL: "floating-point numbers", TRUTH: "truth values"}
ROUNDING = 1e-6
"""Values are sums: by so much, as part of the highest there may be, they may be beyond their range."""


def write(path: str | Path, inputs: Inputs, found: Found) -> None:
    """Writes the file; what was there before stays if that fails."""
    arrays: dict[str, Any] = {
        "kind": KIND,
        "format": FORMAT,
        "exact": found.exact,
        "tau": inputs.tau,
        "gamma": inputs.gamma,
        "sizes": inputs.sizes,
        "loads": inputs.loads,
        "counts": np.array(inputs.matrix.counts),
        "matrix": inputs.matrix.rows,
    }
    parts: dict[str, Mapping[int, Array]] = {
        "candidates": found.candidates,
        "values": found.values,
        "prices": found.prices,
    }
    for name, of_counts in parts.items():
        arrays |= {f"{name}-{count}": part for count, part in of_counts.items()}
    target = Path(path)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with open(unfinished, "wb") as file:
            np.savez_compressed(file, **arrays)
        os.replace(unfinished, target)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise InvalidInput(f"{path} can't be written: {error}") from error


def read(path: str | Path) -> tuple[Inputs, Found]:
    """Reads a file; see the module's docstring."""
    arrays = _unpacked(path)
    try:
        return _checked(arrays)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error


def _unpacked(path: str | Path) -> dict[str, Array]:
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy"): _array(archive.read(name)) for name in archive.namelist()}
    except (
        Exception
    ) as error:  # a damaged archive fails in as many ways as zipfile, zlib and NumPy have parts
        reason = str(error) or type(error).__name__
        raise InvalidInput(f"{path} can't be read as precomputed values: {reason}") from error


def _array(data: bytes) -> Array:
    stream = io.BytesIO(data)
    array: Array = np.lib.format.read_array(stream, allow_pickle=False)
    if stream.read(1):
        raise ValueError("an array is longer than it says")
    return array


def _checked(arrays: dict[str, Array]) -> tuple[Inputs, Found]:
    if str(arrays.get("kind")) != KIND:
        raise InvalidInput("this is not a file of precomputed values")
    version = int(_part(arrays, "format", WHOLE))
    if version != FORMAT:
        raise InvalidInput(
            f"it is in format {version}, and this version of Sterna reads format {FORMAT}: "
            "precompute it again"
        )
    matrix = Matrix.of(
        _part(arrays, "counts", WHOLE, None).tolist(), _part(arrays, "matrix", REAL, None, None)
    )
    sizes, loads = (_part(arrays, name, REAL, None) for name in ("sizes", "loads"))
    tau, gamma = (float(_part(arrays, name, REAL)) for name in ("tau", "gamma"))
    inputs = Inputs.of(sizes, loads, matrix, tau, gamma)
    candidates = {count: _candidates(arrays, count, inputs.bins) for count in matrix.counts}
    values = {count: _values(arrays, count, len(rows), gamma) for count, rows in candidates.items()}
    exact = bool(_part(arrays, "exact", TRUTH))
    prices = {} if exact else {count: _prices(arrays, count, inputs) for count in matrix.counts}
    return inputs, Found(candidates, values, prices, exact)


def _candidates(arrays: dict[str, Array], count: int, bins: int) -> Ints:
    """Rows of cuts into so many intervals, from the first bin to the last; at least one."""
    name = f"candidates-{count}"
    rows = _part(arrays, name, WHOLE, None, count + 1).astype(np.int64)
    if not len(rows):
        raise InvalidInput(f"{name} is empty: a worker count has one candidate at least")
    wrong = (rows[:, 0] != 0) | (rows[:, -1] != bins) | (rows[:, 1:] < rows[:, :-1]).any(axis=1)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InvalidInput(
            f"{name}, row {at} is {rows[at].tolist()}: cuts must ascend from 0 to {bins}, the number of bins"
        )
    return rows


def _values(arrays: dict[str, Array], count: int, many: int, gamma: float) -> Floats:
    """What so many candidates cost: at most everything at every step, for ever."""
    name, highest = f"values-{count}", 1 / (1 - gamma)
    values = _part(arrays, name, REAL, many).astype(np.float64)
    wrong = ~((values >= -ROUNDING * highest) & (values <= (1 + ROUNDING) * highest))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InvalidInput(
            f"{name}, entry {at} is {values[at]:g}: with a gamma of {gamma:g} it must be a number from 0 to "
            f"{highest:g}"
        )
    return values


def _prices(arrays: dict[str, Array], count: int, inputs: Inputs) -> Floats:
    """What each interval adds, about: one for each that may be, as ``priced`` lays them out."""
    pieces = Pieces.of(inputs.sizes, inputs.loads, count, inputs.tau)
    prices = _part(arrays, f"prices-{count}", REAL, *pieces.begins.shape).astype(np.float64)
    if not np.isfinite(prices).all():
        row, column = np.argwhere(~np.isfinite(prices))[0].tolist()
        raise InvalidInput(
            f"prices-{count}, row {row}, column {column} is {prices[row, column]:g}: it must be a number"
        )
    return prices


def _part(arrays: dict[str, Array], name: str, kind: str, *shape: int | None) -> Array:
    """An array of this type and shape, in which None stands for any length."""
    array = arrays.get(name)
    if array is None:
        raise InvalidInput(f"{name} is missing")
    fits = array.ndim == len(shape) and all(
        want in (None, have) for want, have in zip(shape, array.shape, strict=True)
    )
    if array.dtype.kind not in kind or not fits:
        wanted = " × ".join("any" if length is None else str(length) for length in shape)
        raise InvalidInput(
            f"{name} must be {TYPES[kind]}{f', {wanted} of them' if shape else ', one of them'}; "
            f"it is {array.dtype}, {' × '.join(map(str, array.shape)) or 'one'} of them"
        )
    return array
