"""The steps of Spark's own versions that its built-in operators have no words for.

They are as ``transformWithState`` wants them, with rows in place of pandas, as Spark's guide recommends where
there are many keys; Query 7, which has few, with pandas.
"""

# ruff: noqa: N802, N803, ARG002  -- the names are Spark's

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

LAST = 10


class Average(StatefulProcessor):
    """The average price of all rows of a key so far."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declares a sum and a count."""
        self._total = handle.getValueState("total", "total long, n long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Adds an epoch's rows, and tells the average."""
        total, n = self._total.get() or (0, 0)
        for row in rows:
            total, n = total + row["price"], n + 1
        self._total.update((total, n))
        yield Row(category=key[0], average=total / n)

    def close(self) -> None:
        """Nothing to close."""


class LastTen(StatefulProcessor):
    """The average price of the last ten rows of a key, with every row."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declares the prices."""
        self._prices = handle.getValueState("prices", "prices array<long>")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Tells the average after every auction, in the order in which they closed."""
        before = self._prices.get()
        prices = list(before[0]) if before else []
        for row in sorted(rows, key=lambda row: (row["expires"], row["id"])):
            prices = [*prices, row["price"]][-LAST:]
            yield Row(seller=key[0], average=sum(prices) / len(prices))
        self._prices.update((prices,))

    def close(self) -> None:
        """Nothing to close."""


class Highest(StatefulProcessor):
    """The rows with the highest price of each minute, once it is over."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declares the price, and whose it is."""
        self._handle = handle
        self._best = handle.getValueState("best", "price long, auctions array<long>, bidders array<long>")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        """Keeps the best of an epoch's rows and those before."""
        held = self._best.get()
        if held is None:
            self._handle.registerTimer((key[0] + 1) * 60_000)
        price, auctions, bidders = held or (-1, [], [])
        for frame in rows:
            highest = int(frame["price"].max())
            if highest > price:
                price, auctions, bidders = highest, [], []
            best = frame[frame["price"] == price]
            auctions, bidders = [*auctions, *best["auction"]], [*bidders, *best["bidder"]]
        self._best.update((price, auctions, bidders))
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
        """Tells them."""
        price, auctions, bidders = self._best.get() or (0, [], [])
        self._best.clear()
        yield pd.DataFrame({"minute": key[0], "auction": auctions, "bidder": bidders, "price": price})

    def close(self) -> None:
        """Nothing to close."""
