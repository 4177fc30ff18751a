"""Precomputed values, kept in a file together with what they hold for.

The file is NumPy's ``.npz``: the inputs, and for each worker count the candidates, their values and the prices of intervals. It is written whole or not at all, and read only if it is of
this format; a file that is something else, or holds for something else, raises ``InvalidInput`` that says so.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sterna.errors import InvalidInput
from sterna.planning.inputs import Inputs
from sterna.planning.iteration import Sight
from sterna.planning.matrix import Matrix
from sterna.planning.search import Found

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
KIND, FORMAT = "sterna values", 1


@dataclass(frozen=True, eq=False)
class Values:
    """What partitionings will cost, as far as this is known.

    Attributes:
        inputs: what this holds for.
        found: candidates and their values.
    """

    inputs: Inputs
    found: Found

    def save(self, path: str | Path) -> None:
        """Writes the file; what was there before stays if that fails."""
        arrays: dict[str, Any] = {
            "kind": KIND,
            "format": FORMAT,
            "exact": self.found.exact,
            "tau": self.inputs.tau,
            "gamma": self.inputs.gamma,
            "sizes": self.inputs.sizes,
            "loads": self.inputs.loads,
            "counts": np.array(self.inputs.matrix.counts),
            "matrix": self.inputs.matrix.rows,
        }
        for name, parts in (
            ("candidates", self.found.candidates),
            ("values", self.found.values),
            ("prices", self.found.prices),
        ):
            arrays |= {f"{name}-{count}": part for count, part in parts.items()}
        target = Path(path)
        unfinished = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            with open(unfinished, "wb") as file:
                np.savez_compressed(file, **arrays)
            os.replace(unfinished, target)
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            raise InvalidInput(f"{path} can't be written: {error}") from error

    @classmethod
    def load(cls, path: str | Path, inputs: Inputs | None = None, tolerance: float = 0.0) -> Values:
        """Reads a file.

        Args:
            path: the file.
            inputs: what the values are wanted for; whatever they hold for unless given.
            tolerance: how much of all state, and of all load, may be in other bins than the values were made for.

        Raises:
            InvalidInput: it can't be read, is damaged or of another format, or its inputs differ from those wanted: what differs is named.
        """
        try:
            with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
                values = cls._read(str(path), {name: file[name] for name in file.files})
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"{path} can't be read as precomputed values: {error}") from error
        if inputs is not None and (differences := values.inputs.differences(inputs, tolerance)):
            raise InvalidInput(f"the values of {path} hold for something else: {'; '.join(differences)}")
        return values

    @classmethod
    def _read(cls, path: str, arrays: dict[str, npt.NDArray[Any]]) -> Values:
        if str(arrays.get("kind")) != KIND:
            raise InvalidInput(f"{path} is not a file of precomputed values")
        if int(arrays["format"]) != FORMAT:
            raise InvalidInput(
                f"{path} is in format {int(arrays['format'])}, and this version of Sterna reads format {FORMAT}: precompute it again"
            )
        matrix = Matrix.of([int(count) for count in arrays["counts"]], arrays["matrix"])
        inputs = Inputs.of(
            arrays["sizes"], arrays["loads"], matrix, float(arrays["tau"]), float(arrays["gamma"])
        )
        exact = bool(arrays["exact"])
        found = Found(
            {count: arrays[f"candidates-{count}"] for count in matrix.counts},
            {count: arrays[f"values-{count}"] for count in matrix.counts},
            {} if exact else {count: arrays[f"prices-{count}"] for count in matrix.counts},
            exact,
        )
        return cls(inputs, found)

    def check_state(self, sizes: Floats, loads: Floats, tolerance: float = 0.0) -> None:
        """Raises ``InvalidInput`` that names what differs, unless bins are as large and as busy as they were."""
        if differences := self.inputs.state_differences(sizes, loads, tolerance):
            raise InvalidInput(f"the values hold for something else: {'; '.join(differences)}")

    def sight(self, held: Floats) -> Sight:
        """What is seen with these values.

        Args:
            held: the state before each bin, as parts of all of it; there may be several times as many bins as the values know, which then are groups of neighbours.
        """
        each = (len(held) - 1) // self.inputs.bins
        candidates = {count: rows * each for count, rows in self.found.candidates.items()}
        return Sight(self.inputs.matrix, self.inputs.gamma, candidates, self.found.values, held)
