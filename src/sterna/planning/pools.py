"""Candidates for each worker count, renewed in rounds; see ``search``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from sterna.planning.fitting import prices
from sterna.planning.inputs import Inputs
from sterna.planning.iteration import Sight, Solution, solve, visits
from sterna.planning.plan import before
from sterna.planning.priced import Pieces, following
from sterna.planning.tasks import Better, Between, Each, Wander, better, moved, wandered

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NOISES = (1e-4, 0.01, 0.05, 0.2)
"""How high random prices of an interval are, as parts of all state: the lowest decide only ties."""
SELDOM = 1e-6
"""What is visited less often than this is not visited."""
UNVISITED = 0.3
"""How much all candidates of a count together weigh in a guess of values.

How often each is visited weighs besides.
"""


class Pools:
    """The candidates of a search.

    Attributes:
        candidates: for each worker count rows of cuts.
    """

    def __init__(self, inputs: Inputs, complete: Mapping[int, Ints], each: Each, size: int) -> None:
        self._inputs, self._matrix, self._held = inputs, inputs.matrix, inputs.held
        self._complete, self._each, self._size = complete, each, size
        self._pieces = {
            count: Pieces.of(inputs.sizes, inputs.loads, count, inputs.tau) for count in inputs.matrix.counts
        }
        self._seed = 0
        self.candidates = {
            count: complete[count] if count in complete else even(inputs.loads, pieces)
            for count, pieces in self._pieces.items()
        }

    def add(self, found: Mapping[int, Ints]) -> None:
        """Some more candidates, by worker count."""
        for count, rows in found.items():
            if count not in self._complete:
                self.candidates[count] = _distinct([self.candidates[count], rows])

    def solved(self) -> Solution:
        """The values of all candidates."""
        pairs = [(one, after) for one in self._matrix.counts for after in self._matrix.following(one)]
        once = sorted({(min(pair), max(pair)) for pair in pairs})
        tasks = [Between(self.candidates[one], self.candidates[other], self._held) for one, other in once]
        found = dict(zip(once, self._each(moved, tasks), strict=True))
        costs = {pair: found[pair] if pair in found else found[pair[::-1]].T for pair in pairs}
        many = {count: len(rows) for count, rows in self.candidates.items()}
        return solve(self._matrix, self._inputs.gamma, many, costs)

    def guessed(self, solution: Solution) -> dict[int, Floats]:
        """Prices of intervals, whose sums are about the values."""
        often = visits(self._matrix, solution)
        out = {}
        for count, rows in self.candidates.items():
            weights = often[count] + (often[count].sum() + SELDOM) * UNVISITED / len(rows)
            out[count] = prices(rows, solution.values[count], weights, self._pieces[count])
        return out

    def widen(self) -> None:
        """Fills the pools with what random steps from the candidates lead to."""
        alike = {count: np.ones(len(rows)) for count, rows in self.candidates.items()}
        self.candidates = self._filled(self.candidates, self._wanderings(alike))

    def renew(self, solution: Solution, guess: Mapping[int, Floats], looked_at: int) -> None:
        """Keeps what is of use, adds what is better, and fills up with what random steps lead to."""
        often = visits(self._matrix, solution)
        looks = self._looks(solution, often, guess, looked_at)
        found = list(zip(looks, self._each(better, looks), strict=True))
        held = {}
        for count, rows in self.candidates.items():
            most = _highest(often[count], self._size // 3)
            least = _highest(-solution.values[count], self._size // 6)
            added = _best([one for task, one in found if task.count == count], self._size // 3, rows[:0])
            held[count] = _distinct([rows[most[often[count][most] > SELDOM]], rows[least], added])
        self.candidates = self._filled(held, self._wanderings(often))

    def _looks(
        self, solution: Solution, often: Mapping[int, Floats], guess: Mapping[int, Floats], looked_at: int
    ) -> list[Better]:
        """From where better ones are looked for: where the best way comes by most often."""
        tasks = []
        for (count, after), choice in solution.choices.items():
            top = _highest(often[count], looked_at)
            top = top[often[count][top] > SELDOM]
            if after in self._complete or not len(top):
                continue
            rows, chosen = self.candidates[count][top], choice[top]
            paid = np.diagonal(moved(Between(rows, self.candidates[after][chosen], self._held)))
            tasks.append(
                Better(
                    rows,
                    paid + self._inputs.gamma * solution.values[after][chosen],
                    often[count][top] * self._matrix.following(count)[after],
                    after,
                    self._pieces[after],
                    guess[after],
                    self._sight(after, solution),
                )
            )
        return tasks

    def _sight(self, count: int, solution: Solution) -> Sight:
        """What is seen from one count, and nothing else: it is sent along."""
        seen = self._matrix.following(count)
        return Sight(
            self._matrix,
            self._inputs.gamma,
            {after: self.candidates[after] for after in seen},
            {after: solution.values[after] for after in seen},
            self._held,
        )

    def _wanderings(self, often: Mapping[int, Floats]) -> list[Wander]:
        """From where random steps are made.

        There are as many for each count as its pool has room, from wherever it may be reached, rather from
        where one often is.
        """
        self._seed += 1
        random, tasks = np.random.default_rng(self._seed), []
        for count, pieces in self._pieces.items():
            origins = [one for one in self.candidates if count in self._matrix.following(one)]
            for origin in origins if count not in self._complete else []:
                many = max(1, self._size // len(origins) // len(NOISES))
                chances = often[origin] + SELDOM
                for number, noise in enumerate(NOISES):
                    rows = self.candidates[origin][
                        random.choice(len(chances), many, p=chances / chances.sum())
                    ]
                    tasks.append(Wander(rows, count, pieces, noise, (self._seed, count, origin, number)))
        return tasks

    def _filled(self, held: Mapping[int, Ints], tasks: Sequence[Wander]) -> dict[int, Ints]:
        found = list(zip(tasks, self._each(wandered, tasks), strict=True))
        random, out = np.random.default_rng((self._seed, 0)), {}
        for count, rows in held.items():
            if count in self._complete:
                out[count] = self._complete[count]
                continue
            new = _distinct([rows[:0], *(one for task, one in found if task.count == count)])
            room = max(0, self._size - len(rows))
            out[count] = _distinct([rows, new[random.permutation(len(new))[:room]]])
        return out


def even(loads: Floats, pieces: Pieces) -> Ints:
    """One partitioning with about as much load for everybody, as a row of cuts."""
    load_before = before(loads)
    load = load_before[:, None] - load_before[np.maximum(pieces.begins, 0)]
    # Squares are least when all are alike, and weigh so much that it does not matter what moves.
    prices = load * load * 100 * pieces.workers
    return following(np.array([[0, len(loads)]]), pieces, prices)


def _highest(values: Floats, many: int) -> Ints:
    return np.argsort(-values, kind="stable")[:many]


def _distinct(parts: Sequence[Ints]) -> Ints:
    return np.unique(np.concatenate(parts), axis=0)


def _best(found: Sequence[tuple[Ints, Floats]], many: int, none: Ints) -> Ints:
    """Those that gain most, all who found them together."""
    rows = np.concatenate([none, *(rows for rows, _ in found)])
    gains = np.concatenate([np.zeros(0), *(gains for _, gains in found)])
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    gained = np.bincount(which.ravel(), gains, len(distinct)).astype(np.float64)
    return distinct[_highest(gained, many)]
