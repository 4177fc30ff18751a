"""Which partitionings to look at, where there are too many to look at all of them.

A pool of candidates for each worker count begins with what single-step plans lead to (``walk``), and is
renewed in rounds. In each round the values of the candidates are found as if there were no other
partitionings; then better ones are looked for. Those that the best way comes by are kept, and those of the
least value. Those are added that would make the best way cheaper. The rest of a pool are single-step plans
with a little chance in them, which is where new ideas come from.

Better ones are found by the dynamic programme of ``priced``: from the partitionings visited most, to each
next count, with more or less of the guessed values (``fitting``) as prices of intervals. Whether what it
finds is better is not guessed: it is looked one step ahead from there, at the candidates and their values.

A worker count with few partitionings has all of them in its pool. If that is so for all counts, the values
are exact. Otherwise they are those of a policy that could be followed: never too low, and how far above the
least is not known (docs/planning-ahead.md has what was measured).

Random numbers come from seeds made of the round and the task, so the same inputs give the same candidates,
wherever the tasks are done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sterna.errors import InvalidInput
from sterna.planning.inputs import Inputs
from sterna.planning.pools import Pools
from sterna.planning.sequence import partitionings
from sterna.planning.tasks import Each, in_turn
from sterna.planning.walk import trodden

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

WARM = 3
"""Before the first round, pools are filled in so many steps, from the first candidates."""


@dataclass(frozen=True)
class Effort:
    """How much is looked at.

    Attributes:
        pool: candidates for a worker count, at most; if there are no more partitionings, all of them.
        exact: if all counts together have no more partitionings than this, all of them are candidates,
            whatever the pool.
        rounds: in how many rounds candidates are looked for.
        looked_at: from so many candidates of a count, those visited most, better ones are looked for.
    """

    pool: int = 400
    exact: int = 3000
    rounds: int = 6
    looked_at: int = 80


@dataclass(frozen=True, eq=False)
class Found:
    """What a search found.

    Attributes:
        candidates: for each worker count partitionings, as cuts.
        values: their values.
        prices: for each worker count what each interval adds to them, about; none if the values are exact.
        exact: whether these are all partitionings that there are.
    """

    candidates: dict[int, Ints]
    values: dict[int, Floats]
    prices: dict[int, Floats]
    exact: bool


def search(
    inputs: Inputs,
    effort: Effort | None = None,
    each: Each = in_turn,
    tell: Callable[[float], None] = lambda _: None,
) -> Found:
    """Finds candidates and their values; see the module's docstring.

    Args:
        inputs: what is planned for.
        effort: how much is looked at.
        each: who does the tasks.
        tell: takes the part that is done, from 0 to 1.
    """
    effort = effort or Effort()
    complete = _complete(inputs, effort)
    pools = Pools(inputs, complete, each, effort.pool)
    if len(complete) == len(inputs.matrix.counts):
        values = pools.solved().values
        tell(1.0)
        return Found(pools.candidates, values, {}, exact=True)
    pools.add(trodden(inputs, effort.pool // 2))
    for step in range(WARM):
        pools.widen()
        tell((step + 1) / (WARM + effort.rounds) / 2)
    for number in range(1, effort.rounds + 1):
        solution = pools.solved()
        guess = pools.guessed(solution)
        if number < effort.rounds:
            pools.renew(solution, guess, effort.looked_at)
        tell((WARM + number) / (WARM + effort.rounds))
    return Found(pools.candidates, solution.values, guess, exact=False)


def _complete(inputs: Inputs, effort: Effort) -> dict[int, Ints]:
    """All partitionings, of the worker counts that have few: of each few, or of all together."""
    found: dict[int, Ints] = {}
    for count in inputs.matrix.counts:
        try:
            found[count] = partitionings(inputs.loads, count, inputs.tau, max(effort.exact, effort.pool))
        except InvalidInput:  # too many
            continue
    if len(found) == len(inputs.matrix.counts) and sum(map(len, found.values())) <= effort.exact:
        return found
    return {count: rows for count, rows in found.items() if len(rows) <= effort.pool}
