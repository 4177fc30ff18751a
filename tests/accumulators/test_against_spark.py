"""Accumulators made by Spark's own functions are those made here, and results have Spark's types."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from sterna.hashing import hash_keys
from sterna.operators import accumulators as agg

COLUMNS = {
    "byte": pa.array([1, -128, None, 127, 127, None], pa.int8()),
    "int": pa.array([1, -(2**31), None, 2**31 - 1, 2**31 - 1, None], pa.int32()),
    "long": pa.array([1, -(2**63), None, 2**62, 2**62 - 1, None], pa.int64()),
    "float": pa.array([math.nan, -math.inf, None, 1.5, math.nan, None], pa.float32()),
    "double": pa.array([math.nan, 1.0, None, -1.5, -1.25, None], pa.float64()),
    "narrow": pa.array(
        [Decimal("1.25"), Decimal("-9.99"), None, Decimal(3), Decimal(4), None], pa.decimal128(3, 2)
    ),
    "wide": pa.array(
        [Decimal(1), Decimal(-(10**37)), None, Decimal(10**37), Decimal(4), None], pa.decimal128(38, 0)
    ),
    "bool": pa.array([True, False, None, True, True, None]),
    "string": pa.array(["b", "é", None, "a", "", None]),
    "binary": pa.array([b"b", b"\xff", None, b"a", b"", None]),
    "date": pa.array([dt.date(1960, 1, 1), dt.date(2024, 2, 29), None, None, None, None]),
    "local": pa.array([dt.datetime(1960, 1, 1), None, None, None, None, None], pa.timestamp("us")),  # noqa: DTZ001
}
KEY = pa.array([1, 1, 1, 2, 2, 3])
ADDABLE = ("byte", "int", "long", "float", "double", "narrow", "wide")


def test_native_accumulators_and_result_types(spark):
    named = {"rows": agg.count()}
    for column in COLUMNS:
        for function in (agg.count, agg.min, agg.max, agg.first, agg.last):
            named[f"{function.__name__}-{column}"] = function(column)
    for column in ADDABLE:
        named |= {f"sum-{column}": agg.sum(column), f"mean-{column}": agg.mean(column)}
    natives, results, wanted = [], [], {}
    order, groups = agg.group_sorted(hash_keys([KEY]), [KEY], None)
    for name, aggregate in named.items():
        values = COLUMNS[aggregate.column].take(pa.array(order)) if aggregate.column else None
        type_ = None if values is None else values.type
        native = aggregate.native(type_)
        assert native is None or len(native) == len(aggregate.state(type_))
        if native is not None:
            for (function, column), made in zip(native, aggregate.partial(groups, values), strict=True):
                alias = f"{name}/{function}"
                natives.append(getattr(F, function)(column).alias(alias))
                wanted[alias] = made
        if not (isinstance(aggregate, agg.Mean) and pa.types.is_decimal(type_)):
            kind = name.split("-")[0]
            results.append(
                (F.count("*") if kind == "rows" else getattr(F, kind)(aggregate.column)).alias(name)
            )
    table = pa.table({"key": KEY, **COLUMNS})
    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    df = spark.createDataFrame(table, schema).coalesce(1).groupBy("key")

    made = df.agg(*natives).toArrow()
    types = df.agg(*results).limit(0).toArrow().schema

    rows = pa.array(
        [made["key"].to_pylist().index(k) for k in KEY.take(pa.array(order[groups.starts])).to_pylist()]
    )
    for alias, column in wanted.items():
        seen = made[alias].combine_chunks().take(rows)
        assert seen.type == column.type, alias
        assert str(seen.to_pylist()) == str(column.to_pylist()), alias
    for name in types.names[1:]:
        aggregate = named[name]
        type_ = COLUMNS[aggregate.column].type if aggregate.column else None
        assert aggregate.result(type_) == types.field(name).type, name
