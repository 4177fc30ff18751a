"""The queries, by name: each is a function from the three streams to the stream of its answers."""

from __future__ import annotations

from collections.abc import Callable

from sterna.errors import InvalidInput
from sterna.nexmark.queries.nbq5 import nbq5
from sterna.nexmark.queries.nbq8 import nbq8
from sterna.nexmark.queries.nbqx import nbqx
from sterna.nexmark.queries.q1 import q1
from sterna.nexmark.queries.q2 import q2
from sterna.nexmark.queries.q3 import q3
from sterna.nexmark.queries.q4 import q4
from sterna.nexmark.queries.q5 import q5
from sterna.nexmark.queries.q6 import q6
from sterna.nexmark.queries.q7 import q7
from sterna.nexmark.queries.q8 import q8
from sterna.nexmark.streams import Streams
from sterna.stream import Stream

Query = Callable[[Streams], Stream]
QUERIES: dict[str, Query] = {one.__name__: one for one in (q1, q2, q3, q4, q5, q6, q7, q8, nbq5, nbq8, nbqx)}


def query(name: str) -> Query:
    """The query of a name."""
    if name not in QUERIES:
        raise InvalidInput(f"there is no query {name!r}; there are {', '.join(QUERIES)}")
    return QUERIES[name]
