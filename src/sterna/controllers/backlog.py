"""How many rows wait at the sources, by what Spark's progress tells of them: Kafka does, most others do not.

Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

BEHIND = "avgOffsetsBehindLatest"


def backlog_of(progress: Mapping[str, Any] | None) -> int | None:
    """The rows that wait at all sources together; ``None`` if no source tells.

    >>> kafka = {"metrics": {"avgOffsetsBehindLatest": "40.5"}, "endOffset": '{"bids": {"0": 7, "1": 9}}'}
    >>> backlog_of({"sources": [kafka, {"metrics": {}}]}), backlog_of({"sources": []})
    (81, None)
    """
    waiting = [_waiting(source) for source in (progress or {}).get("sources", [])]
    known = [rows for rows in waiting if rows is not None]
    return sum(known) if known else None


def _waiting(source: Mapping[str, Any]) -> int | None:
    """Spark tells how far each partition is behind, on average, and where each of them is."""
    behind = (source.get("metrics") or {}).get(BEHIND)
    try:
        offsets = source["endOffset"]
        offsets = json.loads(offsets) if isinstance(offsets, str) else offsets
        partitions = sum(len(topic) for topic in offsets.values())
        return None if behind is None else round(float(behind) * partitions)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
