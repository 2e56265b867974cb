"""A schema of every type, and filters bound to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa

from indextables.expr.bind import bind

SCHEMA = pa.schema(
    [
        ("tiny", pa.int8()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("d", pa.float64()),
        ("r", pa.float32()),
        ("dec", pa.decimal128(10, 2)),
        ("big", pa.decimal128(38, 10)),
        ("s", pa.string()),
        ("t", pa.string()),
        ("b", pa.bool_()),
        ("dt", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("us")),
        ("bin", pa.binary()),
        ("st", pa.struct([("x", pa.int32()), ("In", pa.struct([("y", pa.string())]))])),
        ("arr", pa.list_(pa.int32())),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("void", pa.null()),
        ("month", pa.int32()),
    ]
)
NEW_YORK = "America/New_York"


def bound(source: Any, zone: str = "UTC") -> Any:
    return bind(source, SCHEMA, partition_columns=["month"], time_zone=zone)


def text(source: Any, zone: str = "UTC") -> str:
    return repr(bound(source, zone))


def micros(*parts: int, tz: timezone = UTC) -> int:
    return int(
        (datetime(*parts, tzinfo=tz) - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1)
    )
