"""The steps of Spark's own versions that its built-in operators have no words for.

They are as ``transformWithState`` wants them, with rows in place of pandas, as Spark's guide recommends where
there are many keys.
"""

# ruff: noqa: N802, N803, ARG002  -- the names are Spark's

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
