"""Configurations that a planner finds: the least state moved for the balance that is asked for.

In: the configuration now, what is known of its bins, how many workers there will be, the planner's name, and
tau, how much more than the mean a worker's load may be. Out: the configuration. Where there will be fewer
workers, those with the highest numbers leave. ``UpdateRefused`` if no plan is that even, naming the tau that
can be had, or if the bins are not as the planner needs them. The same input gives the same configuration: the
integer programme of ``general``, which may take seconds, is not used.
"""

from __future__ import annotations

import numpy as np

from sterna.configuration import Configuration
from sterna.errors import InvalidInput, UpdateRefused
from sterna.statistics import Statistics

PLANNERS = ("general", "ssm")
TAU = 0.2


def planned(
    current: Configuration, statistics: Statistics, workers: int, planner: str, tau: float | str
) -> Configuration:
    """See the module's docstring.

    >>> planned(Configuration.initial(8, 2), Statistics.unknown(8), 4, "ssm", 0).owners.tolist()
    [2, 2, 0, 0, 3, 3, 1, 1]
    """
    from sterna import planning  # noqa: PLC0415 - SciPy takes a while to load, and most queries never ask for a plan

    known, owners = statistics.at(current.bins), current.owners.astype(np.int64)
    sizes = known.bytes if known.bytes.sum() > 0 else np.ones(current.bins)
    try:
        if planner == "ssm":
            plan = planning.ssm(owners, sizes, known.load(), workers, tau, leaving="last")
        else:
            plan = planning.general(owners, sizes, known.load(), workers, tau, seconds=0, leaving="last")
    except InvalidInput as error:
        raise UpdateRefused(f"{planner} has no plan: {error}") from error
    return Configuration(current.bits, workers, plan.assignment.astype(np.int32))


def check_planner(planner: str | None, tau: float | str | None) -> tuple[str | None, float | str | None]:
    """The planner's name and tau, or nothing of both; ``UpdateRefused`` if they can't be."""
    if planner is None:
        if tau is not None:
            raise UpdateRefused(f"tau is for a planner: name one of {', '.join(PLANNERS)}")
        return None, None
    if planner not in PLANNERS:
        raise UpdateRefused(f"there is no planner {planner!r}; there are {', '.join(PLANNERS)}")
    if tau is None:
        return planner, TAU
    number = isinstance(tau, int | float) and not isinstance(tau, bool) and 0 <= tau < float("inf")
    if not number and tau != "least":
        raise UpdateRefused(f"tau is {tau!r}: it must be a number from 0 on, or 'least'")
    return planner, tau
