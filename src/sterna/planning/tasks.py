"""What a search for candidates has done elsewhere: functions of one task, which carries all that it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from sterna.planning.iteration import Sight
from sterna.planning.overlap import kept
from sterna.planning.priced import Pieces, following

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Task = TypeVar("Task")
Result = TypeVar("Result")

PARTS = (0.0, 0.02, 0.3, 1.0)
"""How much of the guessed values is added to what moves.

That is nothing, so little that it decides ties, some, all.
"""
GAIN = 1e-9
"""What improves by no more than this does not improve."""


class Each(Protocol):
    """Calls a function with each task, wherever that happens.

    It gives what the function returns, in the same order.
    """

    def __call__(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
        """Does all of them."""
        ...


def in_turn(function: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
    """One task after the other, in this process."""
    return [function(task) for task in tasks]


@dataclass(frozen=True, eq=False)
class Between:
    """What moves from each of some partitionings to each of others?"""

    old: Ints
    new: Ints
    held: Floats


def moved(task: Between) -> Floats:
    """What moves: a row for each old one."""
    return np.asarray(task.held[-1] - kept(task.old, task.new, task.held))


@dataclass(frozen=True, eq=False)
class Better:
    """Is there a better next partitioning than the best candidate?

    Attributes:
        rows: from these partitionings.
        least: what the best way costs from each of them.
        weights: how often it is gone.
        count: to so many workers.
        pieces: the intervals that there may be then.
        prices: guesses of what these cost later.
        sight: the candidates.
    """

    rows: Ints
    least: Floats
    weights: Floats
    count: int
    pieces: Pieces
    prices: Floats
    sight: Sight


def better(task: Better) -> tuple[Ints, Floats]:
    """Those that are better, and by how much they make the best way cheaper, on average."""
    gamma = task.sight.gamma
    found = options(task.rows, task.pieces, gamma * task.prices)
    paid = np.concatenate([np.diagonal(task.sight.moved(task.rows, rows)) for rows in found])
    distinct, which = np.unique(np.concatenate(found), axis=0, return_inverse=True)
    total = paid + gamma * task.sight.value(distinct, task.count)[which.ravel()]
    gains = (np.tile(task.least, len(found)) - total) * np.tile(task.weights, len(found))
    good = gains > GAIN
    return distinct[which.ravel()[good]], gains[good]


def options(rows: Ints, pieces: Pieces, prices: Floats) -> list[Ints]:
    """Next partitionings of each, that move little, or cost little later by these prices, or both.

    The first move least.
    """
    return [following(rows, pieces, part * prices if part else None) for part in PARTS]


@dataclass(frozen=True, eq=False)
class Wander:
    """Where do single-step plans lead whose intervals have random prices?

    Attributes:
        rows: from these partitionings.
        count: to so many workers.
        pieces: the intervals that there may be then.
        noise: the highest price.
        seed: of the random numbers.
    """

    rows: Ints
    count: int
    pieces: Pieces
    noise: float
    seed: tuple[int, ...]


def wandered(task: Wander) -> Ints:
    """The plans, as cuts."""
    random = np.random.default_rng(task.seed)
    noise = random.random((len(task.rows), *task.pieces.begins.shape)) * task.noise
    return following(task.rows, task.pieces, noise)
