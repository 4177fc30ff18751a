"""Between the schemas users write (DDL strings, Spark's StructType, Arrow) and Arrow schemas."""

from __future__ import annotations

import inspect
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from sterna.errors import InvalidInput


def of_frame(df: Any) -> pa.Schema:
    """The Arrow schema of a DataFrame."""
    names = df.columns
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInput(f"the DataFrame has two columns called {twice[0]!r}; rename one")
    return _nullable(_to_arrow(df.schema))


def arrow_schema(schema: Any, spark: Any) -> pa.Schema:
    """An Arrow schema from DDL (``"best double, n long"``), a StructType, or an Arrow schema."""
    if isinstance(schema, pa.Schema):
        return schema
    if isinstance(schema, str):
        try:
            schema = spark.createDataFrame([], schema).schema
        except Exception as error:
            said = next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason given")
            raise InvalidInput(f"{schema!r} is not a schema: {said}") from error
    if not isinstance(schema, StructType):
        raise InvalidInput(f"{schema!r} is not a schema; write it as 'auction long, price double'")
    return _nullable(_to_arrow(schema))


def _to_arrow(schema: StructType) -> pa.Schema:
    # Timestamps are in UTC here, whatever the session's time zone. Early versions of PySpark do so without
    # being asked.
    if "timezone" in inspect.signature(to_arrow_schema).parameters:
        return to_arrow_schema(schema, timezone="UTC")
    return to_arrow_schema(schema)


def _nullable(schema: pa.Schema) -> pa.Schema:
    # Whether a column may hold nulls is a promise that a fold can't keep for us; a checkpoint must not depend
    # on it either.
    return pa.schema([pa.field(item.name, item.type) for item in schema])


def key_type_ok(kind: pa.DataType) -> bool:
    """Whether values of a type can be keys."""
    tests = (
        pa.types.is_boolean,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_date,
        pa.types.is_timestamp,
    )
    return any(test(kind) for test in tests)
