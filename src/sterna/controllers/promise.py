"""What the last plan of a balancer had promised, and what came of it. Pure.

A load that has moved since is not the plan's fault. But one that moves again before the next plan can work is
not worth following: it is forgiven once the load has stayed where it is for a while.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sterna.controllers.steady import Steady
from sterna.controllers.verdict import ASKED, Said
from sterna.controllers.view import Standing, View

HALF = 0.5
"""A plan that brings less than this part of what it promised has failed."""

STAYS = 2
"""A load that has moved since the plan stays, if it has been the same for so many times ``epochs``."""


@dataclass(frozen=True)
class Failure:
    """A plan that did not bring what it had promised.

    Attributes:
        promised: how many times the mean the fullest worker should have had.
        came: how many times the mean it had.
        plans: how many plans in a row have failed, this one included.
        told: whether the balancer has said so.
        moved: whether the load has moved since, and has not stayed where it is for long.
    """

    promised: float
    came: float
    plans: int
    told: bool
    moved: bool = False

    def __str__(self) -> str:
        return (
            f"the last plan had promised {self.promised:.2f} times the mean, and {self.came:.2f} times came: "
            f"the load keeps moving, or bins are finer than rows are counted"
        )


def failed(view: View, standing: Standing, epochs: int, steady: Steady) -> Failure | None:
    """Whether the last plan for an operator has failed, by the first epochs after it.

    ``None`` if not, if that can't be told (yet), or if it does not matter: the load is another one by now.

    Args:
        view: the query, as the balancer sees it.
        standing: the operator, as it is now.
        epochs: how many epochs tell.
        steady: the load of the operator.
    """
    words = [one for one in view.said if one.operator == standing.name]
    asked = [at for at, one in enumerate(words) if one.outcome == ASKED and "after" in one.facts]
    ended = view.settled.get(standing.name)
    if (
        not asked
        or ended is None
        or ended < words[asked[-1]].time
        or not _in_force(words[asked[-1]], standing)
    ):
        return None
    since = [one.operators[standing.name] for one in standing.samples if one.time >= ended]
    rows = [one.rows for one in since if not standing.moved_since(one)][:epochs]
    if len(rows) < epochs:
        return None
    word, total = words[asked[-1]], np.sum(rows, axis=0)
    facts = word.facts
    came = float(total.max() / total.mean())
    if facts["before"] - came >= HALF * (facts["before"] - facts["after"]):
        return None
    moved = steady.moved_since(int(facts.get("since", word.epoch - epochs + 1)), word.epoch)
    if moved and steady.epochs >= STAYS * epochs:
        return None
    told = any("came" in one.facts for one in words[asked[-1] + 1 :])
    return Failure(float(facts["after"]), came, int(facts.get("failed", 0)) + 1, told, moved)


def _in_force(word: Said, standing: Standing) -> bool:
    """Whether the bins are where a word wanted them: somebody may have moved them since."""
    pairs = np.array((word.target or {}).get("assignment", []), np.int64).reshape(-1, 2)
    owners = standing.configuration.owners
    return bool((pairs[:, 0] < len(owners)).all() and (owners[pairs[:, 0]] == pairs[:, 1]).all())
