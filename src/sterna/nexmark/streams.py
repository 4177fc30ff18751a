"""The three streams of NEXMark, from a DataFrame of the source ``nexmark``, of rows or packed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType

import sterna
from sterna.errors import InvalidInput
from sterna.nexmark.generator import SCHEMAS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Streams:
    """Persons, auctions and bids."""

    persons: sterna.Stream
    auctions: sterna.Stream
    bids: sterna.Stream


def streams(df: DataFrame) -> Streams:
    """The streams of a streaming DataFrame that ``spark.readStream.format("nexmark")`` made.

    The source is read once for all of them.
    """
    missing = [kind for kind in SCHEMAS if kind not in df.columns]
    if missing:
        raise InvalidInput(
            f"this DataFrame has no column {missing[0]!r}: it must come from format('nexmark') as it is"
        )
    return Streams(*(_stream(df, kind, schema) for kind, schema in SCHEMAS.items()))


def _stream(df: DataFrame, kind: str, schema: pa.Schema) -> sterna.Stream:
    if isinstance(df.schema[kind].dataType, BinaryType):
        return sterna.unpack(df, kind, schema)

    def only(events: pa.Table) -> pa.Table:
        """The fields of the events of this kind."""
        mine = events.filter(pc.equal(events.column("kind"), kind)).column(kind).combine_chunks()
        whole = mine if isinstance(mine, pa.StructArray) else pa.concat_arrays(mine.chunks)
        return pa.Table.from_arrays(
            [field.cast(item.type) for field, item in zip(whole.flatten(), schema, strict=True)],
            schema=schema,
        )

    return sterna.read(df).map(only)
