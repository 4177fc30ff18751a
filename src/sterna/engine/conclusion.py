"""What an epoch comes to: its manifest from the receipts, and what of it the history remembers. Pure."""

from __future__ import annotations

from typing import Any

from sterna import watermark
from sterna.configuration import Configuration
from sterna.dataflow import Dataflow
from sterna.engine.decision import Decision
from sterna.engine.plans import OperatorPlan
from sterna.engine.receipts import Receipts
from sterna.engine.route import merge_stats
from sterna.keys import heaviest_of
from sterna.migration import changed, committed, moving, settled
from sterna.state.manifest import Manifest
from sterna.state.refs import from_changes


def conclude(
    flow: Dataflow,
    last: Manifest,
    decision: Decision,
    plans: list[OperatorPlan],
    receipts: Receipts,
    now: float,
    took: float,
) -> Manifest:
    """The manifest of an epoch that was run as decided."""
    names = [operator.name for operator in flow.operators]
    state: dict[str, Any] = {name: {} for name in names}
    hosts: dict[str, dict[int, str]] = {name: {} for name in names}
    due: dict[str, int | None] = {}
    for (index, worker), receipt in receipts.items():
        name = names[index]
        state[name][worker] = {
            table: from_changes(refs, plans[index].refs[worker].get(table, []))
            for table, refs in receipt["tables"].items()
        }
        hosts[name][worker] = receipt["host"]
        soonest = [time for time in (due.get(name), receipt.get("next_due")) if time is not None]
        if soonest:
            due[name] = min(soonest)
    routed = merge_stats(r["routed"] for r in receipts.values() if "routed" in r)
    newest = {int(edge): time for edge, time in routed["newest"].items()}
    late = sum(routed["late"].values())
    ordered = [receipt for _, receipt in sorted(receipts.items())]
    # What was shipped is known to the byte; what changed hands by reference is estimated.
    moved = {
        name: plan.linked_bytes + sum(r.get("installed", 0) for (at, _), r in receipts.items() if at == index)
        for index, (name, plan) in enumerate(zip(names, plans, strict=True))
    }
    milliseconds = round(took * 1e3, 1)
    # Where several migrations of an operator began and ended in this epoch, the bytes are the last one's.
    movers = {
        name: one.name
        for one in decision.migrations
        if one.steps and moving(one, decision.epoch)
        for name in one.target
    }
    migrations = [
        committed(
            one,
            sum(moved[name] for name in one.target if movers.get(name) == one.name),
            milliseconds,
            decision.epoch,
            now,
        )
        for one in decision.migrations
    ]
    return Manifest(
        epoch=decision.epoch,
        incarnation=last.incarnation,
        configurations=decision.configurations,
        state=state,
        watermarks=decision.watermarks,
        progress=watermark.observe(last.progress, newest, now),
        pending=[entry.to_json() for entry in decision.pending],
        outputs={
            "sink": [part for receipt in ordered for part in _parts(receipt)],
            "late": [receipt["late_part"] for receipt in ordered if "late_part" in receipt],
        },
        next_due=due,
        hosts=hosts,
        facts={
            "time": now,
            "ms": milliseconds,
            "rows": routed["rows"],
            "late": late,
            "late_total": last.facts.get("late_total", 0) + late,
            "rows_total": last.facts.get("rows_total", 0) + routed["rows"],
            "combined": routed["combined"],
            "executors": routed["executors"],
            "heat": {
                name: [r.get("heat") for r in ordered if r["operator"] == at] for at, name in enumerate(names)
            },
            "heavy": {
                name: heaviest_of(r.get("heavy") for r in ordered if r["operator"] == at).to_json()
                for at, name in enumerate(names)
            },
            "combining": sorted({names[r["operator"]] for r in ordered if r.get("combined")}),
            "out": sum(r.get("out", 0) for (index, _), r in receipts.items() if index == len(names) - 1),
            "moved": moved,
            "moved_bytes": sum(moved.values()),
            "moved_bins": sum(
                changed(last.configurations[name], decision.configurations[name]) for name in names
            ),
            "shipped_bytes": sum(r.get("installed", 0) for r in ordered),
            "workers": {
                f"{names[r['operator']]}/{r['worker']}": [
                    r.get("rows", 0),
                    r.get("written", 0),
                    r.get("compacted", 0),
                    r["ms"],
                ]
                for r in ordered
            },
        },
        migrations=[one for one in migrations if not settled(one)],
    )


def _parts(receipt: dict[str, Any]) -> list[dict[str, Any]]:
    return [*receipt.get("parts", []), *([receipt["part"]] if "part" in receipt else [])]


def events_of(
    flow: Dataflow,
    decision: Decision,
    plans: list[OperatorPlan],
    manifest: Manifest,
    before: dict[str, Configuration],
) -> list[dict[str, Any]]:
    """What happened to control entries and to the configurations in an epoch."""
    events = list(decision.events)
    ended = {one.name: one for one in manifest.migrations if one.ended and one.ended[0] == decision.epoch}
    # The last record of a migration replaces the one at its end: by then it is known what epochs take after
    # it.
    ended |= {
        one.name: committed(one, 0, manifest.facts["ms"], decision.epoch, manifest.facts["time"])
        for one in decision.migrations
        if one.name not in {kept.name for kept in manifest.migrations}
    }
    for operator, plan in zip(flow.operators, plans, strict=True):
        if plan.moves:
            after = manifest.configurations[operator.name]
            bits = max(after.bits, before[operator.name].bits)
            events.append(
                {
                    "kind": "moved",
                    "operator": operator.name,
                    "epoch": decision.epoch,
                    "time": manifest.facts["time"],
                    "bins": sum((move.hi - move.lo) >> (64 - bits) for move in plan.moves),
                    "bytes": manifest.facts["moved"][operator.name],
                    "shipped": bool(plan.extractions),
                    "workers": after.workers,
                    "epoch_ms": manifest.facts["ms"],
                }
            )
    events += [
        {"kind": "migration", "epoch": decision.epoch, **one.summary(), "moves": one.moves()}
        for one in ended.values()
    ]
    return events
