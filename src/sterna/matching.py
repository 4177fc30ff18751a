"""Schedules in which every sender and every receiver has one thing to do at a time.

They are edge colourings of a bipartite multigraph. In: how many edges there are between each pair (sender,
receiver). Out: matchings, one after the other, that use up all edges, in as many as the largest degree: no
schedule has fewer (König). Edges are padded until every node has that degree, a regular bipartite graph has a
perfect matching, and taking it away leaves a regular one. A matching is used again as long as all of its
pairs have edges left, so few of them have to be found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

Pair = tuple[int, int]
Matrix = npt.NDArray[np.int64]


def matchings(counts: Mapping[Pair, int]) -> Iterator[list[Pair]]:
    """See the module's docstring.

    >>> list(matchings({(0, 1): 2, (0, 2): 1, (3, 1): 1}))
    [[(0, 1)], [(0, 1)], [(0, 2), (3, 1)]]
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
        partner = _perfect(real + padding)
        rows = np.arange(size)
        # A pair of a matching may have real edges and padding: the real ones go first.
        genuine = real[rows, partner] > 0
        times = min(
            int(real[rows, partner][genuine].min(initial=np.iinfo(np.int64).max)),
            int(padding[rows, partner][~genuine].min(initial=np.iinfo(np.int64).max)),
        )
        pairs = [(senders[row], receivers[partner[row]]) for row in rows[genuine].tolist()]
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
