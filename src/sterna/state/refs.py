"""References to hash ranges of run files: the whole of a worker's state is a list of these.

Cutting, keeping and dropping ranges makes new references and never touches a file, so moving a bin between
workers on one host is giving a reference away.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

END = 2**64
"""One past the greatest hash."""

EPOCH_AGES = 2**20
"""How far apart the ages of runs of two epochs are: room for what compaction makes in between."""


@dataclass(frozen=True, slots=True)
class RunRef:
    """The rows of one run file whose hash is in ``[lo, hi)``.

    ``rows``, ``size``, ``checksum``, ``deletes``, ``oldest`` and ``newest`` describe the whole file. At any
    one hash, a reference of a lower level holds newer rows than one of a higher level; within a level the
    greater age is newer.
    """

    name: str
    lo: int
    hi: int
    age: int
    level: int
    rows: int
    size: int
    checksum: int
    deletes: bool
    oldest: int | None
    newest: int | None

    def __reduce__(self) -> tuple[Any, ...]:
        """References travel with every task, hundreds of them: this takes half of what is usual."""
        return RunRef, (
            self.name,
            self.lo,
            self.hi,
            self.age,
            self.level,
            self.rows,
            self.size,
            self.checksum,
            self.deletes,
            self.oldest,
            self.newest,
        )

    def cut(self, lo: int, hi: int) -> RunRef | None:
        """The part of this reference inside ``[lo, hi)``, or None if there is none."""
        lo, hi = max(lo, self.lo), min(hi, self.hi)
        if lo >= hi:
            return None
        return self if lo == self.lo and hi == self.hi else replace(self, lo=lo, hi=hi)

    def to_list(self) -> list[Any]:
        """A compact JSON form."""
        return [
            self.name,
            self.lo,
            self.hi,
            self.age,
            self.level,
            self.rows,
            self.size,
            self.checksum,
            int(self.deletes),
            self.oldest,
            self.newest,
        ]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> RunRef:
        """The reference that ``to_list`` wrote."""
        name, lo, hi, age, level, rows, size, checksum, deletes, oldest, newest = values
        return cls(name, lo, hi, age, level, rows, size, checksum, bool(deletes), oldest, newest)


def newest_first(ref: RunRef) -> tuple[int, int, str, int]:
    """The sort key that puts the newest rows of any one hash first."""
    return ref.level, -ref.age, ref.name, ref.lo


def coalesce(refs: Iterable[RunRef]) -> list[RunRef]:
    """Join adjacent references of the same file; newest first."""
    out: list[RunRef] = []
    for ref in sorted(refs, key=newest_first):
        last = out[-1] if out else None
        if (
            last
            and last.name == ref.name
            and last.hi >= ref.lo
            and (last.level, last.age) == (ref.level, ref.age)
        ):
            out[-1] = replace(last, hi=max(last.hi, ref.hi))
        else:
            out.append(ref)
    return out


def keep(refs: Iterable[RunRef], ranges: Sequence[tuple[int, int]]) -> list[RunRef]:
    """What the references hold inside the ranges (sorted, disjoint)."""
    lows = [lo for lo, _ in ranges]
    out: list[RunRef] = []
    for ref in refs:
        for lo, hi in ranges[max(0, bisect_right(lows, ref.lo) - 1) :]:
            if lo >= ref.hi:
                break
            part = ref.cut(lo, hi)
            if part is not None:
                out.append(part)
    return coalesce(out)


def drop(refs: Iterable[RunRef], ranges: Sequence[tuple[int, int]]) -> list[RunRef]:
    """What the references hold outside the ranges (sorted, disjoint)."""
    edges = [0, *(edge for pair in ranges for edge in pair), END]
    return keep(refs, [(lo, hi) for lo, hi in zip(edges[::2], edges[1::2], strict=True) if lo < hi])


def to_changes(refs: Sequence[RunRef], given: Sequence[RunRef]) -> list[Any]:
    """References as a difference.

    ``[start, count]`` stands for so many of those that were given, a longer list for a new one. A worker
    keeps nearly all of its references from epoch to epoch, and what it reports has to be small.
    """
    places = {ref: place for place, ref in enumerate(given)}
    out: list[Any] = []
    for ref in refs:
        place = places.get(ref)
        if place is None:
            out.append(ref.to_list())
        elif out and len(out[-1]) == 2 and sum(out[-1]) == place:
            out[-1][1] += 1
        else:
            out.append([place, 1])
    return out


def from_changes(changes: Sequence[Any], given: Sequence[RunRef]) -> list[RunRef]:
    """The inverse of ``to_changes``."""
    out: list[RunRef] = []
    for change in changes:
        if len(change) == 2:
            out += given[change[0] : change[0] + change[1]]
        else:
            out.append(RunRef.from_list(change))
    return out
