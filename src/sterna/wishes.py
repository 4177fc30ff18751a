"""State tables as users ask for them, and the check of what they may be.

In: for each table its name and what ``value`` or ``rows`` made. Out: the same with Arrow schemas;
``InvalidInput`` where a table can't be, at the line where it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sterna.durations import seconds
from sterna.errors import InvalidInput
from sterna.operators.fold import TableWish
from sterna.schemas import arrow_schema


def value(schema: Any) -> TableWish:
    """A state table with one row a key."""
    return TableWish("value", schema)


def rows(schema: Any, time: str | None = None, keep: str | float | None = None) -> TableWish:
    """A state table with many rows a key, each with a time.

    Args:
        schema: the value columns.
        time: the name of the time column, by default the stream's.
        keep: how long after its time a row is kept, such as ``"1 hour"``; for ever by default.
    """
    return TableWish("rows", schema, time, None if keep is None else int(seconds(keep) * 1e6))


def checked(
    tables: Mapping[str, TableWish] | None, keys: tuple[str, ...], time: str | None, spark: Any
) -> dict[str, TableWish]:
    """The tables of an operator whose first input has these keys and this event time."""
    return {name: _checked(name, wish, keys, time, spark) for name, wish in (tables or {}).items()}


def _checked(name: str, wish: Any, keys: tuple[str, ...], time: str | None, spark: Any) -> TableWish:
    if not isinstance(wish, TableWish):
        raise InvalidInput(
            f"table {name!r} must be made with sterna.value(...) or sterna.rows(...), not {wish!r}"
        )
    if not name.isidentifier() or name == "later":
        raise InvalidInput(f"{name!r} can't be the name of a state table")
    schema = arrow_schema(wish.schema, spark)
    taken = {"_position", "_found"} & {*schema.names, *keys}
    if taken:
        raise InvalidInput(
            f"table {name!r}: {taken.pop()!r} is what get() adds to what it finds; use another name"
        )
    timed = wish.time or time
    if wish.kind == "rows" and wish.keep is not None and timed is None:
        raise InvalidInput(
            f"table {name!r} has an expiry but the stream has no event time: key_by(..., time=...)"
        )
    clash = set(schema.names) & {*keys, *([timed] if wish.kind == "rows" and timed else [])}
    if clash:
        raise InvalidInput(
            f"table {name!r}: {sorted(clash)} are the key and time columns already; leave them out"
        )
    return replace(wish, schema=schema)
