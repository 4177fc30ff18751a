"""How many workers sustain a rate of input, after DS2 (Kalavri et al., OSDI 2018). Pure.

The *true rate* of an operator is how many rows a second one worker gets through while it works: rows divided
by the time that it was busy, not by the time that passed. It tells what a worker could do, however little it
has to do now, or however much waits for it. The *selectivity* is how many rows reach the operator for each
row of the sources, measured over all operators before it. At a rate of input an operator keeps rate ·
selectivity / true rate workers busy.

DS2 gives each operator workers of its own. Here the operators of a query take turns on the same slots, one
stage after the other, so what they need adds up, and all of them get as many workers as they need together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sterna.controllers.sample import Sample


@dataclass(frozen=True)
class Need:
    """What one operator needs at a rate of input.

    Attributes:
        operator: its name.
        true_rate: rows a second that one worker gets through while it works; ``None`` where it works without
            rows, as when windows close.
        selectivity: how many rows reach it for each row of the sources.
        workers: how many workers it keeps busy.
    """

    operator: str
    true_rate: float | None
    selectivity: float
    workers: float


def needs(samples: Sequence[Sample], rate: float) -> list[Need]:
    """What each operator needs at a rate of input, by what these epochs tell; ``rate`` is in rows a second.

    Without a row from the sources nothing can be told: the list is empty.
    """
    came = sum(sample.cost.rows for sample in samples)
    if not came:
        return []
    out = []
    for name in samples[-1].operators:
        worked = [sample.operators[name] for sample in samples]
        rows = sum(sum(one.rows) for one in worked)
        busy = sum(sum(one.busy) for one in worked)
        true_rate = rows / busy if rows and busy else None
        out.append(Need(name, true_rate, rows / came, rate * busy / came))
    return out


def parallelism(found: Sequence[Need], utilisation: float) -> int:
    """The least number of workers that are busy for no more than this part of their time.

    >>> parallelism([Need("a", 100.0, 1.0, 1.5), Need("b", 50.0, 0.5, 0.6)], 0.7)
    3
    """
    # A hair less, because a sum of floats may be a hair more than the whole number that it stands for.
    return math.ceil(sum(need.workers for need in found) / utilisation - 1e-9)
