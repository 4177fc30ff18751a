"""Schedules in which every sender and every receiver has one thing to do at a time.

They are edge colourings of a bipartite multigraph. In: how many edges there are between each pair (sender,
receiver). Out: matchings, one after the other, that use up all edges, in as many as the largest degree: no
schedule has fewer (König). Edges are padded until every node has that degree, a regular bipartite graph has a
perfect matching, and taking any away leaves a regular one. A matching is used again as long as all of its
pairs have edges left, so few of them have to be found. Where edges have an order, every matching is a new
one: it has the first edge, if it can also the second, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

Pair = tuple[int, int]
Matrix = npt.NDArray[np.int64]
TOLD_APART, LAST = 40, 2.0**-46
"""How many edges at a time are told apart by their order, and what each of the others weighs.

A sum of these has no more bits than a float keeps.
"""
NO_EDGE = -4.0
"""Less than all edges of a matching together may weigh."""


def matchings(counts: Mapping[Pair, int], order: Callable[[Pair], int] | None = None) -> Iterator[list[Pair]]:
    """See the module's docstring; ``order`` tells the place of the next edge of a pair that has some left.

    >>> list(matchings({(0, 1): 2, (0, 2): 1, (3, 1): 1}))
    [[(0, 1)], [(0, 1)], [(0, 2), (3, 1)]]
    >>> list(matchings({(0, 1): 2, (0, 2): 1, (3, 1): 1}, order={(0, 2): 0, (0, 1): 1, (3, 1): 2}.get))
    [[(0, 2), (3, 1)], [(0, 1)], [(0, 1)]]
    """
    senders = sorted({sender for sender, _ in counts})
    receivers = sorted({receiver for _, receiver in counts})
    if not senders:
        return
    size = max(len(senders), len(receivers))
    real = np.zeros((size, size), np.int64)
    for (sender, receiver), count in counts.items():
        real[senders.index(sender), receivers.index(receiver)] += count
    padding = _padding(real)
    while real.any():
        if order is None:
            partner = _perfect(real + padding)
        else:
            places = {
                (row, column): order((senders[row], receivers[column]))
                for row, column in np.argwhere(real).tolist()
            }
            partner = _first(real + padding, places)
        rows = np.arange(size)
        # A pair of a matching may have real edges and padding: the real ones go first.
        genuine = real[rows, partner] > 0
        times = min(
            int(real[rows, partner][genuine].min(initial=np.iinfo(np.int64).max)),
            int(padding[rows, partner][~genuine].min(initial=np.iinfo(np.int64).max)),
        )
        pairs = [(senders[row], receivers[partner[row]]) for row in rows[genuine].tolist()]
        times = times if order is None else 1
        for _ in range(times):
            if pairs:
                yield pairs
        real[rows[genuine], partner[genuine]] -= times
        padding[rows[~genuine], partner[~genuine]] -= times


def _padding(real: Matrix) -> Matrix:
    """Further edges that give all nodes the same degree."""
    degree = max(int(real.sum(axis=0).max()), int(real.sum(axis=1).max()))
    rows, columns = degree - real.sum(axis=1), degree - real.sum(axis=0)
    padding = np.zeros_like(real)
    row = column = 0
    while row < len(rows) and column < len(columns):
        count = min(rows[row], columns[column])
        padding[row, column] += count
        rows[row] -= count
        columns[column] -= count
        if rows[row] == 0:
            row += 1
        else:
            column += 1
    return padding


def _first(edges: Matrix, places: Mapping[Pair, int]) -> npt.NDArray[np.int64]:
    """The partner of each row in the perfect matching that has the edges of the first places.

    An edge weighs as much as all that come after it together, or more.
    """
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - it takes a while, and few have an order

    weights = np.where(edges > 0, 0.0, NO_EDGE)
    for at, pair in enumerate(sorted(places, key=lambda pair: places[pair])):
        weights[pair] = 2.0**-at / 2 if at < TOLD_APART else LAST
    return np.asarray(linear_sum_assignment(weights, maximize=True)[1], np.int64)


def _perfect(edges: Matrix) -> npt.NDArray[np.int64]:
    """The partner of each row in a perfect matching of a regular bipartite multigraph.

    It is found by augmenting paths.
    """
    size = len(edges)
    choices = [
        np.flatnonzero(row)[np.argsort(-row[np.flatnonzero(row)], kind="stable")].tolist() for row in edges
    ]
    owner = [-1] * size  # the row that has a column
    for start in range(size):
        came: dict[int, int] = {}  # column -> the row that reached it
        queue = [start]
        free = -1
        while queue and free < 0:
            row = queue.pop(0)
            for column in choices[row]:
                if column in came:
                    continue
                came[column] = row
                if owner[column] < 0:
                    free = column
                    break
                queue.append(owner[column])
        assert free >= 0, "a regular graph has a perfect matching"
        while free >= 0:
            row = came[free]
            previous = owner.index(row) if row in owner else -1
            owner[free] = row
            if previous >= 0:
                owner[previous] = -1
            free = previous
    partner = np.empty(size, np.int64)
    for column, row in enumerate(owner):
        partner[row] = column
    return partner
