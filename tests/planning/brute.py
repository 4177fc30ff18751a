"""Small problems, and what comes out when everything is tried."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

TAUS = (0.0, 0.1, 0.5, 1.0, 3.0)


def partitionings(count, workers):
    """All ways to cut bins into at most so many intervals: lists of (first bin, end)."""
    for pieces in range(1, min(count, workers) + 1):
        for cuts in itertools.combinations(range(1, count), pieces - 1):
            yield [*itertools.pairwise([0, *cuts, count])]


def even_enough(loads, workers, tau):
    """Those in which nobody has more than (1 + tau) times the mean."""
    limit = (1 + tau) * sum(loads) / workers
    for pieces in partitionings(len(loads), workers):
        if all(sum(loads[a:b]) <= limit * (1 + 1e-9) + 1e-9 for a, b in pieces):
            yield pieces


def given_out(pieces, owners, sizes, numbers):
    """The most state that stays if these intervals go to workers with these numbers, one each."""
    overlap = [
        [
            sum(size for owner, size in zip(owners[a:b], sizes[a:b], strict=True) if owner == worker)
            for worker in numbers
        ]
        for a, b in pieces
    ]
    places = itertools.permutations(range(len(numbers)), len(pieces))
    return max(sum(row[at] for row, at in zip(overlap, place, strict=True)) for place in places)


def most_kept(owners, sizes, loads, workers, tau, leaving="any"):
    """The most state that can stay, or None if no partitioning is that even."""
    numbers = range(workers if leaving == "last" else max(workers, max(owners) + 1))
    return max(
        (given_out(pieces, owners, sizes, numbers) for pieces in even_enough(loads, workers, tau)),
        default=None,
    )


def least_moved(owners, sizes, loads, workers, tau, leaving="any"):
    """The least state that moves if bins move freely, or None if no assignment is that even."""
    numbers = sorted(set(owners)) + [w for w in range(len(owners) + workers) if w not in owners]
    numbers = range(workers) if leaving == "last" else numbers[: max(workers, len(set(owners)))]
    everything = np.array([*itertools.product(numbers, repeat=len(owners))])
    held = np.stack([(everything == worker) @ np.array(loads, float) for worker in numbers])
    there = sum((everything == worker).any(axis=1) for worker in numbers)
    limit = (1 + tau) * sum(loads) / workers
    possible = (held <= limit * (1 + 1e-9) + 1e-9).all(axis=0) & (there <= workers)
    moved = (everything != np.array(owners)) @ np.array(sizes, float)
    return moved[possible].min() if possible.any() else None


@st.composite
def problems(draw, most=7, intervals=True, workers=4):
    """(assignment, sizes, loads, workers, tau), with zeros, ties, and more workers than bins."""
    count = draw(st.integers(1, most))
    old = draw(st.integers(1, workers))
    if intervals:
        cuts = sorted(draw(st.lists(st.integers(0, count), min_size=old - 1, max_size=old - 1)))
        who = draw(st.permutations(range(old)))
        ends = itertools.pairwise([0, *cuts, count])
        owners = [worker for worker, (a, b) in zip(who, ends, strict=True) for _ in range(b - a)]
    else:
        owners = draw(st.lists(st.integers(0, old - 1), min_size=count, max_size=count))
    amount = draw(st.sampled_from([st.integers(0, 5), st.floats(0, 1).map(lambda x: round(x, 3))]))
    amounts = st.lists(amount, min_size=count, max_size=count)
    return owners, draw(amounts), draw(amounts), draw(st.integers(1, workers)), draw(st.sampled_from(TAUS))


def skewed(count, workers, seed):
    """A larger problem: intervals, loads of which few are large, sizes that go with them."""
    random = np.random.default_rng(seed)
    loads = random.pareto(1.5, count) + 0.05
    loads = np.minimum(loads, loads.sum() / (4 * workers))
    return np.arange(count) * workers // count, loads * random.uniform(0.5, 1.5, count) * 1e6, loads
