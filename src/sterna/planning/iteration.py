"""What partitionings will cost: the values of a Markov decision process.

It is solved for the partitionings that are given.

The process. A state is a number of workers and a partitioning of the bins for them. The next number of
workers is drawn from the matrix's row; then a partitioning for it is chosen. That costs the state that moves,
as a part of all; costs of later steps count less and less, by ``gamma`` a step. The value of a state is the
least such cost of all that is to come.

Where the number of workers stays the same, nothing moves: what moves now could as well move at the next
change, which costs no more (moving obeys the triangle inequality) and counts less. So such steps need no
choice, and only delay the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sterna.planning.matrix import Matrix
from sterna.planning.overlap import kept

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Costs = Mapping[tuple[int, int], Floats]
"""What moves from each partitioning to each, for each pair of worker counts.

Pairs are those of which the second may follow the first.
"""

PRECISE = 1e-12
SWEEPS = 8
"""For how long a policy's values are carried on before it is looked for a better one.

It is in multiples of how long costs matter, 1 / (1 - gamma) steps.
"""


@dataclass(frozen=True, eq=False)
class Solution:
    """The values of partitionings, and where the best way leads from each.

    Attributes:
        values: for each worker count the value of each partitioning.
        choices: for each pair of worker counts the best next partitioning of each.
    """

    values: dict[int, Floats]
    choices: dict[tuple[int, int], Ints]


def solve(matrix: Matrix, gamma: float, many: Mapping[int, int], costs: Costs) -> Solution:
    """The values to within ``PRECISE / (1 - gamma)²``, by policy iteration.

    Values are carried on in it rather than solved for.

    Args:
        matrix: how worker counts follow each other.
        gamma: what a later step counts.
        many: how many partitionings there are for each worker count.
        costs: what moves; see ``Costs``.
    """
    # Everything moves for ever: from there on values only fall.
    values = {count: np.full(many[count], 1 / (1 - gamma)) for count in matrix.counts}
    # Values are sums of about so many numbers, and no more precise than that.
    enough = PRECISE / (1 - gamma)
    while True:
        choices = {
            pair: np.asarray((cost + gamma * values[pair[1]]).argmin(axis=1)) for pair, cost in costs.items()
        }
        paid = {
            pair: np.take_along_axis(costs[pair], choice[:, None], 1)[:, 0]
            for pair, choice in choices.items()
        }
        for sweep in range(int(SWEEPS / (1 - gamma))):
            after = _carried(matrix, gamma, values, paid, choices)
            change = max(float(np.abs(after[count] - values[count]).max()) for count in values)
            values = after
            if sweep == 0 and change <= enough:
                return Solution(values, choices)
            if change <= enough / 8:
                break


@dataclass(frozen=True, eq=False)
class Sight:
    """What one sees from a partitioning: the candidates for each next worker count, and their values.

    Attributes:
        matrix: how worker counts follow each other.
        gamma: what a later step counts.
        candidates: for each worker count partitionings, as cuts.
        values: their values.
        held: the state before each bin, and at the end all of it.
    """

    matrix: Matrix
    gamma: float
    candidates: Mapping[int, Ints]
    values: Mapping[int, Floats]
    held: Floats

    def moved(self, old: Ints, new: Ints) -> Floats:
        """What moves from each partitioning to each."""
        return np.asarray(self.held[-1] - kept(old, new, self.held))

    def value(self, rows: Ints, count: int) -> Floats:
        """The values of any partitionings for so many workers.

        That is one step on, to the best of the candidates, and what those cost later.
        """
        out = np.zeros(len(rows))
        for after, chance in self.matrix.following(count).items():
            onward = self.moved(rows, self.candidates[after]) + self.gamma * self.values[after]
            out += chance * onward.min(axis=1)
        return out / (1 - self.gamma * self.matrix.staying(count))


def visits(matrix: Matrix, solution: Solution, steps: int = 256) -> dict[int, Floats]:
    """How often the best way comes by each partitioning, in the long run.

    It is averaged over the later half of so many steps, from all of them alike.
    """
    here = {
        count: np.full(len(found), 1 / len(solution.values) / len(found))
        for count, found in solution.values.items()
    }
    mean = {count: np.zeros(len(found)) for count, found in here.items()}
    for step in range(steps):
        after = {count: matrix.staying(count) * found for count, found in here.items()}
        for (count, later), choice in solution.choices.items():
            chance = matrix.following(count)[later]
            after[later] += np.bincount(choice, chance * here[count], len(after[later]))
        here = after
        if step >= steps // 2:
            mean = {count: mean[count] + found / (steps - steps // 2) for count, found in here.items()}
    return mean


def _carried(
    matrix: Matrix,
    gamma: float,
    values: Mapping[int, Floats],
    paid: Mapping[tuple[int, int], Floats],
    choices: Mapping[tuple[int, int], Ints],
) -> dict[int, Floats]:
    out = {}
    for count, found in values.items():
        total = np.zeros(len(found))
        for after, chance in matrix.following(count).items():
            total += chance * (paid[count, after] + gamma * values[after][choices[count, after]])
        out[count] = total / (1 - gamma * matrix.staying(count))
    return out
