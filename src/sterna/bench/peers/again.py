"""Some queries measured again: what an earlier run has of the others is kept.

In: what this run found, and the output of an earlier one. Out: both as one output. A line that is kept says
of which run it is, and how systems were set up in that one, if it was otherwise; one that was measured now
takes the place of an earlier one, and so do its failures. A file that is no output of the queries raises
``InvalidInput``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sterna.bench.peers.better import peer_better
from sterna.bench.peers.telling import goals
from sterna.errors import InvalidInput
from sterna.nexmark.queries import QUERIES

KEPT = ("day", "commit", "processor", "system", "load_average")
"""What a line that is kept tells of the machine and the run that it is from."""


def earlier(path: Path) -> dict[str, Any]:
    """The output of an earlier run, read before hours are spent on another one."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        lines = {line["query"]: line["ratio"] for line in found["queries"]}
        machine = found["machine"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InvalidInput(
            f"{path} is no output of `sterna bench peers --part queries --json`: {error!r}"
        ) from error
    if not lines or not isinstance(machine, dict):
        raise InvalidInput(f"{path} has no queries, or does not say of which machine they are")
    return dict(found)


def joined(now: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """This run's output with the queries of an earlier one that it has not measured."""
    known = {name: told for name in KEPT if (told := before["machine"].get(name)) is not None}
    run: dict[str, Any] = {"machine": {"day": "unknown", "commit": "unknown", **known}}
    if before.get("configuration") != now.get("configuration"):
        run["configuration"] = before.get("configuration") or "unknown"
    kept = {line["query"]: {**run, **line} for line in before["queries"]}
    lines = kept | {line["query"]: line for line in now.get("queries", [])}
    again = tuple(f"queries, {line['query']}:" for line in now.get("queries", []))
    failures = [one for one in before.get("failures", []) if not one.startswith(again)]
    found = {**now, "queries": [lines[name] for name in QUERIES if name in lines]}
    return {
        **found,
        "failures": [*failures, *now["failures"]],
        "goals": goals(found),
        "peer_better": peer_better(found),
    }
