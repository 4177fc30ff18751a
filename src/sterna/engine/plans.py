"""What each worker starts an epoch with, and what has to travel first.

Both follow from the state at t-1 and the configurations at t-1 and t. Pure. A move is *linked* where the new
worker can open the old worker's files (same host, or the old worker is gone and the checkpoint has them): the
references change hands. Otherwise it is *shipped*: the old worker's task reads the slices and sends them
through the exchange.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sterna.configuration import Configuration, Move, Range, moves
from sterna.state.background import digest
from sterna.state.refs import END, RunRef, drop, keep

TableRefs = dict[str, list[RunRef]]
WorkerRefs = dict[int, TableRefs]


@dataclass(frozen=True)
class Extraction:
    """What one worker sends away: its references at t-1, and the ranges for each new owner.

    Also about how many bytes that is if all bins are alike.
    """

    operator: int
    worker: int
    refs: TableRefs
    ranges: dict[int, list[Range]]
    bytes: int = 0


@dataclass(frozen=True)
class Change:
    """What moves did to a worker's references, for whoever has others that mean the same as those before.

    Attributes:
        before: a digest of what each table had.
        leaving: the ranges that went away, and what lies between them and those that stay.
        arrivals: what was linked.
    """

    before: dict[str, str]
    leaving: list[Range]
    arrivals: TableRefs


@dataclass(frozen=True)
class OperatorPlan:
    """One operator's epoch.

    Attributes:
        refs: what each worker starts with, linked state included.
        changes: for the workers that moves concern.
        extractions: what is shipped.
        moves: all moves, linked or shipped.
        linked_bytes: an estimate of how much state changed hands by reference.
    """

    refs: WorkerRefs
    extractions: list[Extraction] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    linked_bytes: int = 0
    changes: dict[int, Change] = field(default_factory=dict)


def plan_operator(
    operator: int,
    state: Mapping[int, TableRefs],
    old: Configuration,
    new: Configuration,
    tables: list[str],
    linked: Callable[[int, int], bool],
) -> OperatorPlan:
    """The plan of one operator; ``linked(source, target)`` says whether state may simply change hands."""
    refs: WorkerRefs = {
        worker: {table: list(state.get(worker, {}).get(table, [])) for table in tables}
        for worker in range(max(old.workers, new.workers))
    }
    travel = moves(old, new)
    if not travel:
        return OperatorPlan({worker: refs[worker] for worker in range(new.workers)})
    by_pair: dict[tuple[int, int], list[Range]] = defaultdict(list)
    leaving: dict[int, list[Range]] = defaultdict(list)
    for move in travel:
        by_pair[move.source, move.target].append((move.lo, move.hi))
        leaving[move.source].append((move.lo, move.hi))
    arrivals: dict[int, dict[str, list[RunRef]]] = defaultdict(lambda: defaultdict(list))
    shipped: dict[int, dict[int, list[Range]]] = defaultdict(dict)
    linked_bytes = 0
    for (source, target), ranges in sorted(by_pair.items()):
        cut = {table: keep(refs[source][table], ranges) for table in tables}
        if linked(source, target):
            owned = old.ranges(source)
            linked_bytes += sum(_share(refs[source][table], cut[table], owned) for table in tables)
            for table in tables:
                arrivals[target][table].extend(cut[table])
        else:
            shipped[source][target] = ranges
    density = _bytes(refs) / END if shipped else 0.0
    extractions = [
        Extraction(
            operator,
            source,
            {table: keep(refs[source][table], sorted(_all(ranges))) for table in tables},
            ranges,
            int(density * sum(hi - lo for lo, hi in _all(ranges))),
        )
        for source, ranges in sorted(shipped.items())
    ]
    gone = {source: _gaps(ranges, new.ranges(source)) for source, ranges in leaving.items()}
    changes = {
        worker: Change(
            {table: digest(refs[worker][table]) for table in tables},
            gone.get(worker, []),
            dict(arrivals.get(worker, {})),
        )
        for worker in {*leaving, *arrivals}
    }
    for source, gaps in gone.items():
        for table in tables:
            refs[source][table] = drop(refs[source][table], gaps)
    for target, arrived in arrivals.items():
        for table, extra in arrived.items():
            refs[target][table] = refs[target][table] + extra
    starts = {worker: refs[worker] for worker in range(new.workers)}
    return OperatorPlan(starts, extractions, travel, linked_bytes, changes)


def _gaps(leaving: Sequence[Range], staying: Sequence[Range]) -> list[Range]:
    """What leaves, each range as far as those that stay.

    Nothing of the worker's lies in between, but references may span it: dropping no more than a bin would
    leave one more piece of each of them for every bin that leaves.

    >>> _gaps([(10, 20), (30, 40)], [(0, 5), (25, 30), (60, 70)])
    [(5, 25), (30, 60)]
    """
    lows = [lo for lo, _ in staying]
    found = set()
    for lo, _ in leaving:
        place = bisect_right(lows, lo)
        start = staying[place - 1][1] if place else 0
        found.add((start, lows[place] if place < len(lows) else END))
    return sorted(found)


def _share(refs: list[RunRef], part: list[RunRef], owned: list[Range]) -> int:
    """About how many bytes ``part`` is of ``refs``: hashes are uniform over what the worker owns."""
    names = {ref.name for ref in part}
    lows, before = [], [0]
    for lo, hi in owned:
        lows.append(lo)
        before.append(before[-1] + hi - lo)

    def below(point: int) -> int:
        """How much of what is owned lies below."""
        place = bisect_right(lows, point)
        return before[place - 1] + min(point, owned[place - 1][1]) - lows[place - 1] if place else 0

    held: dict[str, int] = defaultdict(int)
    for ref in refs:
        if ref.name in names:
            held[ref.name] += below(ref.hi) - below(ref.lo)
    return int(sum(ref.size * ((ref.hi - ref.lo) / held[ref.name]) for ref in part))


def _bytes(refs: WorkerRefs) -> int:
    """The size of all files.

    What a worker's files hold of a range is not known once most of them has left.
    """
    return sum(
        {ref.name: ref.size for tables in refs.values() for some in tables.values() for ref in some}.values()
    )


def _all(ranges: Mapping[int, list[Range]]) -> list[Range]:
    return [one for some in ranges.values() for one in some]
