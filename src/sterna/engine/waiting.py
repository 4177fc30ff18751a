"""Whether what waits between two epochs wants one, though no data comes.

In: the last manifest, the control stream, the time and the watermark. Out: yes or no. Pure but for the names
in the control stream.
"""

from __future__ import annotations

from collections.abc import Sequence

from sterna.control import ControlStream, Entry
from sterna.engine import frontiers
from sterna.freezing import in_order
from sterna.migration import RUNNING
from sterna.state.manifest import Manifest


def wants_epoch(last: Manifest, control: ControlStream, now: float, mark: int | None) -> bool:
    """Whether entries are due, migrations under way, wishes unread, or notifications would fire."""
    waiting = [Entry.from_json(entry) for entry in last.pending]
    behind = _queued(last, waiting, now, mark)
    return (
        any(entry.wants_epoch(last.epoch + 1, now, mark) and entry.name not in behind for entry in waiting)
        or any(one.status == RUNNING for one in last.migrations)
        or any(
            name not in set(last.consumed) and control.worth_reading(name, now) for name in control.names()
        )
        or frontiers.anything_due(mark, last.next_due)
    )


def _queued(last: Manifest, waiting: Sequence[Entry], now: float, mark: int | None) -> set[str]:
    """The entries that wait for a migration, or for an entry that was queued before them.

    A migration wants epochs itself, unless it is paused. What is not to be queued is merged or refused by the
    next epoch, so that it wants one.
    """
    busy = {name for one in last.migrations if one.active for name in one.target}
    found: set[str] = set()
    for entry in in_order(waiting):
        names = set(last.configurations) if entry.operator is None else {entry.operator}
        queued = entry.action == "migrate" and entry.if_busy == "queue"
        if queued and entry.due(last.epoch, now, mark) and names & busy:
            found.add(entry.name)
            busy |= names
    return found
