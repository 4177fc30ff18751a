"""The maximal frequent patterns of a sliding window.

A transaction is a set of items at an event time; a pattern is a set of up to ``longest`` items. The windows
are [e - window, e), for every multiple e of ``slide``. A pattern is *frequent* at e if at least ``support``
transactions of that window contain it, and *maximal* at e if it is frequent and no other pattern that
contains it is. What comes out is every e at which a pattern becomes maximal or ceases to be.

    transactions ─▶ candidates ─▶ frequent ─▶ maximal ─▶ (pattern, time, maximal)
                    (router)      by pattern   by pattern

**Counting.** The candidates are all patterns of every transaction, counted in panes, each as long as a window
slides. ``Frequent`` keeps the count of each pattern: that of a pane is added when the pane has ended, and
taken off when it has left the window. The notificator hands it back for both, so what waits moves with its
bin.

**Feedback.** A pattern that becomes frequent, or ceases to be, tells the patterns with one item less that one
more, or one less, of those above them is frequent. That is enough: if a pattern is contained in a frequent
one, all between the two are frequent. The paper's detector sends this to itself in a loop; here a second
operator with the same key receives it: ``maximal`` hears from each pattern whether it is frequent, and from
those above it how many of them are. An epoch has no cycles, and none is needed: whether a pattern is frequent
depends on counts alone and never on what is told back, so nothing that is told makes anybody tell more.

All that there is to tell about the end of a window is told in one epoch, the one whose watermark passes it,
and an operator sees in the same epoch what those before it put out. So ``maximal`` need not wait, and a
pattern that is subsumed at the moment at which it becomes frequent never comes out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import sterna
from sterna.durations import seconds
from sterna.errors import InvalidInput, check_whole
from sterna.examples.candidates import Candidates, parts_of
from sterna.examples.items import read
from sterna.examples.sums import add
from sterna.folds import Ints, Later, Tables, ints, times
from sterna.stream import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOLD = "pattern string, time timestamp, frequent long, above long"
CHANGES = "pattern string, time timestamp, maximal boolean"


def maximal_patterns(
    transactions: DataFrame | Stream,
    *,
    window: str | float,
    slide: str | float,
    support: int,
    longest: int = 3,
    items: str = "text",
    time: str = "time",
) -> Stream:
    """(pattern, time, maximal): when a pattern became maximal (true), or ceased to be (false).

    The time is the end of a window. The operators are called ``frequent`` and ``maximal``. Windows end as the
    watermark passes, so the query needs a ``watermark_delay``. A query that goes on from a checkpoint must be
    asked for the same as before.

    Args:
        transactions: a streaming DataFrame or a stream.
        window: how much event time a window covers, such as ``"90 seconds"``.
        slide: how much event time passes from one window to the next; a window is one or more of these.
        support: how many transactions of a window contain a frequent pattern, at least.
        longest: how many items a pattern has at most.
        items: the column with a transaction's items, a text or an array of texts; see ``items.items_of``.
        time: the column with its event time.

    Raises:
        InvalidInput: there are no such columns, or there can be no such windows or patterns.
    """
    check_whole("support", support, 1)
    check_whole("longest", longest, 1)
    length, step = _lengths(window, slide)
    candidates = _timed(read(transactions, items), time).map(Candidates(items, time, step, longest))
    frequent = candidates.key_by("pattern", time=time).unary(
        Frequent(time, length, step, support),
        tables={"counts": sterna.value("n long")},
        output=TOLD,
        later="n long",
    )
    return (
        frequent.named("frequent")
        .key_by("pattern")
        .unary(maximal, tables={"standing": sterna.value("frequent long, above long")}, output=CHANGES)
        .named("maximal")
    )


@dataclass(frozen=True)
class Frequent:
    """The fold that counts.

    Attributes:
        time: the column with the beginning of a pane.
        window: the length of a window, in microseconds.
        slide: the length of a pane, in microseconds.
        support: what a count must come to.
    """

    time: str
    window: int
    slide: int
    support: int

    def __call__(self, panes: pa.Table, tables: Tables, later: Later) -> pa.Table | None:
        """Takes the counts of panes; tells what has become frequent, or ceased to be."""
        later.notify_at(ints(panes, self.time) + self.slide, panes)
        passed = self._passed(later)
        if not passed.num_rows:
            return None
        counts = add(tables.counts, passed, ["n"])
        was, now = (sums["n"] >= self.support for sums in (counts.before, counts.after))
        changed = np.flatnonzero(was != now)
        return told(
            counts.pattern.take(pa.array(changed)), counts.time[changed], np.where(now[changed], 1, -1)
        )

    def _passed(self, later: Later) -> pa.Table:
        """(pattern, time, n): by how much counts change at the window ends that have passed.

        What enters is to be handed back when it leaves.
        """
        due = later.due.select(["pattern", "at", "n"]).rename_columns(["pattern", "time", "n"])
        entering = due.filter(pc.greater(due.column("n"), 0))
        whole = entering.group_by(["pattern", "time"], use_threads=False).aggregate([("n", "sum")])
        leaving = pa.table(
            {
                "pattern": whole.column("pattern"),
                "time": times(ints(whole, "time") + self.window),
                "n": pc.negate(whole.column("n_sum")),
            }
        )
        # One epoch may pass many windows: what has left already is not handed back any more.
        left = pa.array(ints(leaving, "time") <= (later.frontier or 0))
        later.notify_at("time", leaving.filter(pc.invert(left)))
        return pa.concat_tables([due, leaving.filter(left)])


def told(pattern: pa.Array, time: Ints, change: Ints) -> pa.Table:
    """What patterns that become frequent (1) or cease to be (-1) tell.

    They tell it to themselves, and to those with one item less.
    """
    whole, part = parts_of(pattern)
    return pa.table(
        {
            "pattern": pa.concat_arrays([pattern, part]),
            "time": times(np.concatenate([time, time[whole]])),
            "frequent": np.concatenate([change, np.zeros_like(whole)]),
            "above": np.concatenate([np.zeros_like(change), change[whole]]),
        }
    )


def maximal(messages: pa.Table, tables: Tables, later: Later) -> pa.Table:  # noqa: ARG001 - a fold gets it
    """Adds up what each pattern was told; tells whether it has become maximal, or ceased to be."""
    sums = add(tables.standing, messages, ["frequent", "above"])
    was, now = ((one["frequent"] > 0) & (one["above"] == 0) for one in (sums.before, sums.after))
    changed = np.flatnonzero(was != now)
    changes = pa.table(
        {
            "pattern": sums.pattern.take(pa.array(changed)),
            "time": times(sums.time[changed]),
            "maximal": now[changed],
        }
    )
    return changes.sort_by([("time", "ascending"), ("pattern", "ascending")])


def _lengths(window: str | float, slide: str | float) -> tuple[int, int]:
    length, step = (round(seconds(duration) * 1e6) for duration in (window, slide))
    if step < 1 or length < step or length % step:
        raise InvalidInput(
            f"window is {window!r} and slide is {slide!r}: a window is one or more slides, such as "
            "'90 seconds' and '10 seconds'"
        )
    return length, step


def _timed(stream: Stream, time: str) -> Stream:
    if time in ("pattern", "n"):
        raise InvalidInput(f"the column of event times can't be called {time!r} here: rename it")
    stream.key_by(time, time=time)  # says what is wrong with the column, if something is
    return stream
