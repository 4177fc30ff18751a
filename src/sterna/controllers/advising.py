"""What controllers would do, asked from another process.

They are asked by what the checkpoint of a query tells, running or stopped. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sterna import strategies
from sterna.controllers.sample import Sample
from sterna.controllers.verdict import Controller, Verdict, name_of
from sterna.controllers.view import View
from sterna.remote import Remote
from sterna.targets import as_target


def seen(remote: Remote) -> View:
    """The query as of its last epoch, and at that time: of a stopped one, what was right when it stopped.

    What was moved and said before is left out: no cool-down keeps an answer back.
    """
    last = remote.last()
    samples = [sample for sample in map(Sample.of, remote.retained()) if sample is not None]
    return View.of(last, samples, last.facts["time"])


def advise(remote: Remote, view: View, controllers: Iterable[Controller]) -> dict[str, Any]:
    """The verdict of each controller, and what its migration would take."""
    return {
        "epoch": view.samples[-1].cost.epoch,
        "time": view.now,
        "epochs_seen": len(view.samples),
        "controllers": [_told(remote, name_of(one), one(view)) for one in controllers],
    }


def _told(remote: Remote, name: str, answer: Any) -> dict[str, Any]:
    verdict = answer if isinstance(answer, Verdict) else Verdict("", answer)
    outcome = "declined" if verdict.declined else "stay"
    told: dict[str, Any] = {
        "controller": name,
        "verdict": outcome,
        "why": verdict.why,
        "facts": dict(verdict.facts),
    }
    if verdict.target is None:
        return told
    target = as_target(verdict.target)
    written = strategies.to_json(verdict.strategy or strategies.all_at_once())
    planned = remote.plan(target, written, verdict.operator)
    return {
        **told,
        "verdict": "move",
        "target": planned["target"],
        "strategy": planned["strategy"],
        "operator": verdict.operator,
        "operators": planned["operators"],
    }
