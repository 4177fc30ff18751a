"""The plan that looks ahead: the next partitioning that costs least in the long run.

It goes by how worker counts usually follow each other. After §5.2 of the paper on optimal operator-state
migration. In: as for ``ssm``, and values that were precomputed (``precompute``). Out: a plan that moves least
state now and later together, where what moves later is expected, and counts less and less, by ``gamma`` a
step. With a gamma of 0 it moves as little as the single-step plan.

Looked at are the candidates, the single-step plan, and plans between the two. What one costs later is known
for candidates; for others it is looked one step ahead. If the candidates are all partitionings that there
are, the plan is the best there is; otherwise it is the best of those looked at, and never worse, by these
values, than the single-step plan.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sterna.errors import InvalidInput
from sterna.planning.assigning import assigned, cuts_of
from sterna.planning.inputs import shares
from sterna.planning.overlap import kept
from sterna.planning.plan import Numbers, Plan, Problem, Workers, before
from sterna.planning.priced import Pieces
from sterna.planning.ssm import ssm
from sterna.planning.tasks import options
from sterna.planning.values import Values

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
ALIKE = 1e-12
"""Costs that differ by no more than this part of all state are alike; then less moves now."""


def mtm(
    assignment: Workers,
    sizes: Numbers,
    loads: Numbers,
    workers: int,
    values: Values,
    tolerance: float = 0.0,
    leaving: str = "any",
) -> Plan:
    """The best next partitioning in the long run; see the module's docstring.

    Args:
        assignment: the worker of each bin now; intervals all of them.
        sizes: how much state each bin has.
        loads: how much work each bin is.
        workers: how many workers there will be.
        values: what partitionings cost later. They say what tau is. There may be several times as many bins
            as they know, whose bins then are groups of neighbours.
        tolerance: how much of all state, and of all load, may be in other bins than the values were made for.
        leaving: who may leave where there will be fewer workers: ``"any"``, or the ``"last"``, numbers
            ``workers`` and up, as a query needs it. Later on, anybody may, by the values.

    Raises:
        InvalidInput: an entry is wrong, or the values hold for other bins, or don't know so many workers:
            what it is is named.
        Unbalanceable: no partitioning is that even; the least tau that is possible is named.

    Example:
        >>> from sterna.planning.matrix import Matrix
        >>> from sterna.planning.precompute import precompute
        >>> matrix = Matrix.of([2, 3], [[0, 1], [1, 0]])
        >>> values = precompute([4, 3, 3, 2], [1] * 4, matrix, tau=0.5, gamma=0.9)
        >>> plan = mtm([0, 1, 1, 1], [4, 3, 3, 2], [1] * 4, 3, values)
        >>> plan.assignment.tolist(), plan.moved  # ssm moves 2, and 2 again each time that this changes
        ([0, 0, 1, 1], 3.0)
    """
    if not isinstance(values, Values):
        raise InvalidInput(
            f"values is {values!r}: it must be Values, as precompute gives them or Values.load reads them"
        )
    problem = Problem.of(assignment, sizes, loads, workers)
    values.inputs.matrix.place(workers)
    values.check_state(problem.sizes, problem.loads, tolerance)
    tau = values.inputs.tau
    single = ssm(assignment, sizes, loads, workers, tau, leaving)
    state = shares(problem.sizes)
    held = before(state)
    rows, later = _looked_at(problem, single, values, held)
    # Nobody keeps what those have who leave.
    last_leave = leaving == "last"
    staying = before(np.where(problem.owners < workers, state, 0.0)) if last_leave else held
    paid = held[-1] - kept(problem.cuts[None], rows, staying)[0]
    total = paid + values.inputs.gamma * later
    alike = np.flatnonzero(total <= total.min() + ALIKE)
    best = alike[np.argmin(paid[alike])]
    return assigned(problem.owners, problem.sizes, rows[best], tau, last_leave=last_leave)


def _looked_at(problem: Problem, single: Plan, values: Values, held: Floats) -> tuple[Ints, Floats]:
    """Partitionings, none too uneven, and what they cost later: the single-step plan first."""
    workers, inputs, sight = problem.workers, values.inputs, values.sight(held)
    others = [cuts_of(single.assignment, workers)[None]]
    if values.found.prices and len(problem.owners) == inputs.bins:
        pieces = Pieces.of(shares(problem.sizes), problem.loads, workers, inputs.tau)
        others += options(
            problem.cuts[None], pieces, inputs.gamma * pieces.laid_out(values.found.prices[workers])
        )
    rows = np.concatenate(others)
    candidates = sight.candidates[workers]
    even = np.diff(problem.load_before[candidates], axis=1).max(axis=1) <= problem.limit(inputs.tau)
    return (
        np.concatenate([rows, candidates[even]]),
        np.concatenate([sight.value(rows, workers), sight.values[workers][even]]),
    )
