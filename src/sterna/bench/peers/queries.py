"""NEXMark's queries on Sterna and on Spark's own operators: rows a second at the same size of epochs.

Method. Both read the same parquet files, the same number of each kind an epoch, from an empty state, until
all are read (``loads``); the first epochs, while code is compiled and the state is built up, do not count.
Rounds alternate, and so does who is first. The rate is all rows over all the time between the ends of epochs
(``pace``). Outputs go to a sink that drops them. How both are set up is in ``sides``.

Where Spark can keep the state of a join in several formats, its first turn runs all of them, and the fastest
is the one that counts and that its other turns have.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sterna.bench.peers.loads import FULL, QUICK, Load, Size
from sterna.bench.peers.pace import Run
from sterna.bench.peers.sides import join_formats, on_spark, on_sterna
from sterna.bench.rig import Say
from sterna.nexmark.native import WHY_NOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sterna.bench.peers.events import Files

__all__ = ["FULL", "LEAST_RATIO", "MANY_KEYS", "QUICK", "SIDES", "Size", "compare"]

MANY_KEYS = ("q3", "q4", "q6", "q8", "nbq8")
LEAST_RATIO = 5.0
SIDES = ("sterna", "spark")


def compare(
    spark: SparkSession,
    root: Path,
    names: Sequence[str],
    size: Size,
    rounds: int,
    say: Say,
    fail: Callable[[str, Exception], None],
) -> list[dict[str, Any]]:
    """A line for each query; both take so many turns.

    A turn that fails is told of, and costs only its round; a query without a whole round has no line. Where
    it is measured with other sizes of epochs, too, these are under ``other_sizes``.
    """

    def measured(name: str, load: Load) -> list[dict[str, Any]]:
        try:
            files = load.files(root, spark.sparkContext.defaultParallelism).written()
            return [_Comparison(spark, root, name, load, files, say, fail).line(rounds)]
        except Exception as error:  # noqa: BLE001 - as the docstring says
            fail(f"queries, {name}: {load.rows:,} rows an epoch", error)
            return []

    out = []
    for name in names:
        load = size.load(name)
        for line in measured(name, load):
            others = [one for each in load.also for one in measured(name, replace(load, each=each, also=()))]
            out.append({**line, "other_sizes": others} if others else line)
    return out


class _Comparison:
    """A query on both sides, in turns."""

    def __init__(
        self,
        spark: SparkSession,
        root: Path,
        name: str,
        load: Load,
        files: Files,
        say: Say,
        fail: Callable[[str, Exception], None],
    ) -> None:
        self._spark, self._root, self._name, self._load, self._files = spark, root, name, load, files
        self._say, self._fail = say, fail
        self._what = f"{name}: {load.rows:,} rows an epoch"
        self._formats: tuple[str | None, ...] = join_formats(name, spark.version) or (None,)
        self._tried: dict[str, int] = {}

    def line(self, rounds: int) -> dict[str, Any]:
        """What so many rounds come to, without those in which a side failed."""
        whole: list[dict[str, Run]] = []
        for number in range(rounds):
            # The state is the same in all rounds, and takes some seconds to look at.
            found = self._round(number, look=not whole)
            if len(found) == len(SIDES):
                whole.append(found)
        if not whole:
            raise RuntimeError("no round in which both sides ran to their end")
        line = told(self._name, self._load, {side: [one[side] for one in whole] for side in SIDES})
        return line | {"spark_join_formats": self._tried} if self._tried else line

    def _round(self, number: int, *, look: bool) -> dict[str, Run]:
        """Both sides once, without one that failed; ``look`` says whether to look at Sterna's state."""
        turns = {"sterna": lambda: self._sterna(look), "spark": self._on_spark}
        found: dict[str, Run] = {}
        for side in SIDES if number % 2 == 0 else SIDES[::-1]:
            try:
                run = found[side] = turns[side]()
            except Exception as error:  # noqa: BLE001 - as compare says
                self._fail(f"queries, {self._what}, round {number + 1}, {side}", error)
            else:
                self._say(f"{self._what}, round {number + 1}: {side} {run.rate:,.0f} rows a second")
        return found

    def _sterna(self, look: bool) -> Run:
        return on_sterna(self._spark, self._root, self._name, self._files, self._load, look=look)

    def _on_spark(self) -> Run:
        runs = [
            on_spark(self._spark, self._root, self._name, self._files, self._load, one)
            for one in self._formats
        ]
        best = max(runs, key=lambda run: run.rate)
        if len(runs) > 1:
            self._tried = {str(run.join_format): round(run.rate) for run in runs}
            self._formats = (best.join_format,)
        return best


def told(name: str, load: Load, found: dict[str, list[Run]]) -> dict[str, Any]:
    """The figures of a query from the runs of both sides, whose rounds are in pairs."""
    line: dict[str, Any] = {
        "query": name,
        "kinds": list(load.kinds),
        "rows_per_epoch": load.rows,
        "epochs": load.epochs,
        "warm_epochs": load.warm,
        "event_seconds_per_epoch": load.span,
        "windows_ended": load.windows_ended,
        "auctions_in_flight": load.in_flight,
    }
    for side in SIDES:
        runs = found[side]
        line |= {
            f"{side}_rows_per_second": round(statistics.median(run.rate for run in runs)),
            f"{side}_rounds": [round(run.rate) for run in runs],
            f"{side}_epoch_ms_p50": round(
                1e3 * statistics.median(gap for run in runs for gap in run.gaps), 1
            ),
            f"{side}_state_rows": runs[0].state_rows,
            f"{side}_state": runs[0].state,
        }
    ratios = [mine.rate / theirs.rate for mine, theirs in zip(found["sterna"], found["spark"], strict=True)]
    ratio = statistics.median(ratios)
    line |= {"ratio": round(ratio, 2), "ratios": [round(one, 2) for one in ratios]}
    if found["spark"][0].join_format is not None:
        line["spark_join_format"] = found["spark"][0].join_format
    if name in MANY_KEYS:
        line["at_least_5_times"] = ratio >= LEAST_RATIO
    if name in WHY_NOT:
        line["spark_note"] = WHY_NOT[name]
    return line
