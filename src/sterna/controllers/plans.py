"""What the balancer takes for a plan, and the one that it makes unless it is given another. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sterna.configuration import Configuration
from sterna.errors import InvalidInput
from sterna.statistics import Floats

Owners = npt.NDArray[np.int32]


class Plan(Protocol):
    """A plan: for each bin its worker."""

    @property
    def assignment(self) -> Any:
        """The owners of the bins."""


Planner = Callable[[Owners, Floats, Floats, int, Any], Plan]


def least_moved(assignment: Owners, sizes: Floats, loads: Floats, workers: int, tau: float | str) -> Plan:
    """The least state moved for this balance (``planning.general``), or for the most even one there is.

    >>> least_moved(np.zeros(4, np.int32), np.ones(4), np.array([3.0, 1, 1, 1]), 2, 0.1).assignment.tolist()
    [1, 0, 0, 0]
    """
    from sterna import planning  # noqa: PLC0415 - SciPy takes a while to load, and most queries never ask for a plan

    owners = assignment.astype(np.int64)
    try:
        return planning.general(owners, sizes, loads, workers, tau, seconds=0)
    except planning.Unbalanceable:
        return planning.general(owners, sizes, loads, workers, "least", seconds=0)


def placed(plan: Plan, here: Configuration) -> Configuration:
    """Where a plan wants the bins; ``InvalidInput`` if it does not say so: it may be somebody's own."""
    owners = np.asarray(getattr(plan, "assignment", None))
    if owners.shape != (here.bins,) or not np.issubdtype(owners.dtype, np.integer):
        raise InvalidInput(
            f"plan must return something with an assignment of {here.bins} whole numbers, not {plan!r}"
        )
    if owners.min() < 0 or owners.max() >= here.workers:
        raise InvalidInput(
            f"plan uses worker {int(owners.max() if owners.max() >= here.workers else owners.min())}, "
            f"and there are {here.workers} workers, numbered from 0"
        )
    return Configuration(here.bits, here.workers, owners.astype(np.int32))
