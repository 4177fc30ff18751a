"""Whether the receipts of an epoch are what was expected, and which of them count."""

from __future__ import annotations

from typing import Any

from sterna.dataflow import Dataflow
from sterna.engine.decision import Decision
from sterna.errors import EpochError, FoldError

Receipts = dict[tuple[int, int], dict[str, Any]]


def check_receipts(flow: Dataflow, decision: Decision, receipts: list[dict[str, Any]]) -> Receipts:
    """One receipt for each (operator, worker).

    Raises:
        EpochError: a receipt is missing or was not expected.
        FoldError: two attempts of one task produced different results, so the operator is not deterministic.
    """
    kept: Receipts = {}
    for receipt in receipts:
        place = (receipt["operator"], receipt["worker"])
        if place in kept and kept[place]["digest"] != receipt["digest"]:
            raise _differs(flow, decision.epoch, *place)
        kept.setdefault(place, receipt)
    expected = {
        (index, worker)
        for index, operator in enumerate(flow.operators)
        for worker in range(decision.configurations[operator.name].workers)
    }
    if set(kept) != expected:
        missing, extra = sorted(expected - set(kept)), sorted(set(kept) - expected)
        raise EpochError(
            f"epoch {decision.epoch} is not complete: missing receipts of (operator, worker) {missing}, "
            f"unexpected {extra}; it was not committed and will be run again"
        )
    for (index, _), receipt in kept.items():
        above = {edge.operator for edge in flow.operators[index].edges if edge.operator is not None}
        for operator in above:
            for worker in range(decision.configurations[flow.operators[operator].name].workers):
                mark = receipt["marks"].get(f"{operator}/{worker}")
                if mark is None:
                    raise EpochError(
                        f"epoch {decision.epoch}: operator {flow.operators[index].name!r} did not hear from "
                        f"worker {worker} of {flow.operators[operator].name!r}; the epoch was not committed "
                        "and will be run again"
                    )
                if mark != kept[operator, worker]["digest"]:
                    raise _differs(flow, decision.epoch, operator, worker)
    return kept


def _differs(flow: Dataflow, epoch: int, operator: int, worker: int) -> FoldError:
    return FoldError(
        f"operator {flow.operators[operator].name!r} is not deterministic: two attempts of epoch {epoch} at "
        f"worker {worker} gave different results. A fold must not use random numbers, the clock, or anything "
        "but its arguments. The epoch was not committed"
    )
