"""Where single-step plans lead: the partitionings that one comes by who never looks ahead.

They are the first candidates of a search. A pool that has all of them holds a way that costs no more than one
single-step plan after the other, so what is found in it is no worse than that. There are few: some hundred
steps come by the same ones again and again.

In: what is planned for. Out: for each worker count rows of cuts, those visited most. Counts are drawn from
the matrix with a fixed seed, so the same inputs give the same partitionings.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from sterna.planning.assigning import cuts_of
from sterna.planning.inputs import Inputs
from sterna.planning.ssm import ssm

Ints = npt.NDArray[np.int64]

STEPS = 2_000
"""How many plans are made in all; each takes about a millisecond with 64 bins."""


def trodden(inputs: Inputs, most: int, steps: int = STEPS) -> dict[int, Ints]:
    """Partitionings that single-step plans lead to, at most so many for each worker count.

    The way begins at each count once, with all bins at one worker.
    """
    random = np.random.default_rng(0)
    counts = inputs.matrix.counts
    seen: dict[int, Counter[tuple[int, ...]]] = {count: Counter() for count in counts}
    for first in counts:
        count, owners = first, np.zeros(inputs.bins, np.int64)
        for _ in range(max(1, steps // len(counts))):
            owners = ssm(owners, inputs.sizes, inputs.loads, count, inputs.tau).assignment
            seen[count][tuple(cuts_of(owners, count).tolist())] += 1
            after = inputs.matrix.following(count)
            if not after:
                break
            chances = np.array(list(after.values()))
            count = int(random.choice(list(after), p=chances / chances.sum()))
    return {
        count: np.array([cuts for cuts, _ in visited.most_common(most)], np.int64).reshape(-1, count + 1)
        for count, visited in seen.items()
    }
