"""Precomputed values, together with what they hold for; ``stored`` keeps them in a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sterna.errors import InvalidInput
from sterna.planning import stored
from sterna.planning.checks import check_number
from sterna.planning.inputs import Inputs
from sterna.planning.iteration import Sight
from sterna.planning.search import Found

Floats = npt.NDArray[np.float64]


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
        stored.write(path, self.inputs, self.found)

    @classmethod
    def load(cls, path: str | Path, inputs: Inputs | None = None, tolerance: float = 0.0) -> Values:
        """Reads a file.

        Args:
            path: the file.
            inputs: what the values are wanted for; whatever they hold for unless given.
            tolerance: how much of all state, and of all load, may be in other bins than the values were made
                for.

        Raises:
            InvalidInput: it can't be read, is damaged, wrong or of another format, or its inputs differ from
                those wanted: what it is is named.
        """
        check_number("tolerance", tolerance)
        values = cls(*stored.read(path))
        if inputs is not None and (differences := values.inputs.differences(inputs, tolerance)):
            raise InvalidInput(f"the values of {path} hold for something else: {'; '.join(differences)}")
        return values

    def check_state(self, sizes: Floats, loads: Floats, tolerance: float = 0.0) -> None:
        """Raises ``InvalidInput`` unless bins are as large and as busy as they were.

        The error names what differs.
        """
        if differences := self.inputs.state_differences(sizes, loads, check_number("tolerance", tolerance)):
            raise InvalidInput(f"the values hold for something else: {'; '.join(differences)}")

    def sight(self, held: Floats) -> Sight:
        """What is seen with these values.

        Args:
            held: the state before each bin, as parts of all of it; there may be several times as many bins as
                the values know, which then are groups of neighbours.
        """
        each = (len(held) - 1) // self.inputs.bins
        candidates = {count: rows * each for count, rows in self.found.candidates.items()}
        return Sight(self.inputs.matrix, self.inputs.gamma, candidates, self.found.values, held)
