"""The hash of a key is the one that a real Spark computes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from sterna.hashing import hash_keys

UTC = dt.timezone.utc


def signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


COLUMNS = {
    "bool": (pa.bool_(), st.booleans()),
    "byte": (pa.int8(), signed(8)),
    "short": (pa.int16(), signed(16)),
    "int": (pa.int32(), signed(32)),
    "long": (pa.int64(), signed(64)),
    "float": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), st.floats()),
    "decimal": (pa.decimal128(18, 4), st.decimals(-(10**13), 10**13, places=4)),
    "wide": (pa.decimal128(38, 10), st.decimals(-(10**27), 10**27, allow_nan=False, places=10)),
    "string": (pa.string(), st.text()),
    "binary": (pa.binary(), st.binary(max_size=100)),
    "date": (pa.date32(), st.dates()),
    "time": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
    "local": (pa.timestamp("us"), st.datetimes()),
}

ROWS = st.lists(st.tuples(*(st.none() | values for _, values in COLUMNS.values())), min_size=1, max_size=50)

LOW = (
    *(False, -(2**7), -(2**15), -(2**31), -(2**63)),
    *(-0.0, -0.0, Decimal("-99999999999999.9999"), Decimal("-9999999999999999999999999999.9999999999")),
    *("", b"", dt.date.min, dt.datetime(1, 1, 2, tzinfo=UTC), dt.datetime.min),  # noqa: DTZ901
)
HIGH = (
    *(True, 2**7 - 1, 2**15 - 1, 2**31 - 1, 2**63 - 1),
    *(
        float("nan"),
        float("nan"),
        Decimal("99999999999999.9999"),
        Decimal("9999999999999999999999999999.9999999999"),
    ),
    *("\U0001f426" * 9, b"\xff" * 33, dt.date.max, dt.datetime(9999, 12, 30, tzinfo=UTC)),
    dt.datetime.max,  # noqa: DTZ901
)


@given(rows=ROWS)
@example(rows=[LOW, HIGH, (None,) * len(COLUMNS)])
@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_every_type_alone_and_all_together(spark, rows):
    table = pa.table(
        {
            name: pa.array([row[i] for row in rows], type_)
            for i, (name, (type_, _)) in enumerate(COLUMNS.items())
        }
    )
    alone = [F.xxhash64(name).alias(name) for name in COLUMNS]
    together = F.xxhash64(*COLUMNS).alias("together")

    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    hashed = spark.createDataFrame(table, schema).select(*alone, together).toArrow()

    for name in COLUMNS:
        assert hash_keys([table[name]]).view("int64").tolist() == hashed[name].to_pylist(), name
    assert hash_keys(table.columns).view("int64").tolist() == hashed["together"].to_pylist()
