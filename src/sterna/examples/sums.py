"""Running sums by pattern: what they were, and what they are, at each time at which something was added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sterna.folds import Handle, Ints, contiguous, first_of_each, ints


@dataclass(frozen=True)
class Sums:
    """A row for each pattern, and each time at which something was added to its sums.

    Attributes:
        pattern: the pattern.
        time: the time, in microseconds; the times of one pattern are in order.
        before: each sum until then.
        after: each sum from then on.
    """

    pattern: pa.Array
    time: Ints
    before: dict[str, Ints]
    after: dict[str, Ints]


def add(table: Handle, changes: pa.Table, names: Sequence[str]) -> Sums:
    """Adds to the sums that a value table keeps by pattern.

    A pattern whose sums have all become zero is forgotten.

    Args:
        table: the state, with a column for each sum.
        changes: (pattern, time, what is added to each sum), one row or more, in any order; no time may lie
            before one of an earlier call.
        names: the sums.
    """
    encoded = contiguous(changes.column("pattern")).dictionary_encode()
    which, time = np.asarray(encoded.indices.to_numpy(), np.int64), ints(changes, "time")
    order = np.lexsort((time, which))
    first = np.flatnonzero(first_of_each(which[order], time[order]))
    which, time = which[order][first], time[order][first]
    begin = np.flatnonzero(first_of_each(which))
    keys = pa.table({"pattern": encoded.dictionary})
    known = table.get(keys)
    before, after = {}, {}
    for name in names:
        added = np.add.reduceat(ints(changes, name)[order], first)
        total = np.cumsum(added)
        # What the sum of each pattern was, less what is added up there for the patterns before it.
        was = known.column(name).fill_null(0).to_numpy() - (total - added)[begin]
        after[name] = total + was[which]
        before[name] = after[name] - added
    end = np.append(begin[1:], len(which)) - 1
    _keep(table, keys, {name: after[name][end] for name in names}, known.column("_found"))
    return Sums(encoded.dictionary.take(pa.array(which)), time, before, after)


def _keep(table: Handle, keys: pa.Table, sums: dict[str, Ints], found: pa.ChunkedArray) -> None:
    """Puts sums into the state, in the order of ``keys``.

    What is zero, and was ``found`` there, is deleted.
    """
    some = pa.array(np.any([value != 0 for value in sums.values()], axis=0))
    for name, value in sums.items():
        keys = keys.append_column(name, pa.array(value))
    table.put(keys.filter(some))
    table.delete(keys.filter(pc.and_not(found, some)))
