"""What a planner that looks ahead is told, checked.

That is how large and how busy bins are, how worker counts follow each other, the balance asked for, and how
much the future counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from sterna.errors import InvalidInput
from sterna.planning.checks import check_number, numbers
from sterna.planning.matrix import Matrix
from sterna.planning.plan import Numbers, Problem, before, check_feasible

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
SAME = 1e-9
"""Shares, probabilities, tau and gamma that differ by no more than this are the same."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """See the module's docstring. Costs are parts of all state, so only shares matter, not units.

    Attributes:
        sizes: each bin's share of all state.
        loads: each bin's share of all load.
        matrix: how worker counts follow each other.
        tau: how much more than the mean a worker's load may be.
        gamma: what a later migration counts, against the one before it: from 0 to less than 1.
    """

    sizes: Floats
    loads: Floats
    matrix: Matrix
    tau: float
    gamma: float

    @classmethod
    def of(cls, sizes: Numbers, loads: Numbers, matrix: Matrix, tau: float, gamma: float) -> Inputs:
        """Checked: ``InvalidInput`` names what is wrong.

        ``Unbalanceable`` names the least tau where a worker count needs a greater one.
        """
        if not isinstance(matrix, Matrix):
            raise InvalidInput(
                f"the matrix is {matrix!r}: it must be a Matrix, given (Matrix.of) or learnt (Matrix.learnt)"
            )
        matrix = Matrix.of(matrix.counts, matrix.rows)
        allowed = check_number("tau", tau, "; values hold for one balance")
        held = numbers("size", sizes)
        if not len(held):
            raise InvalidInput("there are no sizes: there must be a bin at least, with a size and a load")
        if matrix.counts[-1] > len(held):
            raise InvalidInput(
                f"the worker count {matrix.counts[-1]} is more than the {len(held)} bins: some would have "
                "none"
            )
        nobody = np.zeros(len(held), np.int64)
        problems = [Problem.of(nobody, held, loads, count) for count in matrix.counts]
        check_feasible(problems, allowed)
        return cls(shares(held), shares(problems[0].loads), matrix, allowed, check_gamma(gamma))

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return len(self.sizes)

    @property
    def held(self) -> Floats:
        """The state before each bin, and at the end all of it."""
        return before(self.sizes)

    def differences(self, other: Inputs, tolerance: float = 0.0) -> list[str]:
        """What is not the same, in words: as it is here, and as it is in the other.

        Args:
            other: the inputs to compare with.
            tolerance: how much of all state, and of all load, may be in other bins.
        """
        out = self.state_differences(other.sizes, other.loads, tolerance)
        for name in ("tau", "gamma"):
            ours, theirs = getattr(self, name), getattr(other, name)
            if abs(ours - theirs) > SAME:
                out.append(f"{name} is {ours:g}, not {theirs:g}")
        ours, theirs = self.matrix, other.matrix
        if ours.counts != theirs.counts:
            out.append(f"the worker counts are {_listed(ours.counts)}, not {_listed(theirs.counts)}")
        elif (apart := np.abs(ours.rows - theirs.rows)).max() > SAME:
            row, column = np.unravel_index(int(apart.argmax()), apart.shape)
            out.append(
                f"the probability of {ours.counts[column]} workers after {ours.counts[row]} is "
                f"{ours.rows[row, column]:.6g}, not {theirs.rows[row, column]:.6g}"
            )
        return out

    def state_differences(self, sizes: Floats, loads: Floats, tolerance: float = 0.0) -> list[str]:
        """The same for sizes and loads alone.

        If there are several times as many bins, groups of neighbours are compared.
        """
        if len(sizes) % self.bins:
            return [f"there are {self.bins} bins, not {len(sizes)}"]
        out = []
        for what, ours, theirs in (("state", self.sizes, sizes), ("load", self.loads, loads)):
            found = shares(theirs.reshape(self.bins, -1).sum(axis=1))
            if np.abs(ours - found).sum() / 2 > tolerance + SAME:
                at = int(np.abs(ours - found).argmax())
                out.append(f"bin {at} has {ours[at]:.4%} of all {what}, not {found[at]:.4%}")
        return out


def check_gamma(gamma: Any) -> float:
    """A discount as a number; ``InvalidInput`` if it is none from 0 to less than 1."""
    if isinstance(gamma, bool) or not isinstance(gamma, Real) or not 0 <= float(gamma) < 1:
        raise InvalidInput(f"gamma is {gamma!r}: it must be a number from 0 to less than 1")
    return float(gamma)


def shares(values: Floats) -> Floats:
    """Values as parts of their sum; all zero if that is."""
    total = float(values.sum())
    return values / total if total > 0 else np.zeros(len(values))


def _listed(counts: tuple[int, ...]) -> str:
    return ", ".join(map(str, counts))
