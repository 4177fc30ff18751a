"""How often has each word come so far?

Words are parted in the router, on Arrow: Spark hands on a row a text, and not a row a word. Where words
repeat, the router also adds them up before they are sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

import sterna
from sterna.examples.items import items_of, read
from sterna.stream import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def words(texts: DataFrame | Stream, *, text: str = "text") -> Stream:
    """(word, n) for every word of an epoch's texts: how often it has come by then.

    Args:
        texts: a streaming DataFrame or a stream.
        text: the column with the text; see ``items.items_of`` for what its words are.

    Raises:
        InvalidInput: there is no such column, or it holds no texts.
    """

    def split(rows: pa.Table) -> pa.Table:
        return pa.table({"word": items_of(rows.column(text))[1]})

    return read(texts, text).map(split).key_by("word").aggregate(n=sterna.count()).named("words")
