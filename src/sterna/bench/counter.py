"""The count by key as Spark's ``transformWithStateInPandas`` wants it: a processor with a state variable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle


class Counter(StatefulProcessor):
    """Counts the rows of each key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the count."""
        self._count = handle.getValueState("n", "n long")

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803, ARG002 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        """Add the rows of an epoch to the count of their key."""
        before = self._count.get() if self._count.exists() else None
        total = (before[0] if before else 0) + sum(len(frame) for frame in rows)
        self._count.update((total,))
        yield pd.DataFrame({"key": [key[0]], "n": [total]})

    def close(self) -> None:
        """Nothing to close."""
