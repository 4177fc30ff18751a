"""What to move: plans for the bins of an operator, from arrays alone.

All planners take, for each bin, its worker now, the size of its state and its load, then the number of
workers to come and ``tau``, how much more than the mean one of them may have; ``"least"`` asks for the least
that is possible. They give a ``Plan``: the worker of each bin, and how much state moves. Nothing here knows
Spark, and the same input gives the same plan, unless ``general`` is told to heed the clock (``seconds``).

- ``ssm``: workers keep intervals of bins, and the least state moves, proven. For every rescale or balance of
  a query whose bins are in intervals; milliseconds.
- ``sequence``: the same for several worker counts that are known ahead, the least state in all of them
  together. Few bins: it looks at all partitionings.
- ``mtm``: the same where it is known how worker counts usually follow each other (``Matrix``); ``precompute``
  finds beforehand what partitionings will cost (``Values``).
- ``general``: bins move freely, which moves less than intervals do, and balances what intervals can't; the
  plan says how far from the best it may be. Routing does not mind: a configuration has an owner for each bin
  anyway.
- ``baselines``: what others do, to compare with.
- ``Sketch``, ``hot``, ``refined``, ``capped``: keys so heavy that their bin is beyond any balance, and what
  can be done about it.
"""

from __future__ import annotations

from sterna.planning import baselines
from sterna.planning.general import general
from sterna.planning.heavy import HotBin, capped, hot, refined
from sterna.planning.matrix import Matrix
from sterna.planning.mtm import mtm
from sterna.planning.plan import BoundedPlan, Plan, Unbalanceable
from sterna.planning.precompute import precompute
from sterna.planning.sequence import sequence
from sterna.planning.sketch import Sketch
from sterna.planning.ssm import ssm
from sterna.planning.values import Values

__all__ = [
    "BoundedPlan",
    "HotBin",
    "Matrix",
    "Plan",
    "Sketch",
    "Unbalanceable",
    "Values",
    "baselines",
    "capped",
    "general",
    "hot",
    "mtm",
    "precompute",
    "refined",
    "sequence",
    "ssm",
]
