"""How fast a query went, and what its state came to, from Spark's progress reports.

The rate is all rows over all the time from the end of the last epoch of the warm-up to the end of the last
epoch with events, as in ``ceiling``: what happens between two epochs counts, such as merging state or
maintaining it, where it makes the next one wait.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sterna.bench.acknowledge import Missing, Report, report_of
from sterna.bench.peers.loads import Load

JOIN = "symmetricHashJoin"
"""What Spark calls a join of two streams in its reports."""


@dataclass(frozen=True)
class Run:
    """A query from its first event to its last.

    Attributes:
        rate: rows a second, over the epochs that count.
        gaps: seconds from the end of each of these epochs to the end of the next.
        state: what each operator held in the end, as far as it is known; see ``spark_state`` and ``sides``.
        join_format: the version of the format in which Spark kept the state of a join, where it was chosen.
    """

    rate: float
    gaps: tuple[float, ...]
    state: list[dict[str, Any]]
    join_format: str | None = None

    @property
    def state_rows(self) -> int | None:
        """Rows of state in the end, of all operators of which it is known; ``None`` if it is of none."""
        known = [one["rows"] for one in self.state if one["rows"] is not None]
        return sum(known) if known else None


def with_events(reports: Sequence[Mapping[str, Any]], folder: str) -> list[Mapping[str, Any]]:
    """The reports of epochs that read files below a folder: others may only let windows end."""
    return [one for one in reports if report_of(one) is not None and _read(one, folder)]


def _read(report: Mapping[str, Any], folder: str) -> bool:
    return any(
        source["startOffset"] != source["endOffset"]
        for source in report["sources"]
        if folder in source["description"]
    )


def paced(reports: Sequence[Mapping[str, Any]], load: Load) -> tuple[float, tuple[float, ...]]:
    """Rows a second, and the seconds between the ends of epochs, from the reports of the epochs with events.

    Raises:
        Missing: if there are not as many epochs as the load has.
    """
    found: list[Report] = [one for one in map(report_of, reports) if one is not None]
    if len(found) != load.epochs:
        raise Missing(f"{len(found)} epochs had events, there should be {load.epochs}")
    ends = [one.ended for one in found[load.warm - 1 :]]
    gaps = tuple(later - earlier for earlier, later in itertools.pairwise(ends))
    return load.rows * len(gaps) / (ends[-1] - ends[0]), gaps


def spark_state(reports: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What each of Spark's stateful operators did to its state in these epochs.

    They are all epochs since the state was empty. Spark does not count the rows of its state, because its
    guide recommends so. A join puts in each row once, so ``rows`` is what it put in less what it removed; of
    other operators, which put in a row whenever it changes, it is not known.
    """
    out: dict[int, dict[str, Any]] = {}
    for report in reports:
        for number, told in enumerate(report["stateOperators"]):
            one = out.setdefault(number, {"operator": told["operatorName"], "put": 0, "removed": 0})
            one["put"] += told["numRowsUpdated"]
            one["removed"] += told["numRowsRemoved"]
            one["memory_bytes"] = told["memoryUsedBytes"]
    for one in out.values():
        one["rows"] = one["put"] - one["removed"] if one["operator"] == JOIN else None
    return list(out.values())
